"""What goes wrong at the torch.distributed door, and how it is told."""

import contextlib
import datetime
import time

import torch
import torch.distributed as dist
from checks_c10d_common import Raises, needs_peers, rank, size


def works():
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.full((3,), float(size())))


def together():
    """Ranks are here at about the same time."""
    dist.barrier()


def fails_soon(call, *words):
    together()
    start = time.monotonic()
    with Raises(dist.DistBackendError, *words):
        call()
    assert time.monotonic() - start < 1.5, time.monotonic() - start
    works()


@needs_peers
def check_other_sizes():
    fails_soon(lambda: dist.all_reduce(torch.ones(3 + (rank() == 1))), "mismatch")


@needs_peers
def check_other_types():
    kind = torch.float64 if rank() == 1 else torch.int64
    fails_soon(lambda: dist.all_reduce(torch.ones(3, dtype=kind)), "mismatch")


@needs_peers
def check_other_reductions():
    op = dist.ReduceOp.MAX if rank() == 1 else dist.ReduceOp.SUM
    fails_soon(lambda: dist.all_reduce(torch.ones(3), op), "mismatch")


@needs_peers
def check_other_operations():
    def call():
        if rank() == 1:
            dist.broadcast(torch.ones(3), 0)
        else:
            dist.all_reduce(torch.ones(3))

    fails_soon(call, "mismatch")


@needs_peers
def check_other_roots():
    def call():
        dist.broadcast(torch.ones(3), int(rank() == 1))

    if rank() < 2:
        fails_soon(call, "mismatch")
    else:  # it may have what it wants before the roots learn of each other, and hear of it later
        together()
        with contextlib.suppress(dist.DistBackendError):
            call()
            time.sleep(0.5)
            works()
            return
        works()


@needs_peers
def check_failed_futures():
    together()
    work = dist.all_reduce(torch.ones(3 + (rank() == 1)), async_op=True)
    with Raises(RuntimeError, "mismatch"):
        work.get_future().wait()
    assert work.is_completed() and not work.is_success()
    assert work.exception() is not None
    works()


@needs_peers
def check_time_limit_names_the_absent():
    group = dist.new_group(list(range(size())), timeout=datetime.timedelta(seconds=1))
    last = size() - 1
    start = time.monotonic()
    if rank() != last:
        with Raises(dist.DistBackendError, "timed out", f"rank {last}"):
            dist.all_reduce(torch.ones(3), group=group)
        assert time.monotonic() - start < 3
    else:
        time.sleep(1.5)
    works()


@needs_peers
def check_waiting_has_a_limit():
    if rank() == 0:
        tensor = torch.empty(1)
        work = dist.irecv(tensor, 1)
        with Raises(dist.DistBackendError, "imed out"):
            work.wait(datetime.timedelta(milliseconds=100))
        dist.barrier()
        work.wait()
        assert tensor.item() == 5
    else:
        dist.barrier()
        if rank() == 1:
            dist.send(torch.full((1,), 5.0), 0)


@needs_peers
def check_messages_of_other_sizes():
    together()
    if rank() == 0:
        with Raises(dist.DistBackendError, "mismatch"):
            dist.send(torch.ones(3), 1)
    elif rank() == 1:
        with Raises(dist.DistBackendError, "mismatch"):
            dist.recv(torch.ones(4), 0)
    works()


def check_refusals():
    with Raises(ValueError, "float32 has no bitwise and"):
        dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND)
    with Raises(ValueError, "float8_e4m3fn", "bfloat16"):
        dist.all_reduce(torch.ones(3).to(torch.float8_e4m3fn))
    with Raises(ValueError, "clone()"):
        dist.broadcast(torch.ones(1).expand(3), 0) if rank() else dist.all_reduce(
            torch.ones(1).expand(3)
        )
    with Raises(ValueError, "5 elements"):
        dist.all_gather_into_tensor(torch.empty(5 if size() != 5 else 6), torch.empty(2))
    works()


def check_bad_arguments():
    """Each is refused on the rank that makes it, with nothing sent: the next operation works."""
    n, backend = size(), dist.group.WORLD._get_backend(torch.device("cpu"))
    options = dist.BroadcastOptions()
    options.rootRank = n
    empties = [torch.empty(3) for _ in range(n)]
    refused = [
        (lambda: backend.broadcast([torch.ones(3)], options), f"root {n}", f"{n} ranks"),
        (lambda: dist.all_gather(empties[1:], torch.ones(3)), f"each of the {n} ranks"),
        (lambda: backend.allgather([empties], [torch.ones(3).double()]), "one type", "Double"),
        (
            lambda: dist.all_gather(empties, torch.ones(2)),
            "output",
            f"{3 * n} elements instead of {2 * n}",
        ),
        (
            lambda: dist.reduce_scatter(torch.empty(2), empties),
            "input",
            f"{3 * n} elements instead of {2 * n}",
        ),
        (lambda: dist.all_to_all(empties, empties[1:]), f"each of the {n} ranks"),
        (
            lambda: dist.all_to_all_single(torch.empty(n), torch.ones(n), [n] + [0] * n, [1] * n),
            "all_to_all_single (output)",
        ),
        (
            lambda: dist.all_to_all_single(torch.empty(n), torch.ones(n), [1] * n, [2] * n),
            f"add up to {2 * n}",
        ),
        (lambda: backend.allreduce([torch.eye(2).to_mkldnn()]), "torch.strided"),
        (lambda: backend.send([torch.ones(3)], n, 0), f"rank {n}"),
        (lambda: backend.send([torch.ones(3)], 0, -1), "tag -1"),
        (lambda: backend.recv([torch.ones(3)], 0, -7), "tag -7"),
        (lambda: backend.allreduce([torch.ones(1), torch.ones(1)]), "one tensor", "not 2"),
    ]
    for number, (call, *words) in enumerate(refused):
        try:
            with Raises(ValueError, *words):
                call()
        except AssertionError as failure:
            raise AssertionError(f"call {number}: {failure}") from failure
        works()


def check_unknown_options():
    with Raises(ValueError, "speed", "FASTHOROVOD_"):
        dist.new_group(list(range(size())), pg_options={"speed": "high"})
    works()


@needs_peers
def check_abort():
    group = dist.new_group(list(range(size())))
    work = None
    if rank() == 0:
        work = dist.irecv(torch.empty(3), 1, group=group)
        start = time.monotonic()
        group._get_backend(torch.device("cpu")).abort()
        with Raises(dist.DistBackendError):
            work.wait()
        assert time.monotonic() - start < 1
        with Raises(dist.DistBackendError, "shut down or aborted"):
            dist.all_reduce(torch.ones(3), group=group)
    works()
