"""A flow that is made slow while a contestant runs: dynamic chunks go round it, equal parts wait.

The flow is the busiest one that leaves the first host, cut in both directions once a few iterations
have passed; the time of a repetition is the median of the iterations after that.
"""

from __future__ import annotations

import re
import statistics
import subprocess

from contest import Contest
from contestants import Contestant, Task
from others import Others
from shapes import slow_both_ways
from table import number

BEFORE = 4  # iterations until the cut, the first of which is warm-up
AFTER = 4  # those after it, the first of which is under way at the time
TRACE = re.compile(r"^\d+ \d+ ([\d.]+)$")
# A connection's addresses, and in the line below what it has sent.
FLOW = re.compile(r"([\d.]+):(\d+)\s+([\d.]+):(\d+)[^\n]*\n[^\n]*bytes_sent:(\d+)")


def busiest_flow(text: str, address: str) -> tuple[str, int, int]:
    """From ss's list, the flow that sent most from `address`: its other end and both ports."""
    flows = [match for match in FLOW.findall(text) if match[0] == address != match[2]]
    if not flows:
        raise ValueError(f"no connection of {address} has sent anything")
    _own, port, other, other_port, _sent = max(flows, key=lambda match: int(match[4]))
    return other, int(port), int(other_port)


def times_of(iterations: list[float]) -> tuple[float, float]:
    """The median microseconds before and after the cut."""
    if len(iterations) != BEFORE + AFTER:
        raise ValueError(f"{len(iterations)} iterations in place of {BEFORE + AFTER}")
    return (
        statistics.median(iterations[1:BEFORE]),
        statistics.median(iterations[BEFORE + 1 :]),
    )


class CutContest(Contest):
    """The contest of a case whose `cut` is a rate."""

    def run(self, contestants: list[Contestant]):
        """All repetitions."""
        [size] = self.place.case.sizes
        for repetition in range(1, self.plan.repetitions + 1):
            for contestant in contestants:
                if contestant.name not in self.results.ended:
                    self.one_set(contestant, repetition, (size,))
        return self.results

    def one_set(self, contestant: Contestant, repetition: int, sizes: tuple[int, ...]) -> None:
        """Runs one process set and keeps the median after the cut."""
        others = Others()
        iterations, cut = [], []
        task = Task(sizes, budget_s=0, iterations=BEFORE + AFTER, trace=True)

        def hear(text: str) -> None:
            match = TRACE.match(text)
            if match is None:
                return
            iterations.append(float(match[1]))
            if len(iterations) == BEFORE:
                cut.append(self.cut_busiest())

        failure = self.listen(contestant, task, hear)
        for flow in cut:
            self.set_flow(flow, self.place.case.shape.flow)
        share = others.share()
        self.others.append(share)
        said = ""
        if failure:
            self.results.fail(contestant.name, sizes[0])
        else:
            before, after = times_of(iterations)
            line = {"bytes": sizes[0], "time_us": after, "before_us": before, "wrong": 0}
            self.keep(contestant, repetition, line, share)
            said = f"before {number(before / 1000)}, after {number(after / 1000)} ms"
        self.say(contestant, repetition, said, share, failure)

    def cut_busiest(self) -> tuple[str, int, int]:
        """Cuts the busiest flow of the first host, and says which."""
        first = self.place.hosts[0]
        command = first.command("ss", "-tinH", "state", "established")
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        flow = busiest_flow(listed, first.ipv4)
        self.set_flow(flow, self.place.case.cut)
        return flow

    def set_flow(self, flow: tuple[str, int, int], rate: str) -> None:
        """Gives a flow of the first host a rate, in both directions."""
        address, here_port, there_port = flow
        [there] = [host for host in self.place.hosts if host.ipv4 == address]
        slow_both_ways(self.place.hosts[0], there, here_port, there_port, rate)
