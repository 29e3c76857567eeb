"""Adding and removing sets of ranks, which all ranks of the world do together."""

from __future__ import annotations

from .. import _C
from ..common import process_sets
from ..common.process_sets import ProcessSet
from . import ordinals
from .handles import operation_name


def add_process_set(process_set) -> ProcessSet:
    """Makes a set of ranks known to all ranks; returns it. Takes a ProcessSet or a list of ranks.

    Every rank of the world calls it with the same ranks, in the same order among its other
    operations without a name, whether it is in the set or not. Blocks until all did. No setting is
    needed (Horovod asks for HOROVOD_DYNAMIC_PROCESS_SETS=1).

    Raises ValueError on all ranks when the set cannot be: one of these ranks is there already, a
    rank does not exist, or there is none; HorovodInternalError when ranks give different sets.
    """
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.ranks is None:
        raise ValueError("this ProcessSet was removed; make a new one")
    operation = _C.add_process_set(operation_name("process_set", None), process_set.ranks)
    operation.finish()
    ordinals.restart(operation.process_set_id)
    process_sets.register(process_set, operation.process_set_id)
    return process_set


def remove_process_set(process_set) -> bool:
    """Forgets a set; the object, and others of the same ranks, cannot be used any more.

    Every rank of the world calls it, as add_process_set(). What runs in the set ends well; what
    some of its ranks have not submitted fails. Returns False, and does nothing, for
    global_process_set and for a set that is not registered.
    """
    number = process_set.process_set_id
    if not number:
        return False
    name = operation_name("process_set", None)
    _C.remove_process_set(name, process_set.ranks).finish()
    process_sets.invalidate(number)
    return True


def check_initial(sets) -> list:
    """The sets that init() was given. ValueError for what cannot be, before anything starts."""
    if sets is None or (isinstance(sets, str) and sets.lower() == "dynamic"):
        return []
    if isinstance(sets, str) or not all(isinstance(each, ProcessSet) for each in sets):
        raise ValueError(
            f'process_sets must be a list of ProcessSet objects or "dynamic", not {sets!r}'
        )
    sets = [each for each in sets if each is not process_sets.global_process_set]
    ranks = [each.ranks for each in sets]
    if any(ranks.count(each) > 1 for each in ranks):
        raise ValueError(f"process_sets holds the same ranks twice: {ranks!r}")
    return sets


def add_initial(sets: list) -> None:
    """Adds those that the engine, which torch.distributed may have kept alive, does not know."""
    for each in sets:
        number = process_sets.registered_as(each)
        if number is None:
            add_process_set(each)
        else:
            process_sets.register(each, number)
