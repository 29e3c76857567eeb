"""Starts worlds: some ranks as real processes, by hand, and collects what each of them says.

A world runs many checks in one set of processes, because importing torch takes seconds. Each rank
writes one line a check into a file of its own; the output of all ranks is kept for failures.
"""

from __future__ import annotations

import ast
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@dataclass
class RankReport:
    """What one rank did."""

    status: int | None  # exit status; None: it had to be killed
    output: str
    checks: dict = field(default_factory=dict)  # name -> "" or why it failed


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def rank_environment(rank: int, size: int, port: int, secret_file: Path) -> dict:
    """The environment of a rank started by hand."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("FASTHOROVOD_", "HOROVOD_"))
    }
    environment.update(
        FASTHOROVOD_RANK=str(rank),
        FASTHOROVOD_SIZE=str(size),
        FASTHOROVOD_RENDEZVOUS=f"127.0.0.1:{port}",
        FASTHOROVOD_SECRET_FILE=str(secret_file),
        FASTHOROVOD_START_TIMEOUT="30",
        OMP_NUM_THREADS="1",
    )
    return environment


def torch_environment(rank: int, size: int, port: int, _secret_file: Path) -> dict:
    """The environment of a rank as torch's launcher would make it."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("FASTHOROVOD_", "HOROVOD_", "TORCHELASTIC_"))
    }
    environment.update(
        RANK=str(rank),
        WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        FASTHOROVOD_START_TIMEOUT="30",
        OMP_NUM_THREADS="1",
    )
    return environment


def run_ranks(
    size: int, command: list, timeout: float, environment_of=rank_environment, **settings: str
) -> list:
    """Runs `command` once a rank and waits for all; RankReports in rank order.

    In the command the word {report} is the file that the rank may write its checks to.
    """
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        secret = folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(secrets.token_hex(32))
        port = free_port()
        processes = []
        for rank in range(size):
            environment = environment_of(rank, size, port, secret)
            environment.update(settings)
            with open(folder / f"output.{rank}", "wb") as output:
                words = [
                    str(w).replace("{report}", str(folder / f"report.{rank}")) for w in command
                ]
                processes.append(
                    subprocess.Popen(
                        words, env=environment, stdout=output, stderr=subprocess.STDOUT
                    )
                )
        deadline = time.monotonic() + timeout
        statuses = [_wait(process, deadline) for process in processes]
        return [
            RankReport(statuses[rank], _text(folder / f"output.{rank}"), _checks(folder, rank))
            for rank in range(size)
        ]


def run_checks(size: int, modules: list, timeout: float, **settings: str) -> list:
    """Runs the checks of some modules of this folder in a world of `size` ranks."""
    command = [sys.executable, str(HERE / "run_checks.py"), "{report}", *modules]
    return run_ranks(size, command, timeout, **settings)


def run_c10d_checks(size: int, modules: list, timeout: float, **settings: str) -> list:
    """The same at the door of torch.distributed."""
    command = [sys.executable, str(HERE / "run_c10d_checks.py"), "{report}", *modules]
    return run_ranks(size, command, timeout, environment_of=torch_environment, **settings)


def describe(reports: list) -> str:
    """The output of all ranks, for a failure message."""
    return "\n".join(
        f"--- rank {rank}: exit status {report.status}\n{report.output}"
        for rank, report in enumerate(reports)
    )


def _wait(process, deadline):
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _checks(folder: Path, rank: int) -> dict:
    lines = _text(folder / f"report.{rank}").splitlines()
    return {entry["check"]: entry["failure"] for entry in map(json.loads, lines)}


def checks_of(modules, size):
    """The names of the checks that such a world runs, read from the text: no import of torch."""
    names = []
    for module in modules:
        for node in ast.parse((HERE / f"{module}.py").read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
                marks = [mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)]
                if size > 1 or "needs_peers" not in marks:
                    names.append(node.name)
    return names


def cases_of(modules):
    """(world size, check) of every check in worlds of one, two and three ranks, and their names."""
    cases = [(size, name) for size in (1, 2, 3) for name in checks_of(modules, size)]
    return cases, [f"{size}-{name[6:]}" for size, name in cases]


def asker(run, modules, time_limit):
    """A function that gives a world's reports by size; a world runs when first asked for."""
    reports = {}

    def ask(size):
        if size not in reports:
            reports[size] = run(size, modules, time_limit)
        return reports[size]

    return ask


def expect_passed(reports, name):
    """Every rank finished the check of that name, and without a failure."""
    for rank, report in enumerate(reports):
        if name not in report.checks:
            pytest.fail(f"rank {rank} never finished it\n{describe(reports)}")
    failures = {r: report.checks[name] for r, report in enumerate(reports) if report.checks[name]}
    if failures:
        pytest.fail("\n".join(f"--- rank {r}:\n{text}" for r, text in failures.items()))
