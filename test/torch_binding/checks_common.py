"""What the checks share."""

import os

import fasthorovod.torch as hvd
import torch

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.uint32,
    torch.int32,
    torch.uint64,
    torch.int64,
]
TYPES = [torch.bool, *INTEGERS, *FLOATS]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]


def needs_peers(function):
    """Marks a check that makes no sense in a world of one."""
    function.smallest_world = 2
    return function


def values(rank, shape, dtype, seed=0):
    """A rank's values: small, so that sums and products of a few ranks are exact in any type."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).to(dtype)
    low = -4 if dtype in SIGNED + FLOATS else 0
    whole = torch.randint(low, 5, shape, generator=generator)
    return (whole.double() / 2).to(dtype) if dtype in FLOATS else whole.to(dtype)


def of_all(shape, dtype, seed=0):
    """The values of all ranks, in order, in a type wide enough to calculate with."""
    wide = torch.float64 if dtype in FLOATS else torch.int64
    return torch.stack([values(r, shape, dtype, seed).to(wide) for r in range(hvd.size())])


def expected(op, everything, dtype):
    """What an all-reduce must give."""
    if op == hvd.Average and dtype not in FLOATS:
        return torch.div(everything.sum(0), hvd.size(), rounding_mode="trunc").to(dtype)
    results = {
        hvd.Average: lambda: everything.sum(0) / hvd.size(),
        hvd.Sum: lambda: everything.sum(0),
        hvd.Min: lambda: everything.amin(0),
        hvd.Max: lambda: everything.amax(0),
        hvd.Product: lambda: everything.prod(0),
    }
    return results[op]().to(dtype)


def same(a, b):
    """Equal in type, shape and every bit of value; an average may be rounded twice."""
    assert a.dtype == b.dtype, (a.dtype, b.dtype)
    assert a.shape == b.shape, (a.shape, b.shape)
    if a.dtype in FLOATS:
        tolerance = torch.finfo(a.dtype).eps
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        assert torch.equal(a, b), (a, b)


def equal_on_all_ranks(tensor):
    """Every rank holds the same bits."""
    bits = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    rows = hvd.allgather(bits.unsqueeze(0))
    assert all(torch.equal(row, rows[0]) for row in rows)


class Raises:
    """A block must raise this error; afterwards `.error` holds it."""

    def __init__(self, kind, *words):
        self.kind = kind
        self.words = words

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        assert kind is not None, f"no {self.kind.__name__}"
        if not issubclass(kind, self.kind):
            return False
        for word in self.words:
            assert word in str(error), f"{word!r} is not in {error}"
        self.error = error
        return True


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# An engine opens some things when it first needs them (the descriptors of its timers): one engine
# may have them, the next one not. A hundred cycles that leave something behind leave a hundred.
LATE_OPENINGS = 8


def expect_no_growth(cycle):
    """A hundred cycles leave no thread and no descriptor behind, and less than 40 KiB each, a tenth
    of the 400 KB that a cycle works on. The first cycles, which fill pools for good, do not count.
    """

    def entries():
        return [len(os.listdir(f"/proc/self/{name}")) for name in ("task", "fd")]

    for _ in range(20):
        cycle()
    before, memory = entries(), resident_bytes()
    for _ in range(100):
        cycle()
    for now, then in zip(entries(), before, strict=True):
        assert now <= then + LATE_OPENINGS, (entries(), before)
    grown = resident_bytes() - memory
    assert grown < 100 * (40 << 10), grown
