"""What the checks of the torch.distributed door share."""

import torch
import torch.distributed as dist
from checks_common import FLOATS, TYPES, Raises, needs_peers, same, values

__all__ = [
    "FLOATS",
    "MOVED_TYPES",
    "SIZES",
    "TYPES",
    "Raises",
    "all_values",
    "equal_bytes",
    "moved",
    "needs_peers",
    "rank",
    "reduced",
    "same",
    "size",
    "values",
]

SIZES = [0, 1, 7, 1000, 40_000]
MOVED_TYPES = [*TYPES, torch.complex64, torch.complex128, torch.float8_e4m3fn]


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def moved(of_rank, shape, dtype, seed=0):
    """A rank's values, in any type that can be moved."""
    if dtype.is_complex or dtype not in TYPES:
        return values(of_rank, shape, torch.float32, seed).to(dtype)
    return values(of_rank, shape, dtype, seed)


def all_values(shape, dtype, seed=0, ranks=None):
    """The values of some ranks, in order, in a type wide enough to calculate with."""
    wide = torch.float64 if dtype in FLOATS else torch.int64
    ranks = range(size()) if ranks is None else ranks
    return torch.stack([values(r, shape, dtype, seed).to(wide) for r in ranks])


def reduced(op, everything, dtype):
    """What a reduction must give."""
    if op == dist.ReduceOp.AVG:
        if dtype in FLOATS:
            return (everything.sum(0) / len(everything)).to(dtype)
        return torch.div(everything.sum(0), len(everything), rounding_mode="trunc").to(dtype)
    results = {
        dist.ReduceOp.SUM: lambda: everything.sum(0),
        dist.ReduceOp.MIN: lambda: everything.amin(0),
        dist.ReduceOp.MAX: lambda: everything.amax(0),
        dist.ReduceOp.PRODUCT: lambda: everything.prod(0),
    }
    return results[op]().to(dtype)


def equal_bytes(a, b):
    """The same type, shape and bits."""
    assert a.dtype == b.dtype, (a.dtype, b.dtype)
    assert a.shape == b.shape, (a.shape, b.shape)
    bits = [t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (a, b)]
    assert torch.equal(*bits), (a, b)
