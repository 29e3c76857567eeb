"""What was measured, and what follows from it. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

TOO_SLOW = 3.0  # times the best one's time
SKIPPED_FROM = 64 << 20  # where a peer was too slow at the size before
LARGE = 16 << 20  # where a peer that is too slow is measured no more than
ENOUGH = 2  # times


def is_ours(peer: str) -> bool:
    """Ours, and its variants: ours-aux and the like."""
    return peer.startswith("ours")


@dataclass
class Results:
    """All repetitions of one case under one congestion control: lines of JSON by (peer, size)."""

    lines: dict[tuple[str, int], list[dict]] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)  # the size at which a peer failed

    def add(self, peer: str, line: dict) -> None:
        """One size of one repetition."""
        self.lines.setdefault((peer, line["bytes"]), []).append(line)

    def fail(self, peer: str, size: int) -> None:
        """The peer gave no result at a size; it is not asked for that again, nor for more."""
        self.ended[peer] = min(size, self.ended.get(peer, size))

    def peers(self, size: int) -> list[str]:
        """Those that have a result at a size."""
        return [peer for peer, at in self.lines if at == size]

    def times(self, peer: str, size: int) -> list[float]:
        """Milliseconds of each repetition."""
        return [line["time_us"] / 1000 for line in self.lines.get((peer, size), [])]

    def median(self, peer: str, size: int) -> float:
        """Milliseconds; infinite without a result."""
        times = self.times(peer, size)
        return statistics.median(times) if times else float("inf")

    def best_peer(self, size: int) -> str | None:
        """The fastest at a size that is not ours."""
        peers = [peer for peer in self.peers(size) if not is_ours(peer)]
        return min(peers, key=lambda peer: self.median(peer, size), default=None)

    def is_slow(self, peer: str, size: int) -> bool:
        """Whether a peer is far behind the best one at a size; no if none was measured there. Ours
        does not count: where it is far ahead, the best of the others is what to compare it with."""
        best = self.best_peer(size)
        return best is not None and self.median(peer, size) > TOO_SLOW * self.median(best, size)

    def is_worth(self, peer: str, size: int, before: int | None) -> bool:
        """Whether to measure a peer at a size, with `before` the size before it: not where it
        failed, nor where it is far behind already."""
        if size >= self.ended.get(peer, size + 1):
            return False
        if size >= LARGE and len(self.times(peer, size)) >= ENOUGH and self.is_slow(peer, size):
            return False
        if before is None or size < SKIPPED_FROM:
            return True
        return not self.is_slow(peer, before)

    def sizes_worth(self, peer: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes to measure a peer at: up to the first that is not worth it."""
        chosen = []
        for before, size in zip((None, *sizes), sizes):
            if not self.is_worth(peer, size, before):
                break
            chosen.append(size)
        return tuple(chosen)

    def ratio(self, one: str, other: str, size: int) -> float:
        """The median, over the repetitions, of one's time by the other's."""
        ones, others = (
            {line["repetition"]: line["time_us"] for line in self.lines.get((peer, size), [])}
            for peer in (one, other)
        )
        both = ones.keys() & others.keys()
        if not both:
            return self.median(one, size) / self.median(other, size)
        return statistics.median(ones[at] / others[at] for at in both)
