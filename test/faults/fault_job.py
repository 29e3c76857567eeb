"""One job of fasthorovod-bench as real processes: started by hand or by fasthorovodrun, watched
from outside.

Every process of a job carries a token in its environment, so that whatever is left of it is found,
whoever its parent is. The job runs in a folder of its own, which is also where its temporary files
would go.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = "FAULT_SCRIPT_TRY"
NOTES = "FAULT_SCRIPT_NOTES"  # where a rank may write what this script wants to know
# Holds the locks by which auxiliaries claim cores. It stays, and means nothing once they are gone.
CLAIMS = f"fasthorovod-{os.geteuid()}"
ENGINE_THREADS = 3
AUXILIARY = "fasthorovod-aux"
ENDLESS = 1_000_000
# How long an undisturbed job may take to start, on a busy machine.
START_LIMIT_S = 120
POLL_S = 0.005
START_POLL_S = 0.02
TIME_WAIT = "06"


def program(name: str, variable: str) -> str | None:
    """The program `variable` names, else the release build's, else the one on PATH."""
    built = ROOT / "build/release/tools" / name
    return os.environ.get(variable) or (str(built) if built.exists() else shutil.which(name))


BENCH = program("fasthorovod-bench", "FASTHOROVOD_BENCH")
LAUNCHER = program("fasthorovodrun", "FASTHOROVODRUN")


@dataclass
class Plan:
    """What a job is to do: all-reduces of one size, on some ranks fewer of them."""

    size: int
    bytes: str
    iterations: int = ENDLESS
    fewer: dict[int, int] = field(default_factory=dict)
    late: int | None = None  # this rank's program does not start with the others
    hosts: int = 1  # on so many do ranks started by hand take themselves to be
    settings: dict[str, str] = field(default_factory=dict)

    def command(self, rank: int) -> list[str]:
        """The command line of one rank."""
        count = str(self.fewer.get(rank, self.iterations))
        sizes = ["-b", self.bytes, "-e", self.bytes]
        return [BENCH, "allreduce", "--door", "named", *sizes, "-w", "0", "-n", count]


def tcp_sockets() -> dict[str, str]:
    """This machine's TCP sockets, but for those that only wait for stray packets: the two ends of
    each and its inode (0 when no process has it any more)."""
    found = {}
    for name in ("tcp", "tcp6"):
        for line in Path("/proc/net", name).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] != TIME_WAIT:
                found[f"{words[1]} to {words[2]}"] = words[9]
    return found


def sockets_of(pid: int) -> set[str]:
    """The inodes of a process's sockets."""
    found = set()
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry.path))
                if match:
                    found.add(match[1])
    return found


def environment_of(pid: int) -> dict[str, str]:
    """What a process was started with; empty when it is gone."""
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(entry.partition("=")[::2] for entry in entries)


def name_of(pid: int) -> str:
    """The program a process runs; empty when it is gone."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def parent_of(pid: int) -> int | None:
    """The process that a process is a child of."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def threads_of(pid: int) -> int:
    """How many threads a process has."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def wait_until(condition, limit_s: float, poll_s: float = POLL_S) -> bool:
    """Whether `condition` came true within the limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_s)
    return True


def free_port() -> int:
    """A port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Job:
    """A context that starts a job and leaves nothing of it, whatever happened in between."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ended_at: dict[int, float] = {}  # of what this script started: ranks, or the launcher
        self._token = secrets.token_hex(8)
        self._started: dict[int, subprocess.Popen] = {}
        self._folders = contextlib.ExitStack()
        self._sockets: set[str] = set()
        self._pids: set[int] = set()

    def __enter__(self) -> Job:
        self._folder = self._folders.enter_context(tempfile.TemporaryDirectory())
        # What this script itself writes: the secret, and what the processes say.
        self._notes = Path(self._folders.enter_context(tempfile.TemporaryDirectory()))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception) -> None:
        for pid in self.left_processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._started.values():
            process.kill()
            process.wait()
        self._folders.close()

    # --- starting ---

    def _start(self) -> None:
        raise NotImplementedError

    def pids(self) -> dict[int, int]:
        """The process of each rank that runs the benchmark."""
        raise NotImplementedError

    def _spawn(self, key: int, command: Sequence[str], **settings: str) -> None:
        environment = {
            **os.environ,
            MARK: self._token,
            NOTES: str(self._notes),
            "TMPDIR": self._folder,
            **self.plan.settings,
            **settings,
        }
        with (self._notes / f"stderr.{key}").open("wb") as errors:
            self._started[key] = subprocess.Popen(
                command,
                env=environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    # --- while it runs ---

    def wait_until_busy(self) -> None:
        """Returns once all-reduces can be under way, or are over."""
        started = wait_until(
            lambda: self.is_busy() or not self.running(), START_LIMIT_S, START_POLL_S
        )
        if not started:
            raise RuntimeError(f"the job does not start: {self.errors()}")
        self.note_what_it_has()

    def is_busy(self) -> bool:
        """Whether every rank has met the others."""
        pids = self.pids()
        return len(pids) == self.plan.size and all(map(self._has_started, pids, pids.values()))

    def _has_started(self, _rank: int, pid: int) -> bool:
        return threads_of(pid) > ENGINE_THREADS

    def note_what_it_has(self) -> None:
        """So that what is left of it is found later."""
        self._pids |= set(self.pids().values())
        mine = set().union(*map(sockets_of, self._pids)) if self._pids else set()
        self._sockets |= {ends for ends, inode in tcp_sockets().items() if inode in mine}

    def running(self) -> set[int]:
        """Which of the started processes still run; notes when the others ended."""
        now = time.monotonic()
        for key, process in self._started.items():
            if key not in self.ended_at and process.poll() is not None:
                self.ended_at[key] = now
        return self._started.keys() - self.ended_at.keys()

    def wait_for(self, keys: set[int], limit_s: float) -> bool:
        """Whether these processes ended within the limit."""
        return wait_until(lambda: not keys & self.running(), limit_s)

    def auxiliary(self, rank: int) -> int | None:
        """The process that moves data for a rank, once it has flows to other ranks."""
        parent = self.pids().get(rank)
        for pid in self.left_processes():
            # The first socket is the one to its rank.
            if name_of(pid) == AUXILIARY and parent_of(pid) == parent and len(sockets_of(pid)) > 1:
                return pid
        return None

    # --- afterwards ---

    def code(self, key: int) -> int | None:
        """The exit code as a shell tells it."""
        code = self._started[key].poll()
        return code if code is None or code >= 0 else 128 - code

    def errors(self) -> dict[int, str]:
        """What was written to stderr so far."""
        return {key: (self._notes / f"stderr.{key}").read_text() for key in self._started}

    def messages(self) -> dict[int, str]:
        """The error that each rank ended with, of those that said one."""
        raise NotImplementedError

    def told_at(self, rank: int) -> float:
        """When a rank learned what happened: it noted that, or ended then."""
        note = self._notes / f"told.{rank}"
        if note.exists():
            return float(note.read_text())
        return self.ended_at.get(rank, time.monotonic())

    def left_processes(self) -> list[int]:
        """Processes of this job that are still there."""
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [pid for pid in pids if environment_of(pid).get(MARK) == self._token]

    def leftovers(self, limit_s: float) -> list[str]:
        """What is still left of the job after that time, in words."""
        wait_until(lambda: not self._left(), limit_s)
        return self._left()

    def _left(self) -> list[str]:
        return [
            *(f"process {pid}" for pid in self.left_processes()),
            *(f"socket {ends}" for ends in self._sockets & tcp_sockets().keys()),
            *(f"file {name}" for name in os.listdir(self._folder)),
            *(f"shared memory {name}" for name in os.listdir("/dev/shm") if self._is_mine(name)),
        ]

    def _is_mine(self, name: str) -> bool:
        if name == CLAIMS:
            return False
        pids = {int(number) for number in re.findall(r"\d+", name)}
        return "fasthorovod" in name or bool(pids & self._pids)


class HandJob(Job):
    """Ranks started one by one; keys are ranks."""

    def _start(self) -> None:
        self._rendezvous = f"127.0.0.1:{free_port()}"
        self._secret = self._notes / "secret"
        self._secret.touch(mode=0o600)
        self._secret.write_text(secrets.token_hex(32))
        for rank in range(self.plan.size):
            if rank != self.plan.late:
                self.start_rank(rank)

    def start_rank(self, rank: int) -> None:
        """Starts one rank, e.g. the one that was to come late."""
        self._spawn(rank, self.plan.command(rank), **self.identity(rank))

    def identity(self, rank: int) -> dict[str, str]:
        """What a rank must know to find the others."""
        return {
            "FASTHOROVOD_RANK": str(rank),
            "FASTHOROVOD_SIZE": str(self.plan.size),
            "FASTHOROVOD_RENDEZVOUS": self._rendezvous,
            "FASTHOROVOD_SECRET_FILE": str(self._secret),
            "FASTHOROVOD_HOST_IDENTITY": self.host(rank),
        }

    def host(self, rank: int) -> str:
        """On which host a rank takes itself to be."""
        return f"host {rank % self.plan.hosts}"

    def pids(self) -> dict[int, int]:
        return {rank: self._started[rank].pid for rank in self.running()}

    def messages(self) -> dict[int, str]:
        lines = {rank: text.splitlines() for rank, text in self.errors().items()}
        return {rank: text[-1].partition(": ")[2] for rank, text in lines.items() if text}


class LauncherJob(Job):
    """Ranks on two virtual hosts; the one key is the launcher's."""

    KEY = -1

    def _start(self) -> None:
        cases = [f"{rank}) n={count};;" for rank, count in self.plan.fewer.items()]
        if self.plan.late is not None:
            cases.append(f"{self.plan.late}) exec sleep {START_LIMIT_S};;")
        choice = f"n=$0; case $FASTHOROVOD_RANK in {' '.join(cases)} esac; " if cases else "n=$0; "
        *bench, _count = self.plan.command(0)
        worker = ["sh", "-c", choice + 'exec "$@" $n', str(self.plan.iterations), *bench]
        options = ["-np", str(self.plan.size), "--virtual-hosts", "2"]
        self._spawn(self.KEY, [LAUNCHER, *options, *worker])

    def pids(self) -> dict[int, int]:
        found = {}
        for pid in self.left_processes():
            rank = environment_of(pid).get("FASTHOROVOD_RANK")
            with contextlib.suppress(OSError):
                if rank is not None and os.readlink(f"/proc/{pid}/exe") == os.path.realpath(BENCH):
                    found[int(rank)] = pid
        return found

    def report(self) -> str:
        """What the launcher itself said."""
        lines = self.errors()[self.KEY].splitlines()
        return "\n".join(line for line in lines if line.startswith("fasthorovodrun: "))

    def messages(self) -> dict[int, str]:
        # Once the launcher stops the others, some see it stop a rank before it comes to them. Its
        # word may well be the first.
        before = f"\n{self.errors()[self.KEY]}".partition("\nfasthorovodrun: ")[0]
        line = re.compile(r"^\[(\d+)\]<stderr>:fasthorovod-bench: (.*\brank \d.*)$", re.MULTILINE)
        return {int(rank): text for rank, text in line.findall(before)}
