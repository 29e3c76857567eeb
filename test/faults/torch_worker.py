#!/usr/bin/env python3
"""One rank of a torch job, through either door: all-reduces in a loop until something fails.

    torch_worker.py c10d|hvd BYTES ITERATIONS [--children KIND]
    torch_worker.py c10d|hvd --disagree SHAPE|TYPE|OPERATION

With --disagree the last rank submits something else, round after round, late or early; what each
rank saw and when goes to a note. Otherwise an error ends the rank, which says it first: in one line
to stderr, with the words "torch_worker: " before it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

ROUNDS = 6


class Door:
    """torch.distributed with our backend, or the Horovod API: what the worker needs of it."""

    def __init__(self, name: str) -> None:
        self._is_c10d = name == "c10d"
        if self._is_c10d:
            import fasthorovod.distributed  # noqa: F401 - registers the backend
            import torch.distributed as api

            api.init_process_group("fasthorovod")
            self.rank, self.size = api.get_rank(), api.get_world_size()
        else:
            import fasthorovod.torch as api

            api.init()
            self.rank, self.size = api.rank(), api.size()
        self._api = api

    def sum(self, tensor: torch.Tensor) -> None:
        """An all-reduce in place."""
        if self._is_c10d:
            self._api.all_reduce(tensor)
        else:
            self._api.allreduce_(tensor, op=self._api.Sum, name="gradient")

    def largest(self, tensor: torch.Tensor) -> None:
        """The same with another reduction."""
        if self._is_c10d:
            self._api.all_reduce(tensor, op=self._api.ReduceOp.MAX)
        else:
            self._api.allreduce_(tensor, op=self._api.Max, name="gradient")

    def close(self) -> None:
        """Leaves in good order."""
        if self._is_c10d:
            self._api.destroy_process_group()
        else:
            self._api.shutdown()


class Slow(torch.utils.data.Dataset):
    """Data whose second sample takes a minute, so that a loader's children sleep meanwhile."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> int:
        if index >= 4:
            time.sleep(60)
        return index


def sleeping_loader() -> object:
    """A DataLoader's persistent children, asleep in the middle of their work."""
    loader = torch.utils.data.DataLoader(
        Slow(), batch_size=2, num_workers=2, persistent_workers=True, multiprocessing_context="fork"
    )
    batches = iter(loader)
    next(batches)
    return loader, batches  # kept by the caller, or they end


def sleeping_child() -> int:
    """A child of a plain fork, asleep."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    return child


def ending_children(step: int) -> None:
    """Children that end in every way while their parent goes on."""
    child = os.fork()
    if child == 0:
        if step % 3 == 0:
            os._exit(0)
        if step % 3 == 1:
            sys.exit(0)  # runs what was registered for the end
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    if step % 20 == 0:
        data = torch.utils.data.DataLoader(list(range(8)), batch_size=2, num_workers=2)
        assert sum(int(batch.sum()) for batch in data) == 28


CHILDREN = {"loader": sleeping_loader, "fork": sleeping_child}


def note(name: str, text: str) -> None:
    """Tells the fault script something."""
    Path(os.environ["FAULT_SCRIPT_NOTES"], name).write_text(text)


def work(door: Door, options: argparse.Namespace) -> None:
    """All-reduces, each checked."""
    tensor = torch.empty(options.bytes // 4)
    expected = float(door.size * (door.size + 1) // 2)
    made = None
    for step in range(options.iterations):
        tensor.fill_(door.rank + 1.0)
        door.sum(tensor)
        if step == 0:
            note(f"busy.{door.rank}", "")
        assert tensor[0] == tensor[-1] == expected, f"{tensor[0]}, not {expected}"
        if options.children == "ending":
            ending_children(step)
        elif options.children and made is None:
            made = CHILDREN[options.children]()


def disagree(door: Door, options: argparse.Namespace) -> None:
    """Rounds in which the last rank submits something else; the next operation must work."""
    source = random.Random(door.rank + options.seed)
    is_other = door.rank == door.size - 1
    lines = []
    for _ in range(ROUNDS):
        time.sleep(source.uniform(0, 0.2))
        tensor = torch.ones(
            8 if is_other and options.disagree == "shape" else 7,
            dtype=torch.float64 if is_other and options.disagree == "type" else torch.float32,
        )
        call = door.largest if is_other and options.disagree == "operation" else door.sum
        submitted = time.monotonic()
        try:
            call(tensor)
            message = ""
        except RuntimeError as error:
            message = str(error)
        lines.append({"submitted": submitted, "told": time.monotonic(), "message": message})
        after = torch.full((5,), door.rank + 1.0)
        door.sum(after)
        assert after[0] == door.size * (door.size + 1) // 2, after
    note(f"report.{door.rank}", json.dumps(lines))


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("door", choices=["c10d", "hvd"])
    parser.add_argument("bytes", type=int, nargs="?", default=4096)
    parser.add_argument("iterations", type=int, nargs="?", default=1)
    parser.add_argument("--children", choices=[*CHILDREN, "ending"])
    parser.add_argument("--disagree", choices=["shape", "type", "operation"])
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """The exit code: 0, or 1 after an error."""
    options = parse(arguments)
    torch.set_num_threads(1)
    # torchrun ends the others once one is gone: they must come to say their error first.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        door = Door(options.door)
        (disagree if options.disagree else work)(door, options)
        door.close()
    except RuntimeError as error:
        told = time.monotonic()
        print("torch_worker:", " ".join(str(error).split()), file=sys.stderr, flush=True)
        note(f"told.{os.environ.get('RANK', os.environ.get('FASTHOROVOD_RANK'))}", str(told))
        os._exit(1)  # a loader's children would be waited for
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
