#!/usr/bin/env python3
"""Does harm to running jobs at random moments, and checks what the survivors make of it.

    fault_script.py --tries 20 [--seed 1] [--only "launcher.*SIGKILL"]

A cell is a starter, a role and a kind of fault. Each try of a cell draws the number of ranks, the
size of the operations, the victim and the moment from its seed; the same seed makes the same draw.
After each try the oracle asks: did every survivor end in time with code 1, do all of them name the
injected culprit, is anything left of the job?

Starters: "by hand" and "launcher" run fasthorovod-bench; "c10d" and "hvd" run a torch program
through that door, with ranks started by hand; "torchrun" is torchrun.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import time

from fault_job import BENCH, LAUNCHER, HandJob, LauncherJob, Plan
from fault_kinds import CELLS, KINDS, Cell, OverTooEarlyError, Try, is_possible, limit_of
from fault_oracle import judge
from torch_job import TorchJob, TorchPlan, TorchrunJob

SIZES = ["4K", "1M", "64M"]
LONGEST_MOMENT_S = 0.6
MOST_ITERATIONS = 1_000_000  # fasthorovod-bench takes no more
MOST_STARTS = 20
STARTERS = {
    "by hand": HandJob,
    "launcher": LauncherJob,
    "c10d": TorchJob,
    "hvd": TorchJob,
    "torchrun": TorchrunJob,
}


# --- one try ---


def draw(cell: Cell, seed: int) -> Try:
    """Everything random about a try."""
    kind = KINDS[cell.kind]
    source = random.Random(f"{cell} {seed}")
    size = source.randint(max(2, kind.victims + 1), 4)
    ranks = source.sample(range(1, size), size - 1)
    if cell.role == "rank 0":
        order = [0, *ranks]
    elif cell.role == "another":
        order = [*ranks, 0]
    else:
        order = source.sample(range(size), size)
    victims = order[: kind.victims]
    plan = Plan(size, source.choice(SIZES), settings=kind.settings)
    if cell.kind == "SIGKILL in start":
        plan.late = source.choice([rank for rank in range(size) if rank not in victims])
    if cell.kind == "orderly exit":
        plan.bytes = "1M"
        plan.fewer = {victims[0]: source.randint(20, 400)}
    if cell.kind == "SIGSTOP, SIGCONT":
        plan.bytes, plan.iterations = source.choice([("64K", 3000), ("4M", 80), ("64M", 6)])
    if cell.kind == "children end":
        plan.bytes, plan.iterations = "1M", 12
    moment_s = source.uniform(0, LONGEST_MOMENT_S)
    if cell.kind == "SIGSTOP, SIGCONT":
        moment_s /= 3
    # Ranks of one host meet in shared memory, those of different hosts over TCP.
    plan.hosts = source.choice([2, size] if kind.of_auxiliary else [1, 2, size])
    attempt = Try(cell, seed, size, victims, moment_s, plan)
    if issubclass(STARTERS[cell.starter], (TorchJob, TorchrunJob)):
        attempt.plan = torch_plan(attempt)
    return attempt


def torch_plan(attempt: Try) -> TorchPlan:
    """The same plan for a torch program."""
    kind = KINDS[attempt.cell.kind]
    door = "hvd" if attempt.cell.starter == "hvd" else "c10d"
    return TorchPlan(
        **vars(attempt.plan),
        door=door,
        children=kind.children,
        disagree=kind.disagree,
        seed=attempt.seed,
    )


def run_try(cell: Cell, seed: int) -> Try:
    """Starts a job, does the harm and asks the oracle. A job that was over before all of the harm
    was done (or ended between two kills, by the first one) is started again, with more to do."""
    attempt = draw(cell, seed)
    for _ in range(MOST_STARTS):
        try:
            with STARTERS[cell.starter](attempt.plan) as job:
                judge(job, attempt, KINDS[cell.kind].strike(job, attempt))
            return attempt
        except OverTooEarlyError:
            attempt.plan.iterations = min(2 * attempt.plan.iterations, MOST_ITERATIONS)
    raise RuntimeError(f"{attempt}: the job was over too early {MOST_STARTS} times")


# --- by hand ---

HEAD = (
    f"{'starter':<9} {'role':<7} {'kind':<18} {'tries':>5} {'limit(s)':>8} {'worst(s)':>8} "
    f"{'median':>7} {'culprit':>8} {'left':>5} {'other':>6}"
)


def row_of(cell: Cell, tries: list[Try]) -> str:
    """One line of the table: times, and in how many tries something was wrong."""
    times = [attempt.took_s for attempt in tries]
    culprit, left, other = (
        sum(bool(getattr(attempt, name)) for attempt in tries)
        for name in ("wrong_culprits", "leftovers", "other")
    )
    return (
        f"{cell!s:<36} {len(tries):>5} {limit_of(cell):>8} {max(times):>8.2f} "
        f"{statistics.median(times):>7.2f} {culprit:>8} {left:>5} {other:>6}"
    )


def run_cell(cell: Cell, options: argparse.Namespace, done: str) -> list[Try]:
    """All tries of a cell; says on a terminal how far it is."""
    tries = []
    for number in range(options.tries):
        if sys.stderr.isatty():
            text = f"{done}: {cell}, try {number + 1} of {options.tries}"
            print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)
        tries.append(run_try(cell, options.seed + number))
    if sys.stderr.isatty():
        print(f"\r{'':<78}\r", end="", file=sys.stderr, flush=True)
    return tries


def main() -> int:
    """Runs the cells and prints the table, a line as soon as its tries are through."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=5, help="tries a cell")
    parser.add_argument("--seed", type=int, default=1, help="seed of each cell's first try")
    parser.add_argument("--only", default="", help="only cells that match this expression")
    options = parser.parse_args()
    if BENCH is None or LAUNCHER is None:
        parser.error("fasthorovod-bench and fasthorovodrun are not built")
    cells = [cell for cell in CELLS if is_possible(cell) and re.search(options.only, str(cell))]
    began = time.monotonic()
    print(HEAD, flush=True)
    wrong = 0
    for number, cell in enumerate(cells):
        tries = run_cell(cell, options, f"{number} of {len(cells)} cells")
        print(row_of(cell, tries), flush=True)
        for attempt in tries:
            wrong += bool(attempt.problems)
            for problem in attempt.problems:
                print(f"  {attempt}\n    {problem}", flush=True)
    count = len(cells) * options.tries
    print(f"{count} tries in {time.monotonic() - began:.0f} s, {wrong} with something wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
