"""Tensors in the memory that the ranks of a host share."""

import gc

import fasthorovod.torch as hvd
import torch
from checks_common import (
    TYPES,
    Raises,
    equal_on_all_ranks,
    expected,
    needs_peers,
    of_all,
    values,
)

ELEMENTS = 50_000  # beyond what ranks of a host exchange whole


def in_shared_memory(tensor):
    copy = hvd.empty_shared(tensor.shape, dtype=tensor.dtype)
    return copy.copy_(tensor)


def check_it_is_a_tensor_like_any_other():
    tensor = hvd.empty_shared(3, 5)
    assert tensor.shape == (3, 5)
    assert tensor.dtype == torch.get_default_dtype()
    assert tensor.is_contiguous()
    assert tensor.is_leaf
    assert tensor.data_ptr() % 64 == 0
    tensor.fill_(2).requires_grad_()
    (tensor * tensor).sum().backward()
    assert torch.equal(tensor.grad, torch.full((3, 5), 4.0))
    assert hvd.empty_shared((2, 0, 7)).shape == (2, 0, 7)
    assert hvd.empty_shared(dtype=torch.int8).shape == ()
    assert hvd.empty_shared(torch.Size([4]), dtype=torch.complex64).dtype == torch.complex64
    for size in ((-1,), (1 << 40, 1 << 40)):
        with Raises(ValueError, "sizes"):
            hvd.empty_shared(size)


def check_every_type_is_reduced_there_and_beside_ordinary_tensors():
    for seed, dtype in enumerate(TYPES):
        own = values(hvd.rank(), (ELEMENTS,), dtype, seed)
        right = expected(hvd.Sum, of_all((ELEMENTS,), dtype, seed), dtype)
        for mix in range(4):
            shared = (mix + hvd.rank()) % 2 == 0 if mix < 2 else mix == 2
            tensor = in_shared_memory(own) if shared else own.clone()
            result = hvd.allreduce_(tensor, op=hvd.Sum, name=f"{dtype}.{mix}")
            assert torch.equal(result, right), (dtype, mix)
            assert result.data_ptr() == tensor.data_ptr()


def check_several_at_once_and_bits_are_those_of_ordinary_tensors():
    generator = torch.Generator().manual_seed(hvd.rank())
    own = [torch.randn(ELEMENTS + i, generator=generator) for i in range(5)]
    ordinary = [hvd.allreduce(t, op=hvd.Sum, name=f"o{i}") for i, t in enumerate(own)]
    shared = [in_shared_memory(t) for t in own]
    handles = [hvd.allreduce_async_(t, op=hvd.Sum, name=f"s{i}") for i, t in enumerate(shared)]
    for handle, right in zip(handles, ordinary, strict=True):
        result = hvd.synchronize(handle)
        assert torch.equal(result, right)
        equal_on_all_ranks(result)
    grouped = hvd.grouped_allreduce([in_shared_memory(t) for t in own], op=hvd.Sum)
    assert all(torch.equal(a, b) for a, b in zip(grouped, ordinary, strict=True))


@needs_peers
def check_no_room_is_a_memory_error_with_the_limit():
    with Raises(MemoryError, "FASTHOROVOD_ARENA_MB", "MiB"):
        hvd.empty_shared(1 << 40)


def check_memory_comes_back():
    for _ in range(200):
        hvd.empty_shared(5 << 20)  # 20 MiB
    gc.collect()


def check_it_outlives_the_engine():
    tensor = in_shared_memory(torch.arange(ELEMENTS).float())
    view = tensor[10:20]
    hvd.shutdown()
    with Raises(ValueError, "init()"):
        hvd.empty_shared(3)
    assert torch.equal(tensor, torch.arange(ELEMENTS).float())
    del tensor
    gc.collect()
    assert view[0] == 10
    hvd.init()
    again = torch.arange(ELEMENTS).float()
    assert torch.equal(hvd.allreduce(view, op=hvd.Sum), again[10:20] * hvd.size())


def check_the_allocator_serves_large_tensors():
    with hvd.shared_allocator(min_bytes=100_000) as made:
        small = torch.zeros(10)
        assert made.shared_bytes == 0
        large = torch.ones(ELEMENTS)
        assert made.shared_bytes == large.numel() * 4
        with hvd.shared_allocator(min_bytes=1_000_000):
            torch.ones(ELEMENTS)
        assert made.shared_bytes == large.numel() * 4
        grown = torch.ones(ELEMENTS).resize_(2 * ELEMENTS)
        assert grown[: ELEMENTS - 1].sum() == ELEMENTS - 1
    before = made.shared_bytes
    after = torch.ones(ELEMENTS)
    assert made.shared_bytes == before
    assert made.missed_bytes == 0
    for tensor in (small, large, after):
        assert torch.equal(hvd.allreduce(tensor, op=hvd.Sum), tensor * hvd.size())
    with Raises(ValueError, "min_bytes"), hvd.shared_allocator(min_bytes=0):
        pass


def check_the_allocator_without_an_engine_makes_ordinary_tensors():
    with hvd.shared_allocator(min_bytes=1) as made:
        kept = torch.ones(1000)
        hvd.shutdown()
        tensor = torch.ones(1000)
        assert torch.equal(tensor, kept)
        assert made.missed_bytes >= 4000
        assert made.shared_bytes >= 4000
    hvd.init()


def check_gradients_made_there_train():
    with hvd.shared_allocator(min_bytes=1):
        model = torch.nn.Linear(300, 200)
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1),
            named_parameters=model.named_parameters(),
        )
        for step in range(3):
            optimizer.zero_grad(set_to_none=step == 1)
            model(torch.full((2, 300), hvd.rank() + 1.0)).sum().backward()
            optimizer.step()
    for parameter in model.parameters():
        equal_on_all_ranks(parameter)
