"""Tensors in the memory that the ranks of a host share.

Ranks of one host read each other's shared memory where it is: an all-reduce of a tensor that lies
there needs no copies for the others. Results are the same to the bit, and ranks may differ in where
theirs lie.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import torch

from .. import _C


def empty_shared(*size, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor like torch.empty(*size, dtype=dtype), in the memory that ranks of this host share.

    The memory is this rank's own: other ranks read it during an operation on it, and never write.
    It is taken from FASTHOROVOD_ARENA_MB and comes back when the tensor and its views are gone. The
    tensor stays valid after shutdown(); for an engine that is started later it is memory like any
    other. A child made by fork must not touch it (a data loader's worker, say). Where ranks share
    no memory, with one rank on each host, it is ordinary memory.

    Raises ValueError before hvd.init() or torch.distributed.init_process_group("fasthorovod"), and
    MemoryError when there is no room, with what is taken and what the limit is.
    """
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    return _C.empty_shared(list(size), dtype or torch.get_default_dtype())


@dataclass(frozen=True)
class SharedAllocations:
    """What torch allocated of that size while shared_allocator() was on: bytes, since it began."""

    _shared_before: int
    _missed_before: int

    @property
    def shared_bytes(self) -> int:
        """In shared memory."""
        return _C.shared_allocations()[0] - self._shared_before

    @property
    def missed_bytes(self) -> int:
        """Elsewhere, because no engine ran or there was no room."""
        return _C.shared_allocations()[1] - self._missed_before


@contextmanager
def shared_allocator(min_bytes: int = 1 << 20):
    """While it is on, torch's CPU tensors of min_bytes and more are made in shared memory.

    For memory that torch allocates by itself, such as the buckets of DistributedDataParallel: make
    the model and run its first two steps inside, for it makes its buckets anew in the second one.

        with hvd.shared_allocator() as made:
            model = DistributedDataParallel(model, gradient_as_bucket_view=True)
            ... two steps ...
        print(made.shared_bytes, made.missed_bytes)

    It holds for all threads of the process, and may be nested: the inner one counts. What finds no
    room, or is made while no engine runs, is ordinary memory; missed_bytes tells how much. What
    empty_shared() says of lifetime and of forks holds for every tensor made inside. ValueError when
    min_bytes is not positive.
    """
    if min_bytes <= 0:
        raise ValueError(f"shared_allocator: min_bytes must be positive, not {min_bytes}")
    made = SharedAllocations(*_C.shared_allocations())
    before = _C.share_allocations(min_bytes)
    try:
        yield made
    finally:
        _C.share_allocations(before)
