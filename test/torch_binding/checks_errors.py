"""Ranks that disagree all get an error that says so, and the next operation works."""

import fasthorovod.torch as hvd
import torch
from checks_common import Raises, needs_peers


def fails_everywhere_then_works(call, *words):
    with Raises(hvd.HorovodInternalError, *words) as caught:
        call()
    assert isinstance(caught.error, RuntimeError)
    assert caught.error.code == "mismatch between ranks", caught.error.code
    for _ in range(3):
        assert hvd.allreduce(torch.ones(5), op=hvd.Sum)[0] == hvd.size()
    hvd.barrier()


@needs_peers
def check_different_shapes():
    mine = torch.ones(3 + hvd.rank(), 2)
    fails_everywhere_then_works(lambda: hvd.allreduce(mine, name="shapes"), "shapes")
    other_rank = torch.ones(6) if hvd.rank() else torch.ones(2, 3)
    fails_everywhere_then_works(lambda: hvd.allreduce(other_rank, name="same count"))
    scalar = torch.tensor(1.0) if hvd.rank() else torch.ones(1)
    fails_everywhere_then_works(lambda: hvd.allreduce(scalar, name="scalar"))
    fails_everywhere_then_works(lambda: hvd.broadcast(mine, 0, name="b"))
    inner = torch.ones(2, 3 + hvd.rank())
    fails_everywhere_then_works(lambda: hvd.allgather(inner, name="g"))


@needs_peers
def check_different_types():
    mine = torch.ones(4, dtype=torch.float32 if hvd.rank() else torch.float64)
    fails_everywhere_then_works(lambda: hvd.allreduce(mine, name="t"), "float32", "float64")
    fails_everywhere_then_works(lambda: hvd.allgather(mine, name="t"))
    fails_everywhere_then_works(lambda: hvd.broadcast(mine, 0, name="t"))


@needs_peers
def check_different_reductions():
    op = hvd.Sum if hvd.rank() else hvd.Max
    fails_everywhere_then_works(lambda: hvd.allreduce(torch.ones(4), op=op, name="o"))
    factor = 2.0 if hvd.rank() else 1.0
    fails_everywhere_then_works(
        lambda: hvd.allreduce(torch.ones(4), prescale_factor=factor, name="p")
    )


@needs_peers
def check_different_roots():
    fails_everywhere_then_works(lambda: hvd.broadcast(torch.ones(2), min(hvd.rank(), 1), name="r"))


@needs_peers
def check_different_kinds_without_a_name():
    call = hvd.allgather if hvd.rank() else hvd.allreduce
    fails_everywhere_then_works(lambda: call(torch.ones(4)))


@needs_peers
def check_mismatch_after_a_warm_cache():
    for _ in range(3):
        hvd.allreduce(torch.ones(4), name="warm")
    mine = torch.ones(4 + hvd.rank())
    fails_everywhere_then_works(lambda: hvd.allreduce(mine, name="warm"))
    assert torch.equal(hvd.allreduce(torch.ones(4), name="warm"), torch.ones(4))


@needs_peers
def check_a_name_in_flight_is_refused_at_once():
    hvd.barrier()
    if hvd.rank() == 0:
        first = hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Sum)
        with Raises(ValueError, "twice"):
            hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Sum)
        hvd.barrier()
    else:
        hvd.barrier()
        first = hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Sum)
    assert hvd.synchronize(first)[0] == hvd.size()
    assert hvd.allreduce(torch.ones(2), name="twice", op=hvd.Sum)[0] == hvd.size()


@needs_peers
def check_mismatch_in_a_group():
    shapes = [(2,), (3 + hvd.rank(),)]
    with Raises(hvd.HorovodInternalError):
        hvd.grouped_allreduce([torch.ones(s) for s in shapes], name="group")
    assert hvd.allreduce(torch.ones(5), op=hvd.Sum)[0] == hvd.size()


def check_join_with_uneven_data():
    for warm in (False, True):
        steps = 2 + hvd.rank()
        for step in range(2 + hvd.size() - 1):
            if step >= steps:
                break
            still_there = sum(step < 2 + r for r in range(hvd.size()))
            result = hvd.allreduce(torch.ones(3), name=f"step.{step}" if warm else None)
            torch.testing.assert_close(result, torch.full((3,), still_there / hvd.size()))
        last = hvd.join()
        assert 0 <= last < hvd.size()
        assert hvd.allgather(torch.tensor([last])).unique().numel() == 1
        if hvd.size() > 1:
            assert last != 0
        # Unnamed operations are in step again, though the ranks called different numbers of them.
        assert torch.equal(hvd.allreduce(torch.ones(2)), torch.ones(2))


@needs_peers
def check_other_collectives_fail_while_a_rank_has_joined():
    if hvd.rank() == 0:
        hvd.join()
    else:
        with Raises(hvd.HorovodInternalError):
            hvd.allgather(torch.ones(2), name="while joined")
        with Raises(hvd.HorovodInternalError):
            hvd.broadcast(torch.ones(2), 1, name="while joined")
        hvd.join()
    assert torch.equal(hvd.allreduce(torch.ones(2)), torch.ones(2))
