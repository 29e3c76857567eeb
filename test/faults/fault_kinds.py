"""Kinds of faults, and the cells: who is harmed how, and what is promised then."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from fault_job import HandJob, Job, Plan, wait_until
from torch_job import HAS_TORCH, TorchJob

STALL_S = 3
START_TIMEOUT_S = 2
# Promises: until the last survivor of ranks started by hand has ended; until a launcher returns.
HAND_LIMIT_S = 2
STALL_LIMIT_S = STALL_S + 5
START_LIMIT_S = START_TIMEOUT_S + 3
MISMATCH_LIMIT_S = 1
AUXILIARY_STALL_LIMIT_S = 12
LAUNCHER_LIMIT_S = 9
FINISH_LIMIT_S = 30
STALL = {"FASTHOROVOD_STALL_SHUTDOWN_TIME_SECONDS": str(STALL_S)}
AUXILIARIES = {"FASTHOROVOD_LANES": "2", "FASTHOROVOD_AUX": "1"}


class Cell(NamedTuple):
    """What is done to whom."""

    starter: str
    role: str
    kind: str

    def __str__(self) -> str:
        return f"{self.starter:<9} {self.role:<7} {self.kind}"


@dataclass
class Try:
    """One try: what was drawn, and what came of it."""

    cell: Cell
    seed: int
    size: int
    victims: list[int]
    moment_s: float
    plan: Plan
    took_s: float = 0.0
    wrong_culprits: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """Everything the oracle did not like."""
        return self.wrong_culprits + self.leftovers + self.other

    @property
    def survivors(self) -> set[int]:
        """The ranks that are to live until they have told what happened."""
        ranks = set(range(self.size))
        return ranks if KINDS[self.cell.kind].of_auxiliary else ranks - set(self.victims)

    def __str__(self) -> str:
        return (
            f"{self.cell}, seed {self.seed}: {self.size} ranks, {self.plan.bytes}, victims "
            f"{self.victims}, after {self.moment_s:.3f} s: took {self.took_s:.2f} s"
        )


@dataclass(frozen=True)
class Kind:
    """A kind of fault: how the plan of the job changes, the harm, and what is promised then."""

    strike: Callable[[Job, Try], float]  # returns when it happened
    limit_s: float = HAND_LIMIT_S
    survivors_code: int = 1
    launcher_code: int = 1  # of the first worker that fails
    victims: int = 1
    of_auxiliary: bool = False  # harms not the victim itself but its auxiliary
    says: str = ""  # what every survivor says besides the culprit
    settings: dict[str, str] = field(default_factory=dict)
    children: str = ""  # torch jobs: what the ranks have forked
    disagree: str = ""  # torch jobs: about what the ranks disagree


class OverTooEarlyError(Exception):
    """The job ended well before its fault was due."""


def send(number: int) -> Callable[[Job, Try], float]:
    """Harm: the victims get a signal, at the drawn moment of a running loop."""

    def strike(job: Job, attempt: Try) -> float:
        job.wait_until_busy()
        time.sleep(attempt.moment_s)
        pids = job.pids()
        try:
            for victim in attempt.victims:
                os.kill(pids[victim], number)
        except (KeyError, ProcessLookupError):
            raise OverTooEarlyError from None
        return time.monotonic()

    return strike


def send_to_auxiliary(number: int) -> Callable[[Job, Try], float]:
    """Harm: the victim's auxiliary gets a signal, at the drawn moment after its first flow."""

    def strike(job: Job, attempt: Try) -> float:
        [victim] = attempt.victims
        job.wait_until_busy()
        if not wait_until(lambda: job.auxiliary(victim), FINISH_LIMIT_S):
            raise RuntimeError(f"no auxiliary of rank {victim} has flows: {job.errors()}")
        time.sleep(attempt.moment_s)
        os.kill(job.auxiliary(victim), number)
        return time.monotonic()

    return strike


def kill_a_parent(job: TorchJob, attempt: Try) -> float:
    """Harm: the victim dies, but not the children it has forked, which sleep."""
    [victim] = attempt.victims
    job.wait_until_busy()
    if not wait_until(lambda: job.children(victim), FINISH_LIMIT_S):
        raise RuntimeError(f"rank {victim} has no children: {job.errors()}")
    return send(signal.SIGKILL)(job, attempt)


def stop_and_continue(job: Job, attempt: Try) -> float:
    """Harm: the victim stands still for a second."""
    happened = send(signal.SIGSTOP)(job, attempt)
    time.sleep(1)
    [victim] = attempt.victims
    if victim not in job.pids():  # it was about to end when the signal came
        raise OverTooEarlyError
    os.kill(job.pids()[victim], signal.SIGCONT)
    return happened


def leave(job: Job, attempt: Try) -> float:
    """Harm: the victim has fewer iterations and ends in good order."""
    [victim] = attempt.victims
    wait_until(lambda: victim in job.pids(), FINISH_LIMIT_S)
    wait_until(lambda: job.is_busy() or victim not in job.pids(), FINISH_LIMIT_S)
    job.note_what_it_has()
    wait_until(lambda: victim not in job.pids(), FINISH_LIMIT_S)
    return time.monotonic()


def kill_during_start(job: Job, attempt: Try) -> float:
    """Harm: the victim dies while a rank is still awaited, which comes only then."""
    [victim] = attempt.victims
    wait_until(lambda: victim in job.pids(), FINISH_LIMIT_S)
    time.sleep(attempt.moment_s)
    job.note_what_it_has()
    happened = time.monotonic()
    os.kill(job.pids()[victim], signal.SIGKILL)
    if isinstance(job, HandJob):
        job.start_rank(attempt.plan.late)
    return happened


def watch(job: Job, _attempt: Try) -> float:
    """No harm: what the ranks do to themselves is enough."""
    job.wait_until_busy()
    return time.monotonic()


KILLED = 128 + signal.SIGKILL
KINDS = {
    "SIGKILL": Kind(send(signal.SIGKILL), launcher_code=KILLED),
    "SIGTERM": Kind(send(signal.SIGTERM), launcher_code=128 + signal.SIGTERM),
    "SIGSTOP": Kind(send(signal.SIGSTOP), limit_s=STALL_LIMIT_S, settings=STALL),
    "SIGSTOP, SIGCONT": Kind(
        stop_and_continue,
        limit_s=FINISH_LIMIT_S,
        survivors_code=0,
        launcher_code=0,
        settings=STALL,
    ),
    "orderly exit": Kind(leave, says="shut down"),
    "two SIGKILL": Kind(send(signal.SIGKILL), launcher_code=KILLED, victims=2),
    "SIGKILL in start": Kind(
        kill_during_start,
        limit_s=START_LIMIT_S,
        launcher_code=KILLED,
        settings={"FASTHOROVOD_START_TIMEOUT": str(START_TIMEOUT_S)},
    ),
    "auxiliary SIGKILL": Kind(
        send_to_auxiliary(signal.SIGKILL),
        of_auxiliary=True,
        says="auxiliary",
        settings=AUXILIARIES,
    ),
    "auxiliary SIGSTOP": Kind(
        send_to_auxiliary(signal.SIGSTOP),
        limit_s=AUXILIARY_STALL_LIMIT_S,
        of_auxiliary=True,
        says="auxiliary",
        settings=AUXILIARIES,
    ),
    "SIGKILL, loader": Kind(kill_a_parent, children="loader"),
    "SIGKILL, fork": Kind(kill_a_parent, children="fork"),
    "children end": Kind(
        watch, limit_s=FINISH_LIMIT_S, survivors_code=0, victims=0, children="ending"
    ),
    **{
        f"other {what}": Kind(
            watch, limit_s=MISMATCH_LIMIT_S, survivors_code=0, victims=0, disagree=what
        )
        for what in ("shape", "type", "operation")
    },
}
BENCH_KINDS = [
    "SIGKILL",
    "SIGTERM",
    "SIGSTOP",
    "SIGSTOP, SIGCONT",
    "orderly exit",
    "two SIGKILL",
    "SIGKILL in start",
]
TORCH_KINDS = {
    "c10d": ["SIGKILL", "SIGSTOP", "SIGSTOP, SIGCONT", "orderly exit", "two SIGKILL"],
    "hvd": ["SIGKILL", "SIGSTOP"],
    "torchrun": ["SIGKILL"],
}
CALM_KINDS = {
    "c10d": ["SIGKILL, loader", "children end", "other shape", "other type", "other operation"],
    "hvd": ["SIGKILL, fork", "children end", "other shape", "other type", "other operation"],
}
ROLES = ["rank 0", "another"]
CELLS = [
    *(
        Cell(starter, role, kind)
        for starter in ("by hand", "launcher")
        for kind in BENCH_KINDS
        for role in ROLES
    ),
    *(Cell("by hand", role, "auxiliary SIGKILL") for role in ROLES),
    Cell("by hand", "any", "auxiliary SIGSTOP"),
    Cell("launcher", "any", "auxiliary SIGKILL"),
    *(
        Cell(door, role, kind)
        for door, kinds in TORCH_KINDS.items()
        for kind in kinds
        for role in ROLES
    ),
    *(Cell(door, "any", kind) for door, kinds in CALM_KINDS.items() for kind in kinds),
]


def limit_of(cell: Cell) -> float:
    """Until when all must be over: the survivors, or whoever started them, which takes longer."""
    limit_s = KINDS[cell.kind].limit_s
    if cell.starter == "launcher":
        return max(LAUNCHER_LIMIT_S, limit_s + LAUNCHER_LIMIT_S - HAND_LIMIT_S)
    return limit_s


def is_possible(cell: Cell) -> bool:
    """Whether what the cell needs is installed."""
    return HAS_TORCH or cell.starter in ("by hand", "launcher")
