#!/usr/bin/env python3
"""Compares all-reduces of FastHorovod, torch's gloo, Open MPI and MPICH on one machine, whose hosts
are network namespaces. Started by tools/bench_peers.sh, which makes everything ready.

Writes table.md, results.jsonl and one plot a case into a folder, and the table to standard output.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/netlab"))

from cases import CASES, Case, case_named  # noqa: E402
from contest import Contest, Place, Plan  # noqa: E402
from contestants import CONTESTANTS, Programs, contestants_of, variant  # noqa: E402
from cut import CutContest  # noqa: E402
from hosts import Hosts, missing  # noqa: E402
from others import Autogroup  # noqa: E402
from plot import plot  # noqa: E402
from process_set import adopt_orphans  # noqa: E402
from results import Results  # noqa: E402
from shapes import apply  # noqa: E402
from table import HEADINGS, SUMMARY_HEADINGS, markdown, rows, summary_rows  # noqa: E402

LIFETIME_S = 3600
FULL = Plan(repetitions=5, budget_s=0.3, largest=256 << 20)
QUICK = Plan(repetitions=1, budget_s=0.15, largest=64 << 20)
SYSTEM_CONTROL = Path("/proc/sys/net/ipv4/tcp_congestion_control")
KNOWN_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
CONTROLS = ("cubic", "bbr")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench_peers.sh", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a first look, in ten minutes")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="only this one")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME", help="only this one")
    parser.add_argument("--list", action="store_true", help="prints cases and peers, and ends")
    parser.add_argument(
        "--congestion",
        action="append",
        default=[],
        metavar="NAME",
        help="TCP's congestion control; default: cubic and bbr, with --quick the system's",
    )
    parser.add_argument(
        "--variant",
        action="append",
        nargs="+",
        default=[],
        metavar=("NAME", "KEY=VALUE"),
        help="another one of ours, with these variables; BENCH=FILE is its program, "
        "ARGUMENTS=WORDS are more of its options",
    )
    parser.add_argument("--repetitions", type=int, help="default: 5, with --quick 1")
    parser.add_argument("--largest", type=int, help="bytes; leaves larger sizes out")
    parser.add_argument("--out", type=Path, default=ROOT / "build/peers", metavar="FOLDER")
    parser.add_argument(
        "--programs", type=Path, default=ROOT / "build/peers", help=argparse.SUPPRESS
    )
    parser.add_argument(
        "--bench", default=os.environ.get("FASTHOROVOD_BENCH"), help=argparse.SUPPRESS
    )
    return parser.parse_args()


def print_list() -> None:
    """Cases and peers."""
    for case in CASES:
        print(f"{case.name:12} {case.title}")
    print("peers: " + ", ".join(each.name for each in CONTESTANTS))


def controls(arguments: argparse.Namespace) -> list[str]:
    """The congestion controls to measure under."""
    known = KNOWN_CONTROLS.read_text().split()
    if arguments.congestion:
        for name in arguments.congestion:
            if name not in known:
                raise ValueError(f"--congestion {name}: this kernel knows {', '.join(known)}")
        return arguments.congestion
    if arguments.quick:
        return [SYSTEM_CONTROL.read_text().strip()]
    return [name for name in CONTROLS if name in known]


def plan_of(arguments: argparse.Namespace) -> Plan:
    """How thoroughly to measure."""
    plan = QUICK if arguments.quick else FULL
    repetitions = arguments.repetitions or plan.repetitions
    return Plan(repetitions, plan.budget_s, arguments.largest or plan.largest)


class Comparison:
    """All cases, one after the other."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        secret = folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(secrets.token_hex(32))
        self.programs = Programs(arguments.bench, arguments.programs, secret, folder)
        self.variants = [variant(words) for words in arguments.variant]
        self.plan, self.peers, self.out = plan_of(arguments), arguments.peer, arguments.out
        self.log = self.out / "results.jsonl"
        self.table, self.summary, self.others = [], [], []

    def case(self, case: Case, congestions: list[str]) -> None:
        """Makes the hosts of a case and measures under each congestion control."""
        contestants = contestants_of(case, self.peers) + self.variants
        results = {}
        with Hosts(case.hosts, LIFETIME_S) as hosts:
            for host in hosts if case.hosts > 1 else ():
                apply(host, case.shape)
            for congestion in congestions if case.hosts > 1 else [""]:
                for host in hosts if congestion else ():
                    host.control_congestion(congestion)
                results[congestion] = self.contest(case, congestion, hosts, contestants)
        plot(self.out, case, results)

    def contest(self, case: Case, congestion: str, hosts: list, contestants: list) -> Results:
        """Measures, and adds to the tables."""
        label = {"case": case.name, "congestion": congestion}
        kind = CutContest if case.cut else Contest
        contest = kind(Place(case, hosts, self.programs), self.plan, self.log, label)
        results = contest.run(contestants)
        self.others += contest.others
        self.table += rows(case, congestion, results)
        self.summary += summary_rows(case, congestion, results)
        return results

    def report(self) -> str:
        """Everything as text."""
        others = statistics.median(self.others) if self.others else 0.0
        worst = max(self.others, default=0.0)
        return "\n\n".join(
            [
                markdown(HEADINGS, self.table),
                "Ours against the best peer:",
                markdown(SUMMARY_HEADINGS, self.summary),
                f"Others used {100 * others:.0f} % of the processors (the median of the runs; at "
                f"most {100 * worst:.0f} %).",
            ]
        )


def run(arguments: argparse.Namespace) -> None:
    """Measures and reports."""
    cases = [case_named(name) for name in arguments.case] or CASES
    congestions = controls(arguments)
    if reason := missing():
        raise ValueError(reason)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "results.jsonl").write_text("")
    adopt_orphans(True)
    start = time.monotonic()
    with Autogroup() as ahead, tempfile.TemporaryDirectory() as folder:
        print("priority over other sessions: " + ("yes" if ahead else "not allowed"), flush=True)
        import torch  # noqa: F401  once, for all ranks of gloo that are forked

        comparison = Comparison(arguments, Path(folder))
        for case in cases:
            print(f"--- {case.name}: {case.title}", flush=True)
            comparison.case(case, congestions)
        text = comparison.report()
    (arguments.out / "table.md").write_text(text + "\n", encoding="utf-8")
    print(
        f"\n{text}\n\nin {arguments.out}: table.md, results.jsonl; {time.monotonic() - start:.0f} s"
    )


def main() -> None:
    """Entry point."""
    arguments = parse_arguments()
    if arguments.list:
        print_list()
        return
    # Ends as by an interrupt: hosts and ranks do not outlive this.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit("bench_peers: terminated"))
    try:
        run(arguments)
    except ValueError as error:
        sys.exit(f"bench_peers: {error}")


if __name__ == "__main__":
    main()
