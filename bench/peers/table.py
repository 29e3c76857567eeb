"""The table and the summary, as Markdown. Pure."""

from __future__ import annotations

import statistics

from cases import KIB, MIB, Case
from limits import bus_factor, limit_s
from results import Results

HEADINGS = (
    "case",
    "size",
    "peer",
    "ms",
    "min to max",
    "algbw GB/s",
    "busbw GB/s",
    "CPU us a MiB",
    "of the limit",
)
SUMMARY_HEADINGS = ("case", "size", "ours ms", "best peer", "its ms", "ours / it", "limit ms")


def size_text(size: int) -> str:
    """64 KiB, 1 MiB."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def number(value: float) -> str:
    """Three digits that mean something."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def label(case: Case, congestion: str) -> str:
    """What the table calls a case."""
    return f"{case.name} {congestion}".strip()


def row(case: Case, congestion: str, results: Results, peer: str, size: int) -> tuple[str, ...]:
    """One peer at one size."""
    times = results.times(peer, size)
    median = results.median(peer, size)
    algbw = size / median / 1e6
    cpu = [each["cpu_us"] for each in results.lines[peer, size] if "cpu_us" in each]
    limit = limit_s(case, size) * 1000
    return (
        label(case, congestion),
        size_text(size),
        peer,
        number(median),
        f"{number(min(times))} to {number(max(times))}",
        number(algbw),
        number(algbw * bus_factor(case)),
        number(statistics.median(cpu) / (size / MIB)) if cpu else "",
        f"{100 * limit / median:.1f} %" if limit else "",
    )


def rows(case: Case, congestion: str, results: Results) -> list[tuple[str, ...]]:
    """All of a case, size by size."""
    return [
        row(case, congestion, results, peer, size)
        for size in case.sizes
        for peer in results.peers(size)
    ]


def summary_rows(case: Case, congestion: str, results: Results) -> list[tuple[str, ...]]:
    """Ours against the best peer, size by size; ours-aux and the like are nobody's peers."""
    lines = []
    for size in case.sizes:
        best = results.best_peer(size)
        if best is None or not results.times("ours", size):
            continue
        limit = limit_s(case, size) * 1000
        lines.append(
            (
                label(case, congestion),
                size_text(size),
                number(results.median("ours", size)),
                best,
                number(results.median(best, size)),
                f"{results.ratio('ours', best, size):.2f}",
                number(limit) if limit else "",
            )
        )
    return lines


def markdown(headings: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    """A table whose columns also align as plain text."""
    widths = [max(len(line[i]) for line in (headings, *lines)) for i in range(len(headings))]

    def text(line: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text(headings), rule, *map(text, lines)])
