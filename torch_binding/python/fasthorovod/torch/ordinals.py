"""Numbers that tell the optimizers of a process set apart, in the names of their operations.

The ranks of a set make their optimizers in one order, so the numbers are the same on all of them. A
number of a set may be used again, by an engine that follows or for other ranks; those start anew.
"""

from __future__ import annotations

from collections import Counter

_next = Counter()  # by kind of optimizer and number of the set


def next_ordinal(kind: str, process_set) -> int:
    """0, 1, ... for the optimizers of one kind in a set."""
    key = (kind, process_set.process_set_id)
    ordinal = _next[key]
    _next[key] += 1
    return ordinal


def restart(number: int) -> None:
    """A set that has just been made has this number."""
    for key in [key for key in _next if key[1] == number]:
        del _next[key]
