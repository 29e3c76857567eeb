#!/usr/bin/env python3
"""Trains on Fashion-MNIST, on every rank of a job, and writes what was measured as JSON.

    train.py train    trains one model to the end with the chosen backend
    train.py compare  trains one model a backend for a few steps, taking turns in short blocks

Start it with fasthorovodrun; or with torchrun when gloo is the only backend, or with --ddp, where
all backends are used through torch.distributed. tools/demo.sh does all of it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import data
import torch
from backends import (
    Alone,
    Backend,
    Ddp,
    Fasthorovod,
    FasthorovodOdSgd,
    FasthorovodTwobit,
    Gloo,
)
from contestant import Contestant
from measure import received_bytes
from progress import Progress

OWN = {
    "fasthorovod": Fasthorovod,
    "fasthorovod-odsgd": FasthorovodOdSgd,
    "fasthorovod-twobit": FasthorovodTwobit,
}
# Dense, synchronous steps before those of a codec or a rule: few where only a few are compared.
WARM_UP = {"train": 200, "compare": 20}
BLOCK = 10  # steps of a turn
IDLE_TURNS = 10  # the full training measures a block without communication every so many blocks


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="The demo's training, on one rank.")
    parser.add_argument("job", choices=["train", "compare"])
    parser.add_argument("--backend", nargs="+", choices=[*OWN, "gloo"], required=True)
    parser.add_argument(
        "--ddp", action="store_true", help="DistributedDataParallel, whatever the backend"
    )
    parser.add_argument("--epochs", type=int, default=5, help="of 'train' (default: 5)")
    parser.add_argument("--steps", type=int, default=150, help="of 'compare' (default: 150)")
    parser.add_argument(
        "--batch", type=int, default=64, help="images a rank and step (default: 64)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--terminal", type=Path, help="where rank 0 draws its progress (default: standard output)"
    )
    parser.add_argument(
        "--device", default="lo", help="the network device whose bytes are counted (default: lo)"
    )
    parser.add_argument("--link", help="what joins the hosts, for the table; their bytes are added")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file rank 0 writes")
    arguments = parser.parse_args()
    if arguments.ddp and not {"fasthorovod", "gloo"}.issuperset(arguments.backend):
        parser.error("--ddp goes with fasthorovod and gloo only")
    return arguments


def start_backends(names: list[str], job: str, ddp: bool, out: Path) -> list[Backend]:
    """The backends, in the order named; a second one learns rank and size from the first."""
    if ddp:
        return [Ddp(name) for name in names]
    backends: list[Backend] = []
    for name in names:
        if name in OWN:
            backends.append(OWN[name](WARM_UP[job]))
        elif backends:
            backends.append(Gloo(backends[0].rank, backends[0].size, out.with_suffix(".meet")))
        else:
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            backends.append(Gloo(rank, size, out.with_suffix(".meet")))
    return backends


def make_progress(arguments: argparse.Namespace, total: int, rank: int) -> Progress:
    """Rank 0's progress line. The launcher reads standard output, so a terminal is named apart."""
    terminal = arguments.terminal.open("w") if rank == 0 and arguments.terminal else None
    return Progress(total, shown=rank == 0, out=terminal)


class Trial:
    """Contestants that take turns in the same processes."""

    def __init__(self, contestants: list[Contestant], progress: Progress, device: str) -> None:
        self._contestants = contestants
        self._device = device  # whose bytes are counted
        # The first contestant's backend keeps the turns apart, for all of them.
        self._barrier = contestants[0].backend.barrier
        self._rank = contestants[0].backend.rank
        self._progress = progress
        self._done = 0

    def _show(self, contestant: Contestant, loss: float, begin: float, first: int) -> None:
        self._done += 1
        images = (contestant.step - first) * contestant.shard.batch * contestant.shard.size
        epoch = (contestant.step - 1) // contestant.shard.steps_per_epoch + 1
        speed = images / max(1e-9, time.perf_counter() - begin)
        text = f"{contestant.name}, epoch {epoch}  loss {loss:.3f}  {speed:,.0f} images/s"
        self._progress.update(self._done, text)

    def turn(self, contestant: Contestant, steps: int = BLOCK) -> None:
        """One block of one contestant, measured."""
        first, begin = contestant.step, time.perf_counter()
        self._barrier()
        before = received_bytes(self._device)
        self._barrier()
        seconds = contestant.run_block(
            steps, lambda loss: self._show(contestant, loss, begin, first)
        )
        self._barrier()
        wire_bytes = received_bytes(self._device) - before
        contestant.record.add_block(contestant.step - first, seconds, wire_bytes)


def slowest(contestant: Contestant, backend: Backend) -> list[float]:
    """The seconds of each block on its slowest rank."""
    own = torch.tensor(contestant.record.seconds, dtype=torch.float64)
    table = torch.zeros(backend.size, len(own), dtype=torch.float64)
    table[backend.rank] = own
    return backend.total(table).max(dim=0).values.tolist()


def summary(contestant: Contestant, backend: Backend, accuracy: float | None) -> dict:
    """What the report needs of one contestant; the same on every rank."""
    record = contestant.record
    losses = torch.tensor(record.losses, dtype=torch.float64)
    return {
        "name": contestant.name,
        "accuracy": accuracy,
        "global_batch": contestant.shard.batch * contestant.shard.size,
        "block_steps": record.steps,
        "block_seconds": slowest(contestant, backend),
        "block_wire_bytes": record.wire_bytes,
        "losses": (backend.total(losses) / backend.size).tolist(),
    }


def added_up(counts: list[int], backend: Backend) -> list[int]:
    """The sum over all ranks of what each counted."""
    return backend.total(torch.tensor(counts, dtype=torch.int64)).tolist()


def spread(own: torch.Tensor, backend: Backend) -> float:
    """The largest difference of any value between ranks; 0 when all ranks have the same."""
    # Rank 0's values reach the others bit by bit: what is added to them is zero.
    first = backend.total(own if backend.rank == 0 else torch.zeros_like(own))
    table = torch.zeros(backend.size, dtype=torch.float64)
    table[backend.rank] = (own - first).abs().max()
    return backend.total(table).max().item()


def run_training(
    arguments: argparse.Namespace, backend: Backend, train: data.Split, test: data.Split
) -> list[dict]:
    """Trains to the end; now and then a block without communication is measured beside it."""
    per_epoch = len(train) // (arguments.batch * backend.size)
    steps = per_epoch * arguments.epochs
    alone = Alone(backend.rank, backend.size)
    main = Contestant(backend, train, steps, arguments.batch, arguments.seed)
    idle = Contestant(alone, train, steps, arguments.batch, arguments.seed)
    turns_in_all = -(-steps // BLOCK)
    idle_turns = -(-turns_in_all // IDLE_TURNS)
    progress = make_progress(arguments, steps + idle_turns * BLOCK, backend.rank)
    trial = Trial([main, idle], progress, arguments.device)
    accuracy, epoch = 0.0, 0
    for number in range(turns_in_all):
        if number % IDLE_TURNS == 0:
            trial.turn(idle)
        trial.turn(main)
        if main.step // per_epoch > epoch:
            epoch = main.step // per_epoch
            accuracy = main.evaluate(test)
            progress.say(f"epoch {epoch}: {100 * accuracy:.2f} % of the test images are right")
    progress.finish()
    run = summary(main, backend, accuracy)
    run["replicas_differ_by"] = spread(main.weights(), backend)
    return [run, summary(idle, backend, None)]


def run_comparison(
    arguments: argparse.Namespace, backends: list[Backend], train: data.Split, test: data.Split
) -> list[dict]:
    """Trains one model a backend for a few steps, in turns."""
    first = backends[0]
    sides = [*backends, Alone(first.rank, first.size)]
    contestants = [
        Contestant(side, train, arguments.steps, arguments.batch, arguments.seed) for side in sides
    ]
    progress = make_progress(arguments, arguments.steps * len(contestants), first.rank)
    trial = Trial(contestants, progress, arguments.device)
    for _ in range(-(-arguments.steps // BLOCK)):
        for contestant in contestants:
            trial.turn(contestant)
    progress.finish()
    if arguments.link:
        for contestant in contestants:
            contestant.record.wire_bytes = added_up(contestant.record.wire_bytes, first)
    runs = [summary(each, first, each.evaluate(test)) for each in contestants]
    for contestant, run in zip(contestants[:-1], runs):
        run["replicas_differ_by"] = spread(contestant.weights(), first)
        run["differs_by"] = (contestant.weights() - contestants[0].weights()).abs().max().item()
    return runs


def write(path: Path, arguments: argparse.Namespace, size: int, runs: list[dict]) -> None:
    """The results of a job as JSON."""
    settings = {"job": arguments.job, "ranks": size, "seed": arguments.seed}
    if arguments.link:
        settings["link"] = arguments.link
    path.write_text(json.dumps({**settings, "runs": runs}, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Runs one rank of a job."""
    arguments = parse_arguments()
    torch.set_num_threads(1)
    try:
        train, test = data.training(), data.test()
    except data.DataError as error:
        sys.exit(f"demo: {error}")
    backends = start_backends(arguments.backend, arguments.job, arguments.ddp, arguments.out)
    if arguments.job == "train":
        runs = run_training(arguments, backends[0], train, test)
    else:
        runs = run_comparison(arguments, backends, train, test)
    if backends[0].rank == 0:
        write(arguments.out, arguments, backends[0].size, runs)
    for backend in reversed(backends):
        backend.close()


if __name__ == "__main__":
    main()
