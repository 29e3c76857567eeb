"""How busy the machine is with what is not ours: figures of a busy machine mean less."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

IDLE, IO_WAIT = 3, 4  # columns of /proc/stat
COLUMNS = 8  # those after it are parts of these


def busy_seconds() -> float:
    """Processor time of everybody since the machine started, stolen time as well."""
    line = Path("/proc/stat").read_text().splitlines()[0]
    ticks = [int(word) for word in line.split()[1 : 1 + COLUMNS]]
    ticks[IDLE] = ticks[IO_WAIT] = 0
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Others:
    """Counts from when it is made. All children that ran meanwhile have to have ended."""

    def __init__(self) -> None:
        self._start = (time.monotonic(), busy_seconds(), own_seconds())

    def share(self) -> float:
        """Processors that others used, of all there are: 0 to 1."""
        now = (time.monotonic(), busy_seconds(), own_seconds())
        elapsed, busy, own = (end - begin for begin, end in zip(self._start, now))
        return min(1.0, max(0.0, (busy - own) / (elapsed * os.cpu_count())))


class Autogroup:
    """A context in which this session's processes have priority over those of other sessions, as
    far as that is allowed. Plain niceness does not reach across sessions."""

    FILE = Path("/proc/self/autogroup")
    NICE = -15
    VARIABLE = "PEERS_AUTOGROUP"  # for ranks that get sessions of their own

    def __enter__(self) -> bool:
        """Whether it was allowed."""
        self._before = None
        try:
            before = self.FILE.read_text().split()[-1]
            self.FILE.write_text(str(self.NICE))
        except (OSError, IndexError):
            return False
        self._before = before
        os.environ[self.VARIABLE] = str(self.NICE)
        return True

    def __exit__(self, *_exception) -> None:
        if self._before is not None:
            del os.environ[self.VARIABLE]
            self.FILE.write_text(self._before)
