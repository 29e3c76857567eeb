"""Every collective gives the right values, for every type, shape and layout."""

import threading
import time

import fasthorovod.torch as hvd
import torch
from checks_common import (
    FLOATS,
    INTEGERS,
    SIGNED,
    TYPES,
    Raises,
    equal_on_all_ranks,
    expected,
    needs_peers,
    of_all,
    same,
    values,
)

SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (1025,)]
OPS = [hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product]


def check_allreduce_every_type_shape_and_op():
    flights = []
    for dtype in TYPES:
        for op in OPS:
            if dtype == torch.bool and op == hvd.Average:
                continue
            for shape in SHAPES:
                handle = hvd.allreduce_async(values(hvd.rank(), shape, dtype), op=op)
                flights.append((handle, expected(op, of_all(shape, dtype), dtype)))
    for handle, wanted in flights:
        same(hvd.synchronize(handle), wanted)


def check_allreduce_in_place():
    for dtype in TYPES:
        for shape in SHAPES:
            tensor = values(hvd.rank(), shape, dtype)
            assert hvd.allreduce_(tensor, op=hvd.Sum) is tensor
            same(tensor, expected(hvd.Sum, of_all(shape, dtype), dtype))


def layouts():
    """(tensor of rank's values, how to build the same from another rank's) for odd layouts."""
    return {
        "transposed": lambda r: values(r, (4, 6), torch.float32).t(),
        "every other": lambda r: values(r, (6, 8), torch.int32)[::2, 1::3],
        "channels_last": lambda r: values(r, (2, 3, 4, 5), torch.float32).to(
            memory_format=torch.channels_last
        ),
        "flipped by stride": lambda r: values(r, (4, 5, 6), torch.float64).permute(2, 0, 1),
        "negated view": lambda r: (
            torch.view_as_complex(values(r, (5, 2), torch.float32)).conj().imag
        ),
        "one row": lambda r: values(r, (5, 7), torch.bfloat16)[2],
    }


def check_allreduce_of_odd_layouts():
    for name, make in layouts().items():
        everything = torch.stack([make(r).double() for r in range(hvd.size())])
        tensor = make(hvd.rank())
        wanted = everything.sum(0).to(tensor.dtype)
        before = tensor.clone()
        result = hvd.allreduce(tensor, op=hvd.Sum)
        same(result, wanted)
        same(tensor, before)
        if name == "channels_last":
            assert result.is_contiguous(memory_format=torch.channels_last)
        hvd.allreduce_(tensor, op=hvd.Sum)
        same(tensor, wanted)


def check_ranks_with_different_layouts_agree():
    plain = values(hvd.rank(), (2, 3, 4, 5), torch.float32)
    wanted = expected(hvd.Sum, of_all((2, 3, 4, 5), torch.float32), torch.float32)
    mine = plain.to(memory_format=torch.channels_last) if hvd.rank() % 2 else plain
    same(hvd.allreduce(mine, op=hvd.Sum), wanted)


def check_in_place_leaves_the_gaps_of_a_view_alone():
    base = torch.full((6, 6), float(hvd.rank()))
    hvd.allreduce_(base[:, ::2], op=hvd.Sum)
    assert torch.equal(base[:, 1::2], torch.full((6, 3), float(hvd.rank())))
    assert torch.equal(base[:, ::2], torch.full((6, 3), float(sum(range(hvd.size())))))


def check_expanded_tensors():
    tensor = torch.full((1, 3), float(hvd.rank() + 1)).expand(4, 3)
    total = float(sum(range(1, hvd.size() + 1)))
    assert torch.equal(hvd.allreduce(tensor, op=hvd.Sum), torch.full((4, 3), total))
    for call in (hvd.allreduce_, lambda t: hvd.broadcast_(t, 0)):
        with Raises(ValueError, "share memory"):
            call(tensor)


def check_nan_and_infinity_are_the_same_on_all_ranks():
    for dtype in FLOATS:
        tensor = values(hvd.rank(), (257,), dtype)
        if hvd.rank() == hvd.size() - 1:
            tensor[3] = float("nan")
            tensor[100] = float("inf")
            tensor[200] = float("-inf")
        for op in OPS:
            equal_on_all_ranks(hvd.allreduce(tensor, op=op))
        total = hvd.allreduce(tensor, op=hvd.Sum)
        assert total[3].isnan()
        assert total[100] == float("inf")
        assert total[200] == float("-inf")
        assert total.isfinite().sum() == 254


def check_average_of_integers_cuts_towards_zero():
    for dtype in SIGNED:
        tensor = torch.tensor([-1, -7, 7, 5], dtype=dtype) * (1 if hvd.rank() == 0 else 0)
        wanted = torch.div(torch.tensor([-1, -7, 7, 5]), hvd.size(), rounding_mode="trunc")
        same(hvd.allreduce(tensor), wanted.to(dtype))


def check_scale_factors():
    for dtype in FLOATS:
        everything = of_all((33,), dtype)
        tensor = values(hvd.rank(), (33,), dtype)
        result = hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
        same(result, (everything.sum(0) * 2).to(dtype))
        same(hvd.allreduce(tensor, prescale_factor=2.0), (everything.mean(0) * 2).to(dtype))
    for dtype in INTEGERS:
        everything = of_all((33,), dtype)
        tensor = values(hvd.rank(), (33,), dtype)
        halves = torch.div(everything, 2, rounding_mode="trunc").sum(0)
        same(hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.5), halves.to(dtype))
        same(
            hvd.allreduce(tensor, op=hvd.Sum, postscale_factor=3.0),
            everything.sum(0).mul(3).to(dtype),
        )


def check_old_average_argument():
    tensor = torch.ones(2)
    assert torch.equal(hvd.allreduce(tensor, average=True), tensor)
    assert torch.equal(hvd.allreduce(tensor, False), tensor * hvd.size())
    with Raises(ValueError, "average"):
        hvd.allreduce(tensor, average=True, op=hvd.Sum)
    with Raises(NotImplementedError, "Adasum"):
        hvd.allreduce(tensor, op=2)
    with Raises(ValueError, "op must be"):
        hvd.allreduce(tensor, op=17)


def check_grouped_allreduce():
    shapes = [(3,), (0,), (2, 2), ()]
    types = [torch.float32, torch.int64, torch.float32, torch.bfloat16]

    def mine():
        return [values(hvd.rank(), s, t) for s, t in zip(shapes, types)]

    wanted = [expected(hvd.Sum, of_all(s, t), t) for s, t in zip(shapes, types)]
    results = hvd.grouped_allreduce(mine(), op=hvd.Sum)
    assert isinstance(results, list)
    in_place = mine()
    returned = hvd.grouped_allreduce_(in_place, op=hvd.Sum, name="g")
    assert all(a is b for a, b in zip(returned, in_place))
    handle = hvd.grouped_allreduce_async(mine(), op=hvd.Sum)
    later = mine()
    other = hvd.grouped_allreduce_async_(later, op=hvd.Sum)
    hvd.synchronize(other)
    for got in (results, in_place, hvd.synchronize(handle), later):
        for a, b in zip(got, wanted):
            same(a, b)
    assert hvd.grouped_allreduce([]) == []
    assert hvd.synchronize(hvd.grouped_allreduce_async([])) == ()


def check_allgather_with_rows_of_their_own():
    for dtype in TYPES:
        parts = [values(r, (r, 3), dtype) for r in range(hvd.size())]
        same(hvd.allgather(parts[hvd.rank()]), torch.cat(parts))
    nothing = hvd.allgather(torch.empty(0, 2))
    assert nothing.shape == (0, 2)
    inner = hvd.allgather(torch.empty(4, 0, 2))
    assert inner.shape == (4 * hvd.size(), 0, 2)
    with Raises(ValueError, "first dimension"):
        hvd.allgather(torch.tensor(1.0))


def check_allgather_of_odd_layouts():
    for make in layouts().values():
        same(hvd.allgather(make(hvd.rank())), torch.cat([make(r) for r in range(hvd.size())]))
    expanded = torch.tensor([[float(hvd.rank())]]).expand(2, 3)
    assert hvd.allgather(expanded).shape == (2 * hvd.size(), 3)


def check_broadcast_from_every_root():
    for root in range(hvd.size()):
        for dtype in TYPES:
            for shape in SHAPES:
                wanted = values(root, shape, dtype)
                tensor = values(hvd.rank(), shape, dtype)
                before = tensor.clone()
                same(hvd.broadcast(tensor, root), wanted)
                same(tensor, before)
                assert hvd.broadcast_(tensor, root) is tensor
                same(tensor, wanted)
    for root in (-1, hvd.size()):
        with Raises(ValueError, "root rank"):
            hvd.broadcast(torch.zeros(1), root)


def check_broadcast_of_odd_layouts():
    root = hvd.size() - 1
    for make in layouts().values():
        tensor = make(hvd.rank())
        same(hvd.broadcast(tensor, root), make(root))
        hvd.broadcast_(tensor, root)
        same(tensor, make(root))


def check_leaves_that_need_a_gradient_in_place():
    parameter = torch.nn.Parameter(torch.full((3,), float(hvd.rank())))
    hvd.broadcast_(parameter, 0)
    assert torch.equal(parameter, torch.zeros(3))
    assert parameter.requires_grad
    hvd.allreduce_(parameter, op=hvd.Max)
    assert parameter.is_leaf


def check_unsupported_tensors_are_refused_by_name():
    refused = {
        "complex64": torch.zeros(2, dtype=torch.complex64),
        "complex128": torch.zeros(2, dtype=torch.complex128),
        "float8_e4m3fn": torch.zeros(2).to(torch.float8_e4m3fn),
        "sparse": torch.eye(3).to_sparse(),
        "quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "meta": torch.empty(2, device="meta"),
    }
    for word, tensor in refused.items():
        for call in (hvd.allreduce, hvd.allgather, lambda t: hvd.broadcast(t, 0)):
            with Raises(ValueError, word):
                call(tensor)


def check_poll_and_synchronize():
    tensors = [torch.full((4096,), float(hvd.rank() + i)) for i in range(20)]
    handles = [hvd.allreduce_async(tensor, op=hvd.Sum) for tensor in tensors]
    assert isinstance(handles[0], int)
    assert not all(hvd.poll(handle) for handle in handles) or hvd.size() == 1
    deadline = time.monotonic() + 20
    while not all(hvd.poll(handle) for handle in handles):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    ranks = sum(range(hvd.size()))
    for i, handle in enumerate(handles):
        assert torch.equal(
            hvd.synchronize(handle), torch.full((4096,), ranks + i * hvd.size() * 1.0)
        )
        assert hvd.synchronize(handle) is None
    with Raises(ValueError, "not of an operation in flight"):
        hvd.poll(handles[0])


@needs_peers
def check_submitting_never_completes():
    handles = [hvd.allreduce_async(torch.ones(64, 64)) for _ in range(15)]
    assert not all(hvd.poll(handle) for handle in handles)
    for handle in handles:
        hvd.synchronize(handle)


def check_threads_may_call_at_once():
    failures = []

    def work(number):
        try:
            for step in range(10):
                result = hvd.allreduce(
                    torch.full((5,), float(number)), op=hvd.Sum, name=f"{number}.{step}"
                )
                assert torch.equal(result, torch.full((5,), float(number * hvd.size())))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures, failures


@needs_peers
def check_barrier_waits_for_the_last():
    hvd.barrier()
    before = hvd.communication_statistics()["blocked_seconds"]
    if hvd.rank() == 0:
        time.sleep(0.5)
    # All ranks are on this machine, so they read one clock.
    entered = time.monotonic()
    hvd.barrier()
    left = time.monotonic()
    blocked = hvd.communication_statistics()["blocked_seconds"] - before
    latest = hvd.allreduce(torch.tensor([entered], dtype=torch.float64), op=hvd.Max).item()
    assert left >= latest
    assert 0 <= blocked <= left - entered
    assert blocked > 0 or latest - entered < 0.4


def check_large_sums_are_close_and_equal_everywhere():
    everything = [
        torch.randn(3_000_001, generator=torch.Generator().manual_seed(r))
        for r in range(hvd.size())
    ]
    result = hvd.allreduce(everything[hvd.rank()], op=hvd.Sum)
    wanted = torch.stack(everything).double().sum(0)
    torch.testing.assert_close(result.double(), wanted, rtol=1e-5, atol=1e-5)
    equal_on_all_ranks(result)


def check_fp16_compression_gives_the_type_back():
    tensor = values(hvd.rank(), (9,), torch.float32)
    result = hvd.allreduce(tensor, op=hvd.Sum, compression=hvd.Compression.fp16)
    same(result, expected(hvd.Sum, of_all((9,), torch.float32), torch.float32))
    whole = hvd.allreduce(
        torch.ones(3, dtype=torch.int32), op=hvd.Sum, compression=hvd.Compression.fp16
    )
    assert whole.dtype == torch.int32


def check_statistics_count():
    before = hvd.communication_statistics()
    hvd.allreduce(torch.ones(1000))
    after = hvd.communication_statistics()
    assert after["tensors"] == before["tensors"] + 1
    assert after["payload_bytes"] == before["payload_bytes"] + 4000
    assert after["blocked_seconds"] >= before["blocked_seconds"] >= 0.0


def check_statistics_count_what_crosses_the_network():
    before = hvd.communication_statistics()
    hvd.allreduce(torch.ones(1000))
    reduced = hvd.communication_statistics()
    hvd.allgather(torch.ones(1000))
    gathered = hvd.communication_statistics()
    if hvd.local_size() == hvd.size():  # ranks of one host reduce in shared memory
        assert reduced["bytes_sent"] == before["bytes_sent"]
    if hvd.size() > 1:
        assert gathered["bytes_sent"] > reduced["bytes_sent"]
        assert gathered["bytes_received"] > reduced["bytes_received"]
