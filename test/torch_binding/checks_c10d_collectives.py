"""Every collective of torch.distributed: types, sizes, layouts."""

import torch
import torch.distributed as dist
from checks_c10d_common import (
    FLOATS,
    MOVED_TYPES,
    SIZES,
    TYPES,
    all_values,
    equal_bytes,
    moved,
    needs_peers,
    rank,
    reduced,
    same,
    size,
    values,
)
from torch.distributed import ReduceOp

OPS = [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT]


def check_all_reduce():
    for dtype in TYPES:
        for op in OPS:
            for seed, length in enumerate(SIZES):
                if op == ReduceOp.AVG and dtype == torch.bool:
                    continue
                tensor = values(rank(), (length,), dtype, seed)
                dist.all_reduce(tensor, op)
                same(tensor, reduced(op, all_values((length,), dtype, seed), dtype))


def check_bitwise_reductions():
    ops = {
        ReduceOp.BAND: torch.bitwise_and,
        ReduceOp.BOR: torch.bitwise_or,
        ReduceOp.BXOR: torch.bitwise_xor,
    }
    for dtype in sorted(set(TYPES) - set(FLOATS), key=str):
        for op, bitwise in ops.items():
            everything = [values(r, (1001,), dtype, 3) for r in range(size())]
            want = everything[0].to(torch.int64)
            for other in everything[1:]:
                want = bitwise(want, other.to(torch.int64))
            tensor = everything[rank()].clone()
            dist.all_reduce(tensor, op)
            same(tensor, want.to(dtype))
            whole = everything[rank()].repeat(size())
            output = torch.empty_like(tensor)
            dist.reduce_scatter_tensor(output, whole, op)
            same(output, want.to(dtype))


def check_all_reduce_of_complex_numbers():
    tensor = torch.tensor([1 + 2j, 3 - 1j]) * (rank() + 1)
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.tensor([1 + 2j, 3 - 1j]) * sum(range(1, size() + 1)))


def check_premultiplied_sum():
    for dtype in FLOATS:
        tensor = values(rank(), (100,), dtype)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
        same(tensor, (all_values((100,), dtype).sum(0) / 2).to(dtype))
    tensor = values(rank(), (100,), torch.float32)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(torch.tensor(0.25)))
    same(tensor, (all_values((100,), torch.float32).sum(0) / 4).float())


def check_large_all_reduce():
    tensor = torch.full((5_000_001,), float(rank() + 1))
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.full_like(tensor, sum(range(1, size() + 1))))


def check_all_reduce_coalesced():
    tensors = [values(rank(), (n,), torch.float32, n) for n in (3, 0, 1000)]
    dist.all_reduce_coalesced(tensors)
    for tensor, n in zip(tensors, (3, 0, 1000)):
        same(tensor, reduced(ReduceOp.SUM, all_values((n,), torch.float32, n), torch.float32))


def check_coalescing_manager():
    tensors = [values(rank(), (n,), torch.float32, n) for n in (3, 500)]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor, n in zip(tensors, (3, 500)):
        same(tensor, reduced(ReduceOp.SUM, all_values((n,), torch.float32, n), torch.float32))
    mine = [values(rank(), (n,), torch.float32, n) for n in (3, 500)]
    wholes = [torch.empty(n * size()) for n in (3, 500)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for whole, block in zip(wholes, mine):
            dist.all_gather_into_tensor(whole, block)
    manager.wait()
    for whole, n in zip(wholes, (3, 500)):
        same(whole, all_values((n,), torch.float32, n).reshape(-1).float())
    blocks = [torch.empty(n) for n in (3, 500)]
    with dist._coalescing_manager():
        for block, whole in zip(blocks, wholes):
            dist.reduce_scatter_tensor(block, whole)
    for block, whole in zip(blocks, wholes):
        same(block, size() * whole.chunk(size())[rank()])


def check_lists_of_lists():
    """The form of all-gather that takes several tensors of a rank."""
    mine = [values(rank(), (n,), torch.float32, n) for n in (2, 40)]
    outputs = [[torch.empty(n) for n in (2, 40)] for _ in range(size())]
    dist.all_gather_coalesced(outputs, mine)
    for r, of_rank in enumerate(outputs):
        for n, output in zip((2, 40), of_rank):
            equal_bytes(output, values(r, (n,), torch.float32, n))


def check_gather_into_one_tensor():
    group = dist.group.WORLD
    mine = values(rank(), (4, 3), torch.float32)
    for root in range(size()):
        options = dist.GatherOptions()
        options.rootRank = root
        whole = torch.empty(4 * size(), 3) if rank() == root else torch.empty(0)
        group._get_backend(mine.device).gather_single(whole, mine, options).wait()
        if rank() == root:
            same(whole, all_values((4, 3), torch.float32).reshape(-1, 3).float())


def check_layouts():
    wide = values(rank(), (6, 8), torch.float32)
    expected = reduced(ReduceOp.SUM, all_values((6, 8), torch.float32), torch.float32)
    for view in (lambda t: t.t(), lambda t: t[:, ::2], lambda t: t[1::2]):
        tensor = wide.clone()
        dist.all_reduce(view(tensor))
        want = wide.clone()
        view(want).copy_(view(expected))
        same(tensor, want)
    image = values(rank(), (2, 3, 4, 5), torch.float32).contiguous(
        memory_format=torch.channels_last
    )
    dist.all_reduce(image)
    same(image, reduced(ReduceOp.SUM, all_values((2, 3, 4, 5), torch.float32), torch.float32))
    assert image.is_contiguous(memory_format=torch.channels_last)
    column = torch.zeros(4, 3)
    column[:, 1] = rank() + 1.0
    dist.broadcast(column[:, 1], 0)
    assert torch.equal(column[:, 1], torch.ones(4))


def check_broadcast():
    for dtype in MOVED_TYPES:
        for root in range(size()):
            for seed, length in enumerate(SIZES):
                tensor = moved(rank(), (length,), dtype, seed)
                dist.broadcast(tensor, root)
                equal_bytes(tensor, moved(root, (length,), dtype, seed))


def check_all_gather():
    for dtype in MOVED_TYPES:
        for seed, length in enumerate(SIZES):
            mine = moved(rank(), (length,), dtype, seed)
            outputs = [torch.empty_like(mine) for _ in range(size())]
            dist.all_gather(outputs, mine)
            whole = torch.empty(size() * length, dtype=dtype)
            dist.all_gather_into_tensor(whole, mine)
            for r in range(size()):
                equal_bytes(outputs[r], moved(r, (length,), dtype, seed))
                equal_bytes(whole[r * length : (r + 1) * length], outputs[r])


def check_all_gather_of_different_sizes():
    mine = values(rank(), (rank() * 3,), torch.int64)
    outputs = [torch.empty(r * 3, dtype=torch.int64) for r in range(size())]
    dist.all_gather(outputs, mine)
    for r, output in enumerate(outputs):
        equal_bytes(output, values(r, (r * 3,), torch.int64))


def check_all_gather_in_place():
    whole = torch.zeros(size() * 10)
    mine = whole[rank() * 10 : (rank() + 1) * 10]
    mine.fill_(rank() + 1.0)
    dist.all_gather_into_tensor(whole, mine)
    assert torch.equal(whole, torch.arange(1.0, size() + 1).repeat_interleave(10))


def check_reduce_scatter():
    for dtype in TYPES:
        for op in OPS:
            if op == ReduceOp.AVG and dtype == torch.bool:
                continue
            for seed, length in enumerate([0, 1, 7, 1000]):
                everything = all_values((size() * length,), dtype, seed)
                want = reduced(op, everything, dtype)[rank() * length : (rank() + 1) * length]
                whole = values(rank(), (size() * length,), dtype, seed)
                output = torch.empty(length, dtype=dtype)
                dist.reduce_scatter_tensor(output, whole, op)
                same(output, want)
                output = torch.empty(length, dtype=dtype)
                dist.reduce_scatter(
                    output,
                    list(whole.split(length or 1)[: size()]) if length else [whole] * size(),
                    op,
                )
                same(output, want)


def check_reduce_scatter_in_place():
    whole = torch.arange(float(size() * 4)).reshape(size(), 4)
    want = whole[rank()] * size()
    dist.reduce_scatter_tensor(whole[rank()], whole)
    same(whole[rank()], want)


def check_reduce():
    for dtype in TYPES:
        for root in range(size()):
            mine = values(rank(), (100,), dtype)
            tensor = mine.clone()
            dist.reduce(tensor, root)
            want = reduced(ReduceOp.SUM, all_values((100,), dtype), dtype)
            same(tensor, want if rank() == root else mine)


def check_gather_and_scatter():
    for dtype in MOVED_TYPES:
        for root in range(size()):
            for seed, length in enumerate([0, 1, 1000]):
                mine = moved(rank(), (length,), dtype, seed)
                outputs = (
                    [torch.empty_like(mine) for _ in range(size())] if rank() == root else None
                )
                dist.gather(mine, outputs, root)
                if rank() == root:
                    for r in range(size()):
                        equal_bytes(outputs[r], moved(r, (length,), dtype, seed))
                inputs = [moved(r, (length,), dtype, seed) for r in range(size())]
                output = torch.empty(length, dtype=dtype)
                dist.scatter(output, inputs if rank() == root else None, root)
                equal_bytes(output, inputs[rank()])


def check_all_to_all():
    for dtype in MOVED_TYPES:
        for length in (0, 1, 300):
            inputs = [moved(rank(), (length,), dtype, to) for to in range(size())]
            outputs = [torch.empty(length, dtype=dtype) for _ in range(size())]
            dist.all_to_all(outputs, inputs)
            whole = torch.empty(size() * length, dtype=dtype)
            dist.all_to_all_single(whole, torch.cat(inputs))
            for r in range(size()):
                equal_bytes(outputs[r], moved(r, (length,), dtype, rank()))
                equal_bytes(whole[r * length : (r + 1) * length], outputs[r])


def check_all_to_all_of_different_sizes():
    sent = [rank() + to for to in range(size())]
    received = [r + rank() for r in range(size())]
    whole = torch.cat([torch.full((n, 2), 10.0 * rank() + to) for to, n in enumerate(sent)])
    output = torch.empty(sum(received), 2)
    dist.all_to_all_single(output, whole, received, sent)
    want = [torch.full((n, 2), 10.0 * r + rank()) for r, n in enumerate(received)]
    assert torch.equal(output, torch.cat(want))


def check_barriers():
    for _ in range(20):
        dist.barrier()
    dist.barrier(async_op=True).wait()


@needs_peers
def check_send_and_receive():
    for dtype in MOVED_TYPES:
        for length in (0, 1, 40_000):
            if rank() == 0:
                for to in range(1, size()):
                    dist.send(moved(0, (length,), dtype, to), to, tag=length)
            else:
                tensor = torch.empty(length, dtype=dtype)
                assert dist.recv(tensor, 0, tag=length) == 0
                equal_bytes(tensor, moved(0, (length,), dtype, rank()))


@needs_peers
def check_receive_from_any():
    if rank() == 0:
        seen = set()
        for _ in range(size() - 1):
            tensor = torch.empty(3)
            source = dist.recv(tensor)
            assert torch.equal(tensor, torch.full((3,), float(source)))
            seen.add(source)
        assert seen == set(range(1, size()))
    else:
        dist.send(torch.full((3,), float(rank())), 0)


@needs_peers
def check_tags_keep_messages_apart():
    after, before = (rank() + 1) % size(), (rank() - 1) % size()
    sends = [dist.isend(torch.full((2,), float(tag)), after, tag=tag) for tag in range(5)]
    for tag in reversed(range(5)):
        tensor = torch.empty(2)
        dist.recv(tensor, before, tag=tag)
        assert torch.equal(tensor, torch.full((2,), float(tag)))
    for send in sends:
        send.wait()


@needs_peers
def check_batched_messages():
    after, before = (rank() + 1) % size(), (rank() - 1) % size()
    for length in (1, 200_000):
        mine = values(rank(), (length,), torch.float32)
        theirs = torch.empty(length)
        batch = [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, theirs, before)]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        equal_bytes(theirs, values(before, (length,), torch.float32))


def check_objects():
    mine = {"rank": rank(), "text": "x" * (100 * rank())}
    everything = [{"rank": r, "text": "x" * (100 * r)} for r in range(size())]
    gathered = [None] * size()
    dist.all_gather_object(gathered, mine)
    assert gathered == everything
    gathered = [None] * size() if rank() == 0 else None
    dist.gather_object(mine, gathered)
    assert gathered == (everything if rank() == 0 else None)
    told = [mine, rank()]
    dist.broadcast_object_list(told, src=size() - 1)
    assert told == [everything[-1], size() - 1]
    got = [None]
    dist.scatter_object_list(got, everything if rank() == 0 else None)
    assert got == [mine]


def check_futures():
    tensor = torch.full((1000,), rank() + 1.0)
    total = sum(range(1, size() + 1))
    work = dist.all_reduce(tensor, async_op=True)
    future = work.get_future()
    halved = future.then(lambda f: f.value()[0] / 2).then(lambda f: f.value() + 1)
    assert torch.equal(halved.wait(), torch.full((1000,), total / 2 + 1))
    assert work.wait() is True
    assert work.is_completed() and work.is_success() and future.done()
    assert torch.equal(work.result()[0], tensor)
    outputs = [torch.empty(2) for _ in range(size())]
    work = dist.all_gather(outputs, torch.full((2,), float(rank())), async_op=True)
    assert torch.equal(work.get_future().wait()[0][-1], torch.full((2,), size() - 1.0))


def check_calls_from_callbacks():
    chained = []

    def again(future):
        tensor = future.value()[0] * 2
        dist.all_reduce(tensor)
        chained.append(tensor)
        return tensor

    future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(again)
    assert torch.equal(future.wait(), torch.full((3,), 2.0 * size() * size()))
    assert len(chained) == 1


def check_works_may_be_dropped():
    tensors = [torch.full((1000,), rank() + 1.0) for _ in range(50)]
    for tensor in tensors:
        dist.all_reduce(tensor, async_op=True)
        dist.all_reduce(torch.ones(1000), async_op=True)
    # A barrier may end before operations that still run.
    dist.group.WORLD._get_backend(torch.device("cpu"))._wait_for_pending_works()
    total = sum(range(1, size() + 1))
    for tensor in tensors:
        assert torch.equal(tensor, torch.full((1000,), float(total)))


def check_functional_collectives():
    import torch.distributed._functional_collectives as functional

    group = dist.group.WORLD
    mine = values(rank(), (4, 3), torch.float32)
    everything = all_values((4, 3), torch.float32)
    total = reduced(ReduceOp.SUM, everything, torch.float32)
    same(functional.all_reduce(mine, "sum", group) + 0, total)
    same(functional.all_gather_tensor(mine, 0, group) + 0, everything.reshape(-1, 3).float())
    whole = values(rank(), (size(), 3), torch.float32)
    want = reduced(ReduceOp.SUM, all_values((size(), 3), torch.float32), torch.float32)
    same(functional.reduce_scatter_tensor(whole, "sum", 0, group) + 0, want[rank()].unsqueeze(0))
    pair = functional.all_gather_into_tensor_coalesced([mine, mine + 1], group)
    same(pair[1] + 0, everything.reshape(-1, 3).float() + 1)
    pair = functional.reduce_scatter_tensor_coalesced([whole, whole], "sum", [0, 0], group)
    same(pair[0] + 0, want[rank()].unsqueeze(0))
    same(functional.broadcast(mine, 0, group) + 0, everything[0].float())
