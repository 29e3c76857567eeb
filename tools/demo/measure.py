"""What is measured of each contestant, the same way for all of them.

Time: contestants take turns in blocks of a few steps. A barrier comes before each block; a rank's
time of a block ends when its last step does. The time of the block is that of the slowest rank.

Exposed communication: the mean step time of a contestant minus that of the contestant that does not
communicate, in the same processes. It holds everything a backend costs: hooks, waiting, copies.

Bytes on the wire: what the kernel counts as received on the loopback device (all ranks are on one
machine), before and after a block, between two barriers. Headers and acknowledgements of TCP count;
so do the barriers themselves (a few hundred bytes a block), and whatever other programs send over
loopback meanwhile. Where the ranks are on hosts of their own (slow_link.py) one rank of each host
counts what came over its network device.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

_DEVICES = Path("/proc/net/dev")


def received_bytes(device: str, table: str | None = None) -> int:
    """Bytes received on a device since it exists; 0 where the kernel does not say."""
    if table is None:
        try:
            table = _DEVICES.read_text(encoding="ascii")
        except OSError:
            return 0
    for line in table.splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == device:
            return int(counters.split()[0])
    return 0


@dataclass
class Record:
    """What one rank saw of one contestant."""

    steps: list[int] = field(default_factory=list)  # steps of each block
    seconds: list[float] = field(default_factory=list)  # this rank's time of each block
    wire_bytes: list[int] = field(default_factory=list)  # of all ranks, each block
    losses: list[float] = field(default_factory=list)  # of this rank's batches, each step

    def add_block(self, steps: int, seconds: float, wire_bytes: int) -> None:
        """Notes one block."""
        self.steps.append(steps)
        self.seconds.append(seconds)
        self.wire_bytes.append(wire_bytes)
