"""Handles of operations in flight, and the names that ranks match them by."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

# Number -> (operation, tensors given, whether one result or a tuple is returned).
_operations: dict = {}


class Handle(int):
    """An operation in flight. Equal to its number, which is what Horovod hands out.

    The operation's result is kept until synchronize(), or until this object is gone: an operation
    nobody asks about holds no memory once it is done.
    """

    def __del__(self, _operations=_operations) -> None:
        _operations.pop(self, None)


_numbers = itertools.count()


class NoOperation:
    """What an operation on no tensors is: done, with no results."""

    last_joined = -1

    def done(self) -> bool:
        return True

    def finish(self) -> list:
        return []


def new_handle(operation, tensors=(), single: bool = True) -> Handle:
    """A handle for an operation whose in-place results are in `tensors`."""
    handle = Handle(next(_numbers))
    _operations[int(handle)] = (operation, tensors, single)
    return handle


def poll(handle: int) -> bool:
    """Whether the operation is done, so that synchronize() would not wait.

    Raises ValueError for a handle that is not in flight: never given out, or synchronized already.
    """
    entry = _operations.get(handle)
    if entry is None:
        raise ValueError(f"handle {int(handle)} is not of an operation in flight")
    return entry[0].done()


def synchronize(handle: int):
    """Waits for the operation and returns its result: a tensor, or a tuple for grouped operations.

    Results of in-place operations are in the tensor only after this. Returns None for a handle that
    is not in flight. Raises HorovodInternalError when the operation failed. Other threads run
    meanwhile, and Ctrl-C interrupts the wait.
    """
    entry = _operations.pop(handle, None)
    if entry is None:
        return None
    operation, given, single = entry
    try:
        results = operation.finish()
    except KeyboardInterrupt:
        _operations[int(handle)] = entry
        raise
    # The extension answers None where the result is in the tensor that was given.
    results = tuple(given[i] if one is None else one for i, one in enumerate(results))
    if single:
        return results[0] if results else None
    return results


class _UnnamedOperations:
    """Numbers for operations without a name: the same on all ranks that call them in one order.

    Each process set counts for itself, since a rank calls nothing in the sets of others. The kind
    of operation is no part of the name, so ranks that call different kinds are told so, instead of
    waiting for each other. A generation ends with a join, before which ranks call different numbers
    of operations.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = 0
        self._next = Counter()  # by process set

    def take(self, process_set: int) -> str:
        with self._lock:
            number = self._next[process_set]
            self._next[process_set] += 1
            return f"noname.{self._generation}.{number}"

    def start_generation(self, generation: int | None = None) -> None:
        with self._lock:
            self._generation = self._generation + 1 if generation is None else generation
            self._next.clear()


_unnamed = _UnnamedOperations()


def operation_name(kind: str, name: str | None, process_set: int = 0) -> str:
    """The name that all ranks of a process set, given by its number, know an operation by."""
    return _unnamed.take(process_set) if name is None else f"{kind}.{name}"


def restart_names() -> None:
    """A new engine: unnamed operations count from the start."""
    _unnamed.start_generation(0)


def all_joined() -> None:
    """All ranks are in step again, whatever number of operations each called before."""
    _unnamed.start_generation()
