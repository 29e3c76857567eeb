"""Sets of ranks that run collectives among themselves.

Sets live as long as the engine: shutdown() ends them, and the objects can be added again after the
next init(). All ranks of the world add and remove the same sets in the same order, whether they are
in them or not.
"""

from __future__ import annotations

from collections.abc import Iterable


def _world():
    """This process's place in the world. ValueError before init()."""
    from .. import _C

    return _C.world()


class ProcessSet:
    """Some ranks. Pass it to add_process_set() or init(), then as process_set= to collectives.

    ranks: their numbers in the world, ascending. process_set_id: None until it is added, and after
    it was removed or the engine stopped.
    """

    mpi_comm = None  # Horovod's; never set here

    def __init__(self, ranks_or_comm) -> None:
        """Takes a list of ranks, in any order. ValueError for anything else, also for an MPI
        communicator."""
        if not isinstance(ranks_or_comm, Iterable) or isinstance(ranks_or_comm, (str, bytes)):
            raise ValueError(
                f"a ProcessSet is made of a list of ranks, not of {ranks_or_comm!r}; FastHorovod "
                "does not use MPI communicators"
            )
        ranks = list(ranks_or_comm)
        if any(isinstance(rank, bool) or not isinstance(rank, int) or rank < 0 for rank in ranks):
            raise ValueError(f"the ranks of a ProcessSet are numbers from 0, not {ranks!r}")
        if len(set(ranks)) != len(ranks):
            raise ValueError(f"a ProcessSet has each of its ranks once, not {ranks!r}")
        self.ranks: list[int] | None = sorted(ranks)
        self._registered = None  # (epoch of the engine, number)

    @property
    def process_set_id(self) -> int | None:
        """Its number, the same on all ranks; None while it cannot be used."""
        if self._registered is None:
            return None
        try:
            epoch = _world().epoch
        except ValueError:
            return None
        return self._registered[1] if self._registered[0] == epoch else None

    def size(self) -> int | None:
        """How many ranks it has; None while it cannot be used."""
        return None if self.process_set_id is None else len(self.ranks)

    def rank(self) -> int | None:
        """This process's place in it; None while it cannot be used. ValueError on other ranks."""
        if self.process_set_id is None:
            return None
        if not self.included():
            raise ValueError(f"rank {_world().rank} is not in {self}")
        return self.ranks.index(_world().rank)

    def included(self) -> bool | None:
        """Whether this process belongs to it; None while it cannot be used."""
        return None if self.process_set_id is None else _world().rank in self.ranks

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class _GlobalProcessSet(ProcessSet):
    """All ranks."""

    process_set_id = 0

    def __init__(self) -> None:
        pass

    @property
    def ranks(self) -> list[int]:
        """The ranks in it, in order. ValueError before init()."""
        return list(range(self.size()))

    def size(self) -> int:
        """How many ranks it has. ValueError before init()."""
        return _world().size

    def rank(self) -> int:
        """This process's place in it. ValueError before init()."""
        return _world().rank

    def included(self) -> bool:
        """Whether this process belongs to it: always."""
        return True

    def __repr__(self) -> str:
        return "global_process_set"


global_process_set = _GlobalProcessSet()

# Number -> the objects that stand for it; of the engine with this epoch.
_objects: dict = {}
_objects_epoch = None


def _current_objects() -> dict:
    global _objects_epoch  # noqa: PLW0603 - follows the engine
    epoch = _world().epoch
    if _objects_epoch != epoch:
        _objects.clear()
        _objects_epoch = epoch
    return _objects


def register(process_set: ProcessSet, number: int) -> None:
    """All ranks know the set by this number from now on."""
    process_set._registered = (_world().epoch, number)
    _current_objects().setdefault(number, []).append(process_set)


def registered_as(process_set: ProcessSet) -> int | None:
    """The number of the set of these ranks, if this process knows one."""
    for number, objects in _current_objects().items():
        if objects[0].ranks == process_set.ranks:
            return number
    return None


def invalidate(number: int) -> None:
    """The set is gone: no object stands for it any more."""
    for process_set in _current_objects().pop(number, []):
        process_set._registered = None
        process_set.ranks = None


def process_set_by_id(process_set_id: int) -> ProcessSet:
    """An object for the set of that number. ValueError when there is none."""
    if process_set_id == 0:
        return global_process_set
    if process_set_id not in _current_objects():
        raise ValueError(f"there is no process set {process_set_id}")
    return _current_objects()[process_set_id][0]


def process_sets() -> list[ProcessSet]:
    """An object for each set there is, in order of their numbers."""
    return [global_process_set, *(_current_objects()[n][0] for n in sorted(_current_objects()))]


def registered(process_set) -> int:
    """The number of a set, or ValueError that says what to do."""
    if not isinstance(process_set, ProcessSet):
        raise ValueError(f"process_set must be a ProcessSet, not {process_set!r}")
    number = process_set.process_set_id
    if number is None:
        _world()  # says so when it is init() that is missing
        raise ValueError(
            f"{process_set!r} is not registered; call hvd.add_process_set() on all ranks first"
        )
    return number


def usable(process_set) -> int:
    """The number of a set for an operation of this process, or ValueError that says what to do."""
    number = registered(process_set)
    if not process_set.included():
        raise ValueError(f"rank {_world().rank} is not in {process_set!r}")
    return number
