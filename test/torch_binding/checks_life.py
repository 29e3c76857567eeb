"""Start, stop, memory and handles over many operations."""

import gc
import os

import fasthorovod.torch as hvd
import torch
from checks_common import Raises, expect_no_growth, needs_peers, resident_bytes
from fasthorovod.torch import handles as handle_table


def check_a_hundred_cycles_of_init_and_shutdown():
    def cycle():
        hvd.shutdown()
        hvd.shutdown()
        assert not hvd.is_initialized()
        hvd.init()
        hvd.init()
        assert hvd.is_initialized()
        assert hvd.allreduce(torch.ones(100_000), op=hvd.Sum)[0] == hvd.size()

    expect_no_growth(cycle)


def check_operations_after_shutdown_are_refused():
    hvd.barrier()
    hvd.shutdown()
    for call in (
        lambda: hvd.allreduce(torch.ones(1)),
        lambda: hvd.allgather(torch.ones(1)),
        lambda: hvd.broadcast(torch.ones(1), 0),
        hvd.barrier,
        hvd.join,
        hvd.rank,
        hvd.size,
        hvd.local_rank,
        hvd.is_homogeneous,
        hvd.communication_statistics,
    ):
        with Raises(ValueError, "init()"):
            call()
    hvd.init()


def check_what_is_said_of_mpi():
    if "OMPI_COMM_WORLD_SIZE" in os.environ or "PMI_SIZE" in os.environ:
        assert hvd.mpi_built() and hvd.mpi_enabled()
        assert hvd.mpi_threads_supported()
        return
    assert not hvd.mpi_enabled()
    with Raises(ValueError, "mpirun did not start this rank"):
        hvd.mpi_threads_supported()


def check_where_this_process_stands():
    assert 0 <= hvd.rank() < hvd.size()
    assert (hvd.local_rank(), hvd.local_size()) == (hvd.rank(), hvd.size())
    assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
    assert hvd.is_homogeneous()
    assert hvd.global_process_set.process_set_id == 0
    assert hvd.global_process_set.size() == hvd.size()
    assert hvd.global_process_set.ranks == list(range(hvd.size()))
    assert not hvd.gloo_enabled()
    assert hvd.nccl_built() == 0
    with Raises(AttributeError, "all-to-all"):
        _ = hvd.alltoall
    with Raises(NotImplementedError, "comm"):
        hvd.init(comm=[0])


def check_ten_thousand_tiny_tensors_in_one_step():
    for step in range(2):
        handles = [
            hvd.allreduce_async(torch.tensor([float(i + step)]), op=hvd.Sum, name=f"tiny.{i}")
            for i in range(10_000)
        ]
        for i, handle in enumerate(handles):
            assert hvd.synchronize(handle).item() == (i + step) * hvd.size()


def check_ten_thousand_handles_never_waited_for():
    before = resident_bytes()
    for i in range(10_000):
        hvd.allreduce_async(torch.ones(4096))  # 16 KiB; 160 MiB in all
        if i % 200 == 199:
            hvd.barrier()
    hvd.barrier()
    gc.collect()
    assert len(handle_table._operations) == 0
    assert resident_bytes() - before < 80 << 20


def check_tensors_freed_in_flight():
    handles = []
    for i in range(200):
        tensor = torch.full((5000,), float(i))
        handles.append(hvd.allreduce_async(tensor, op=hvd.Sum))
        del tensor
        torch.full((5000,), -1.0)  # likely to get the memory, were it free
    for i, handle in enumerate(handles):
        assert torch.equal(hvd.synchronize(handle), torch.full((5000,), float(i * hvd.size())))
    for i in range(100):
        hvd.allreduce_async_(torch.full((1000,), float(i)))
    gc.collect()


@needs_peers
def check_shutdown_fails_what_is_in_flight():
    hvd.barrier()
    handle = None
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(3), name="only on rank 0")
    hvd.shutdown()
    if handle is not None:
        with Raises(hvd.HorovodInternalError):
            hvd.synchronize(handle)
    hvd.init()
