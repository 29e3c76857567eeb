"""Works, time limits, and the end of groups at the torch.distributed door."""

import datetime
import time

import torch
import torch.distributed as dist
from checks_c10d_common import Raises, needs_peers, rank, size

CPU = torch.device("cpu")


def works(group=None):
    tensor = torch.ones(3)
    dist.all_reduce(tensor, group=group)
    assert tensor[0] == dist.get_world_size(group)


def everybody(**options):
    return dist.new_group(list(range(size())), **options)


def check_titles():
    """What the profiler calls each operation."""
    calls = {
        "all_reduce": lambda: dist.all_reduce(torch.ones(2)),
        "broadcast": lambda: dist.broadcast(torch.ones(2), 0),
        "reduce": lambda: dist.reduce(torch.ones(2), 0),
        "all_gather": lambda: dist.all_gather(list(torch.ones(size(), 1)), torch.ones(1)),
        "_all_gather_base": lambda: dist.all_gather_into_tensor(torch.ones(size()), torch.ones(1)),
        "_reduce_scatter_base": lambda: dist.reduce_scatter_tensor(
            torch.ones(1), torch.ones(size())
        ),
        "all_to_all": lambda: dist.all_to_all_single(torch.ones(size()), torch.ones(size())),
        "barrier": dist.barrier,
    }
    with torch.autograd.profiler.profile() as profile:
        for call in calls.values():
            call()
    seen = {event.name for event in profile.function_events}
    assert {f"fasthorovod:{name}" for name in calls} <= seen, seen


def check_works_tell_about_themselves():
    group = everybody(timeout=datetime.timedelta(seconds=17))
    first = dist.all_reduce(torch.ones(3), group=group, async_op=True)
    second = dist.all_reduce(torch.ones(3), group=group, async_op=True)
    assert second._get_sequence_number() == first._get_sequence_number() + 1
    assert first.timeout == datetime.timedelta(seconds=17)
    for work in (first, second):
        work.wait()
        assert work.is_completed() and work.exception() is None


@needs_peers
def check_each_operation_may_have_its_limit():
    group = everybody()  # half an hour
    options = dist.AllreduceOptions()
    options.timeout = datetime.timedelta(seconds=1)
    dist.barrier()
    start = time.monotonic()
    if rank() != 1:
        with Raises(dist.DistBackendError, "timed out", "1000 ms", "rank 1"):
            group.allreduce([torch.ones(3)], options).wait()
        assert time.monotonic() - start < 30
    else:
        time.sleep(1.5)
    dist.barrier()


def check_a_group_may_change_its_limit():
    group = everybody()
    group.set_timeout(datetime.timedelta(seconds=23))
    work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
    work.wait()
    assert work.timeout == datetime.timedelta(seconds=23)


@needs_peers
def check_abort_is_told_to_the_others():
    """Also to a rank that calls the group only afterwards, and for whatever it calls."""
    group = everybody()
    works(group)
    dist.barrier()
    if rank() == 1:
        group._get_backend(CPU).abort()
        dist.barrier()
    else:
        dist.barrier()
        start = time.monotonic()
        for _ in range(3):
            with Raises(dist.DistBackendError, "rank 1"):
                dist.all_reduce(torch.ones(3), group=group)
        with Raises(dist.DistBackendError, "rank 1"):
            dist.recv(torch.ones(3), 1, group=group)
        assert time.monotonic() - start < 30
    works()


@needs_peers
def check_abort_ends_what_others_wait_for():
    group = everybody()
    if rank() == 1:
        time.sleep(0.2)
        group._get_backend(CPU).abort()
    else:
        start = time.monotonic()
        with Raises(dist.DistBackendError, "rank 1"):
            dist.all_reduce(torch.ones(3), group=group)
        assert time.monotonic() - start < 30
    works()


def check_calls_after_the_end():
    group = everybody()
    backend = group._get_backend(CPU)
    dist.destroy_process_group(group)
    for call in (
        lambda: backend.allreduce([torch.ones(2)]).wait(),
        lambda: backend.barrier().wait(),
        lambda: backend.send([torch.ones(2)], 0, 0).wait(),
        backend.monitored_barrier,
    ):
        with Raises(dist.DistBackendError, "shut down or aborted"):
            call()
    backend.shutdown()
    backend.abort()
    works()


@needs_peers
def check_groups_end_in_any_order():
    groups = [everybody() for _ in range(4)]
    for group in groups:
        works(group)
    for group in groups if rank() % 2 else reversed(groups):
        dist.destroy_process_group(group)
    works()
    again = everybody()
    works(again)
