"""Jobs of torch programs: ranks forked with torchrun's variables, or torchrun itself."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from fault_job import NOTES, HandJob, Job, Plan, environment_of, free_port
from torch_forker import forker

WORKER = Path(__file__).parent / "torch_worker.py"
TORCHRUN = shutil.which("torchrun")
HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "fasthorovod"))
SAYS = "torch_worker: "


@dataclass
class TorchPlan(Plan):
    """What a torch job is to do."""

    door: str = "c10d"
    children: str = ""  # that ranks have (see torch_worker.py)
    disagree: str = ""  # about what ranks disagree
    seed: int = 0

    def arguments(self, rank: int) -> list[str]:
        """The command line of one rank's worker."""
        if self.disagree:
            return [self.door, "--disagree", self.disagree, "--seed", str(self.seed)]
        children = ["--children", self.children] if self.children else []
        iterations = self.fewer.get(rank, self.iterations)
        return [self.door, str(self.bytes_number), str(iterations), *children]

    @property
    def bytes_number(self) -> int:
        """The size of an operation."""
        return int(self.bytes[:-1]) << {"K": 10, "M": 20}[self.bytes[-1]]


class TorchJob(HandJob):
    """Ranks forked one by one, each with what its door needs; keys are ranks."""

    def start_rank(self, rank: int) -> None:
        plan = self.plan
        if plan.door == "c10d":
            _, port = self._rendezvous.split(":")
            variables = {
                "RANK": str(rank),
                "WORLD_SIZE": str(plan.size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
                "FASTHOROVOD_HOST_IDENTITY": self.host(rank),
            }
        else:
            variables = self.identity(rank)
        environment = {
            "TMPDIR": self._folder,
            NOTES: str(self._notes),
            **plan.settings,
            **variables,
        }
        errors = self._notes / f"stderr.{rank}"
        errors.touch()
        self._started[rank] = forker().start(
            plan.arguments(rank), environment, self._folder, str(errors)
        )

    def _has_started(self, rank: int, _pid: int) -> bool:
        return (self._notes / f"busy.{rank}").exists()

    def left_processes(self) -> list[int]:
        sessions = {process.pid for process in self._started.values()}
        return [pid for pid in all_pids() if session_of(pid) in sessions]

    def _left(self) -> list[str]:
        # Temporary folders of Python's own, where a killed rank had a loader.
        return [text for text in super()._left() if not text.startswith("file pymp-")]

    def children(self, rank: int) -> list[int]:
        """Processes that this rank forked."""
        session = self._started[rank].pid
        return [pid for pid in all_pids() if session_of(pid) == session and pid != session]

    def end_children(self) -> None:
        """Ends what ranks forked, which is theirs to end."""
        for rank in self._started:
            for pid in self.children(rank):
                os.kill(pid, signal.SIGKILL)

    def messages(self) -> dict[int, str]:
        found = {rank: said_in(text) for rank, text in self.errors().items()}
        return {rank: text for rank, text in found.items() if text}

    def reports(self) -> dict[int, list]:
        """What the ranks of a job that disagrees noted."""
        files = {rank: self._notes / f"report.{rank}" for rank in range(self.plan.size)}
        return {rank: json.loads(file.read_text()) for rank, file in files.items() if file.exists()}


class TorchrunJob(Job):
    """Ranks under torchrun; the one key is torchrun's."""

    KEY = -1

    def _start(self) -> None:
        options = ["--nproc-per-node", str(self.plan.size), "--master-port", str(free_port())]
        options += ["--master-addr", "127.0.0.1", "--log-dir", str(self._notes), "--redirects", "3"]
        arguments = self.plan.arguments(0)
        command = [sys.executable, "-m", "torch.distributed.run", *options, str(WORKER), *arguments]
        self._spawn(self.KEY, command, OMP_NUM_THREADS="1")

    def _has_started(self, rank: int, _pid: int) -> bool:
        return (self._notes / f"busy.{rank}").exists()

    def pids(self) -> dict[int, int]:
        found = {}
        for pid in self.left_processes():
            rank = environment_of(pid).get("RANK")
            if rank is not None:
                found[int(rank)] = pid
        return found

    def messages(self) -> dict[int, str]:
        found = {}
        for file in self._notes.glob("**/stderr.log"):
            if text := said_in(file.read_text()):
                found[int(file.parent.name)] = text
        return found


def said_in(text: str) -> str:
    """The error in what a worker wrote, or nothing."""
    lines = re.findall(rf"^{SAYS}(.*)$", text, re.MULTILINE)
    return lines[-1] if lines else ""


def all_pids() -> list[int]:
    """Every process of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def session_of(pid: int) -> int | None:
    """The session of a process, None when it is gone, though perhaps not waited for."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, _parent, _group, session = words[:4]
    return None if state == "Z" else int(session)
