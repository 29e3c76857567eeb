"""A progress line: redrawn in place on a terminal, printed every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_WIDTH = 24


def bar(done: int, total: int) -> str:
    """'[######......]' for the fraction done / total."""
    filled = _WIDTH * done // max(1, total)
    return "[" + "#" * filled + "." * (_WIDTH - filled) + "]"


def clock(seconds: float) -> str:
    """'1:05' for 65 seconds."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02d}"


class Progress:
    """Shows how far `total` steps are. Only one rank should make one with shown=True."""

    def __init__(self, total: int, shown: bool, out: TextIO | None = None) -> None:
        self._total = total
        self._shown = shown
        self._out = out or sys.stdout
        self._in_place = self._out.isatty()
        self._interval = 0.1 if self._in_place else 5.0
        self._begin = time.monotonic()
        self._last = self._begin if not self._in_place else 0.0

    def update(self, done: int, text: str) -> None:
        """Shows `done` steps and `text`, unless the last line is too young."""
        now = time.monotonic()
        if not self._shown or (now - self._last < self._interval and done < self._total):
            return
        self._last = now
        elapsed = now - self._begin
        left = elapsed / max(1, done) * (self._total - done)
        line = f"{bar(done, self._total)} {done}/{self._total}  {text}  {clock(left)} left"
        if self._in_place:
            self._out.write("\r" + line.ljust(100))
        else:
            self._out.write(line + "\n")
        self._out.flush()

    def finish(self) -> None:
        """Leaves the last line where it is."""
        if self._shown and self._in_place:
            self._out.write("\n")
            self._out.flush()

    def say(self, text: str) -> None:
        """A line that stays, above the progress line."""
        if not self._shown:
            return
        self._out.write(("\r" + text.ljust(100) if self._in_place else text) + "\n")
        self._out.flush()
