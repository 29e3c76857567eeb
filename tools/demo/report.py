#!/usr/bin/env python3
"""Turns the JSON files of the demo into its table, results.json and, with matplotlib, two plots.

    report.py FOLDER [--accuracy PERCENT]

FOLDER holds compare.json, and may hold train.json and others that begin with train,
auxiliaries.json and link.json.

Exits with 1, saying why, when a cell of the table has no value, the full training stays below the
accuracy, OD-SGD's more than a point below that, or replicas of a model are not equal. How the cells
are measured: see measure.py.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

DELAYED = "OD-SGD"  # in the names of runs that may lose a little accuracy
HEADINGS = (
    "run",
    "test accuracy",
    "images/s",
    "wire bytes a step",
    "exposed communication a step",
    "training time",
)


def steps_of(run: dict) -> int:
    """How many steps a run had."""
    return sum(run["block_steps"])


def step_seconds(run: dict) -> float:
    """The median over blocks of a step's time."""
    blocks = zip(run["block_seconds"], run["block_steps"])
    return statistics.median(seconds / steps for seconds, steps in blocks)


def row(run: dict, alone: dict, label: str) -> dict:
    """The figures of one run."""
    step = step_seconds(run)
    return {
        "run": label,
        "name": run["name"],
        "steps": steps_of(run),
        "accuracy": run["accuracy"],
        "images_per_second": run["global_batch"] / step,
        "wire_bytes_per_step": sum(run["block_wire_bytes"]) / steps_of(run),
        "step_seconds": step,
        "exposed_seconds_per_step": step - step_seconds(alone),
        "training_seconds": sum(run["block_seconds"]),
    }


def pairs(jobs: list[dict]) -> list[tuple[dict, dict]]:
    """Every run that communicates, with the one beside it that does not."""
    return [(run, job["runs"][-1]) for job in jobs for run in job["runs"][:-1]]


def label(run: dict, job: dict) -> str:
    """What the table calls a run."""
    steps = steps_of(run)
    length = f"full ({steps} steps)" if job["job"] == "train" else f"{steps} steps"
    return f"{run['name']}, {length}" + (f" over {job['link']}" if "link" in job else "")


def rows(jobs: list[dict], comparison: dict) -> list[dict]:
    """One row a run that communicates, then one that does not."""
    alone = comparison["runs"][-1]
    return [
        *(row(run, job["runs"][-1], label(run, job)) for job in jobs for run in job["runs"][:-1]),
        row(alone, alone, alone["name"]),
    ]


def cells(figures: dict) -> tuple[str, ...]:
    """A row as text."""
    return (
        figures["run"],
        f"{100 * figures['accuracy']:.2f} %",
        f"{figures['images_per_second']:,.0f}",
        f"{figures['wire_bytes_per_step'] / 1e6:.2f} MB",
        f"{1e3 * figures['exposed_seconds_per_step']:.2f} ms",
        f"{figures['training_seconds']:.1f} s",
    )


def table(lines: list[tuple[str, ...]]) -> str:
    """Lines as a Markdown table whose columns also align as plain text."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]

    def text(line: tuple[str, ...]) -> str:
        first, *rest = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        )
        return "| " + " | ".join([first, *rest]) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text(lines[0]), rule, *(text(line) for line in lines[1:])])


def parity(comparison: dict) -> list[str]:
    """How alike the models of the comparison ended, in sentences."""
    first, *others = comparison["runs"][:-1]
    sentences = [
        f"after {steps_of(each)} steps no weight of {each['name']} differs from "
        f"{first['name']} by more than {each['differs_by']:.1e}"
        for each in others
    ]
    if all(run["replicas_differ_by"] == 0 for run in (first, *others)):
        sentences.append("the ranks' copies of each model are equal to the bit")
    return sentences


def problems(figures: list[dict], jobs: list[dict], accuracy: float) -> list[str]:
    """What is wrong with the results, in sentences."""
    found = [
        f"{run['name']}: the ranks' weights differ by up to {run['replicas_differ_by']:.1e}"
        for run, _alone in pairs(jobs)
        if run["replicas_differ_by"] != 0
    ]
    for each in figures:
        for key, value in each.items():
            if isinstance(value, float) and not math.isfinite(value):
                found.append(f"{each['run']}: {key} is {value}")
        communicates = each["name"] != "no communication"
        if communicates and each["wire_bytes_per_step"] <= 0:
            found.append(f"{each['run']}: no bytes were counted on the network device")
    return found + shortfalls([job for job in jobs if job["job"] == "train"], accuracy)


def shortfalls(trainings: list[dict], accuracy: float) -> list[str]:
    """Which full trainings stay behind, in sentences. The first is the one without a trick."""
    reached = {job["runs"][0]["name"]: 100 * job["runs"][0]["accuracy"] for job in trainings}
    dense = next(iter(reached), None)
    least = {name: reached[dense] - 1 for name in reached if DELAYED in name}
    if dense is not None:
        least[dense] = accuracy
    return [
        f"the full training of {name} reached {reached[name]:.2f} %, but {least[name]:.2f} % were "
        "expected"
        for name in reached
        if reached[name] < least.get(name, 0)
    ]


def curve(run: dict, window: int = 10) -> tuple[list[float], list[float]]:
    """Seconds of training and the loss, averaged over `window` steps."""
    seconds, losses, clock, step = [], [], 0.0, 0
    for steps, took in zip(run["block_steps"], run["block_seconds"]):
        clock += took
        step += steps
        recent = run["losses"][max(0, step - window) : step]
        seconds.append(clock)
        losses.append(sum(recent) / len(recent))
    return seconds, losses


def plot(path: Path, jobs: list[dict], figures: list[dict]) -> bool:
    """Loss against time and where a step's time goes; False without matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for (run, _alone), each in zip(pairs(jobs), figures):
        left.plot(*curve(run), label=each["run"])
    left.set(title="Training loss", xlabel="seconds of training", ylabel="loss", yscale="log")
    left.legend()
    labels = [each["run"] for each in figures[:-1]]
    exposed = [max(0.0, 1e3 * each["exposed_seconds_per_step"]) for each in figures[:-1]]
    steps = [1e3 * each["step_seconds"] for each in figures[:-1]]
    rest = [step - part for step, part in zip(steps, exposed)]
    right.barh(labels, rest, label="computation")
    right.barh(labels, exposed, left=rest, label="exposed communication")
    right.set(title="Time of a step", xlabel="milliseconds")
    right.invert_yaxis()
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    figure.savefig(path, dpi=120)
    return True


def read_jobs(folder: Path) -> list[dict]:
    """The jobs there are, full trainings first, each with the name of its file."""
    trainings = sorted(path.stem for path in folder.glob("train*.json"))
    names = [*trainings, "compare", "auxiliaries", "link"]
    files = [folder / f"{name}.json" for name in names]
    return [
        {**json.loads(file.read_text(encoding="utf-8")), "file": file.stem}
        for file in files
        if file.exists()
    ]


def main() -> None:
    """Prints the table of a folder."""
    parser = argparse.ArgumentParser(description="Reports the demo's results.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--accuracy", type=float, default=89.0, help="percent (default: 89)")
    arguments = parser.parse_args()
    jobs = read_jobs(arguments.folder)
    comparison = next((job for job in jobs if job["file"] == "compare"), None)
    if comparison is None:
        sys.exit(f"demo: {arguments.folder} has no compare.json")
    figures = rows(jobs, comparison)
    text = table([HEADINGS, *(cells(each) for each in figures)])
    print(text)
    print("\n" + "\n".join(parity(comparison)))
    results = {"ranks": comparison["ranks"], "seed": comparison["seed"], "rows": figures}
    (arguments.folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (arguments.folder / "table.md").write_text(text + "\n", encoding="utf-8")
    if plot(arguments.folder / "plot.png", jobs, figures):
        print(f"\nplots: {arguments.folder / 'plot.png'}")
    else:
        print("\nno plots, for want of matplotlib")
    found = problems(figures, jobs, arguments.accuracy)
    if found:
        sys.exit("\n".join(f"demo: {sentence}" for sentence in found))


if __name__ == "__main__":
    main()
