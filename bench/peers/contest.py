"""Runs the contestants of one case in turns, repetition by repetition."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import gloo_rank
from cases import Case
from contestants import Contestant, Programs, Task, clean_environment, processes_of
from hosts import remote_shell_environment
from others import Others
from process_set import ENDING_S, SILENCE_S, Forked, ProcessSet, start_programs
from results import SKIPPED_FROM, Results
from table import number, size_text


@dataclass(frozen=True)
class Plan:
    """How thoroughly to measure."""

    repetitions: int
    budget_s: float
    largest: int  # bytes


@dataclass(frozen=True)
class Place:
    """Where a case runs: hosts that are up."""

    case: Case
    hosts: list
    programs: Programs

    def environment(self) -> dict[str, str]:
        """For every process."""
        return {
            **clean_environment(),
            **remote_shell_environment(self.hosts),
            "OMP_NUM_THREADS": "1",
        }

    def start(self, contestant: Contestant, task: Task):
        """What starts a process set of a contestant."""
        if contestant.kind == "gloo":
            return self._gloo(contestant, task)
        places = [host.ipv4 for host in self.hosts]
        processes = processes_of(self.case, contestant, task, self.programs, places)
        return start_programs(processes, self.hosts, self.environment())

    def _gloo(self, contestant: Contestant, task: Task):
        # A store that another set has used would send the ranks to addresses that are gone.
        folder = tempfile.mkdtemp(dir=self.programs.folder)
        job = gloo_rank.GlooJob(
            size=self.case.ranks,
            store=f"{folder}/store",
            interface="lo" if self.case.hosts == 1 else "eth0",
            connections=contestant.connections,
            bytes=task.sizes,
            budget_s=task.budget_s,
            iterations=task.iterations,
            trace=task.trace,
        )

        def start(out: int, error: int) -> list[Forked]:
            ranks = range(self.case.ranks)
            nets = [self.hosts[self.case.host_of(rank)].namespace.pid for rank in ranks]
            return [
                Forked(gloo_rank.fork_rank(rank, job, f"/proc/{nets[rank]}/ns/net", out, error))
                for rank in ranks
            ]

        return start


def patience(task: Task, heard: int) -> float:
    """How many seconds the next line may take. Some MPIs hang when they have nothing left to do."""
    return SILENCE_S if task.trace or heard < len(task.sizes) else ENDING_S


class Contest:
    """One case under one congestion control."""

    def __init__(self, place: Place, plan: Plan, log: Path, label: dict[str, str]) -> None:
        self.place, self.plan, self.log, self.label = place, plan, log, label
        self.results = Results()
        self.others = []

    def run(self, contestants: list[Contestant]) -> Results:
        """All repetitions. The first one goes through the smaller sizes first, since these decide
        who takes part in the larger ones."""
        sizes = tuple(size for size in self.place.case.sizes if size <= self.plan.largest)
        small = tuple(size for size in sizes if size < SKIPPED_FROM)
        for repetition in range(1, self.plan.repetitions + 1):
            # Nobody is always the one who comes after the same other one.
            turn = contestants[repetition % len(contestants) :]
            turn += contestants[: repetition % len(contestants)]
            rounds = [(small, 0), (sizes, len(small))] if repetition == 1 else [(sizes, 0)]
            for chosen, done in rounds:
                for contestant in turn:
                    worth = self.results.sizes_worth(contestant.name, chosen)[done:]
                    if worth:
                        self.one_set(contestant, repetition, worth)
        return self.results

    def one_set(self, contestant: Contestant, repetition: int, sizes: tuple[int, ...]) -> None:
        """Runs one process set and keeps what it prints."""
        others = Others()
        lines = []
        task = Task(sizes, self.plan.budget_s)
        failure = self.listen(contestant, task, lambda text: lines.append(json.loads(text)))
        share = others.share()
        self.others.append(share)
        for line in lines:
            self.keep(contestant, repetition, line, share)
        if failure and len(lines) < len(sizes):
            self.results.fail(contestant.name, sizes[len(lines)])
        said = ", ".join(f"{size_text(x['bytes'])} {number(x['time_us'] / 1000)}" for x in lines)
        self.say(contestant, repetition, f"{said} ms", share, failure)

    def listen(self, contestant: Contestant, task: Task, hear: Callable[[str], None]) -> str:
        """Gives each line of a process set to `hear`. What went wrong, or an empty text."""
        with ProcessSet(self.place.start(contestant, task)) as running:
            heard = 0
            try:
                while (text := running.line(patience(task, heard))) is not None:
                    hear(text)
                    heard += 1
                running.finish()
            except TimeoutError as error:
                return f"{error}; {running.errors()}"
            except (RuntimeError, ValueError) as error:
                return str(error)
        return ""

    def keep(self, contestant: Contestant, repetition: int, line: dict, share: float) -> None:
        """Adds to the results, unless values were wrong, and to the log."""
        record = {
            **self.label,
            "peer": contestant.name,
            "repetition": repetition,
            **line,
            "others": round(share, 3),
        }
        with self.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")
        if line["wrong"] == 0:
            self.results.add(contestant.name, record)

    def say(self, contestant, repetition: int, text: str, share: float, failure: str) -> None:
        """One line of progress."""
        where = " ".join(self.label.values())
        turn = f"{repetition}/{self.plan.repetitions}"
        print(f"{where} {turn} {contestant.name}: {text} (others {100 * share:.0f} %)", flush=True)
        if failure:
            print(f"    failed: {failure}", flush=True)
