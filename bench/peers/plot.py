"""One picture a case: bus bandwidth by size, or, where there is one size, the time of each peer."""

from __future__ import annotations

from pathlib import Path

from cases import Case
from limits import bus_factor, limit_s
from results import Results
from table import size_text


def peers_of(results: Results) -> list[str]:
    """In the order of their first result."""
    return list(dict.fromkeys(peer for peer, _ in results.lines))


def draw_sizes(axes, case: Case, results: Results) -> None:
    """A line a peer, and the limit."""
    sizes = sorted({size for _, size in results.lines})
    for peer in peers_of(results):
        own = [size for size in sizes if results.times(peer, size)]
        speeds = [size / results.median(peer, size) / 1e6 * bus_factor(case) for size in own]
        width = 2.5 if peer == "ours" else 1.2
        axes.plot(own, speeds, marker="o", markersize=3, linewidth=width, label=peer)
    limits = [limit_s(case, size) for size in sizes]
    if any(limits):
        speeds = [size / limit / 1e9 * bus_factor(case) for size, limit in zip(sizes, limits)]
        axes.plot(sizes, speeds, color="black", linestyle=":", label="limit of the link")
    axes.set(xscale="log", yscale="log", ylabel="bus bandwidth, GB/s")
    axes.set_xticks(sizes, [size_text(size) for size in sizes])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def draw_bars(axes, case: Case, results: Results) -> None:
    """A bar a peer, and the limit."""
    [size] = case.sizes
    peers = peers_of(results)
    axes.barh(peers, [results.median(peer, size) for peer in peers])
    axes.invert_yaxis()
    axes.set(xlabel=f"milliseconds for {size_text(size)}")
    if limit := limit_s(case, size):
        axes.axvline(limit * 1000, color="black", linestyle=":", label="limit of the link")
        axes.legend(fontsize="small")


def plot(folder: Path, case: Case, by_congestion: dict[str, Results]) -> bool:
    """Writes FOLDER/CASE.png, a part for each congestion control. False without matplotlib, or
    without results."""
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot

    drawn = {name: results for name, results in by_congestion.items() if results.lines}
    if not drawn:
        return False
    size = (5.5 * len(drawn), 4)
    figure, parts = pyplot.subplots(
        1, len(drawn), figsize=size, layout="constrained", squeeze=False
    )
    draw = draw_sizes if len(case.sizes) > 1 else draw_bars
    for axes, (congestion, results) in zip(parts[0], drawn.items()):
        draw(axes, case, results)
        axes.set_title(f"{case.title} {f'({congestion})' if congestion else ''}")
    figure.savefig(folder / f"{case.name}.png", dpi=120)
    pyplot.close(figure)
    return True
