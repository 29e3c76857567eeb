"""The processes of one contestant while they run: started, heard, and ended whatever happens."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Callable

SILENCE_S = 30  # the longest that a set may take for its next line
ENDING_S = 10
FAREWELL_S = 2


class Forked:
    """A process made by os.fork, with as much of Popen as a set needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode = None

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def children_of(pids: list[int]) -> list[int]:
    """These processes and all that came from them, eldest first."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            rest = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents.setdefault(int(rest[1]), []).append(int(entry.name))
    family = list(pids)
    for pid in family:
        family += parents.get(pid, [])
    return family


def adopt_orphans(adopt: bool) -> None:
    """Whether processes whose parent ends become children of this one: MPI leaves some, whose
    processor time counts, and which have to end."""
    set_child_subreaper = 36
    if ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, int(adopt), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot adopt orphans")


def reap(pids: list[int]) -> None:
    """Takes leave of those that have ended."""
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:  # not a child of this process, or not any more
            continue


def send_signal(pids: list[int], number: int) -> None:
    """To those that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


class ProcessSet:
    """A context. `start` is given the file descriptors of standard output, which the first process
    writes to, and of standard error, and starts the processes."""

    def __init__(self, start: Callable[[int, int], list]) -> None:
        self._start = start
        self._processes = []
        self._rest = b""

    def __enter__(self) -> ProcessSet:
        self._before = set(children_of([os.getpid()]))
        self._errors = tempfile.TemporaryFile()
        self._out, out = os.pipe()
        try:
            self._processes = self._start(out, self._errors.fileno())
        finally:
            os.close(out)
        return self

    def __exit__(self, *_exception) -> None:
        running = [process.pid for process in self._processes if process.poll() is None]
        if running:
            send_signal(running, signal.SIGTERM)  # mpirun ends its ranks then
            self._wait(FAREWELL_S)
        self._end_all()
        os.close(self._out)
        self._errors.close()

    def line(self, silence_s: float = SILENCE_S) -> str | None:
        """The next line of output, or None at its end. TimeoutError after a long silence."""
        deadline = time.monotonic() + silence_s
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._out], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"nothing for {silence_s} s")
            more = os.read(self._out, 65536)
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")

    def finish(self) -> None:
        """Waits for the end; RuntimeError, with what they said, if one failed."""
        if not self._wait(ENDING_S):
            raise TimeoutError(f"not ended after {ENDING_S} s")
        codes = [process.poll() for process in self._processes]
        if any(codes):
            raise RuntimeError(f"exit codes {codes}: {self.errors()}")

    def errors(self) -> str:
        """The end of what the processes wrote to standard error."""
        self._errors.seek(0)
        return " ".join(self._errors.read().decode(errors="replace").split())[-600:]

    def _left(self) -> list[int]:
        """What has come of this set and is still there, adopted orphans too."""
        return [pid for pid in children_of([os.getpid()]) if pid not in self._before]

    def _end_all(self) -> None:
        """Lets what is left end by itself for a moment, and then kills it."""
        deadline = time.monotonic() + FAREWELL_S
        while left := self._left():
            if time.monotonic() > deadline:
                send_signal(left, signal.SIGKILL)
            self._wait(0)
            reap([pid for pid in left if pid not in {process.pid for process in self._processes}])
            if time.monotonic() > deadline + ENDING_S:
                raise RuntimeError(f"processes {left} do not end")
            time.sleep(0.01)

    def _wait(self, seconds: float) -> bool:
        """Whether all have ended in time."""
        deadline = time.monotonic() + seconds
        while any(process.poll() is None for process in self._processes):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True


def start_programs(processes: list, hosts: list, environment: dict[str, str]):
    """A `start` that runs each process on its host; only the first one's output is kept."""

    def start(out: int, error: int) -> list[subprocess.Popen]:
        return [
            subprocess.Popen(
                hosts[process.host].command(*process.command),
                stdin=subprocess.DEVNULL,
                stdout=out if number == 0 else subprocess.DEVNULL,
                stderr=error,
                env={**environment, **process.environment},
            )
            for number, process in enumerate(processes)
        ]

    return start
