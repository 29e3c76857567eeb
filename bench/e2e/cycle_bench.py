#!/usr/bin/env python3
"""How long it takes to start and stop: two ranks on this machine, through either door.

    cycle_bench.py [--cycles 50] [--json FILE]

A cycle is init, one all-reduce whose answer is checked, and shutdown; its time is that of init and
shutdown. The first cycle of a process, which also loads and reads everything, does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = 2


def hvd_cycle(cycle: int) -> float:
    """Seconds of one cycle at the Horovod door."""
    import fasthorovod.torch as hvd
    import torch

    began = time.perf_counter()
    hvd.init()
    started = time.perf_counter()
    answer = hvd.allreduce(torch.full((1000,), float(hvd.rank() + cycle)), op=hvd.Sum)
    assert torch.equal(answer, torch.full((1000,), 1.0 + 2 * cycle)), answer
    finished = time.perf_counter()
    hvd.shutdown()
    return (started - began) + (time.perf_counter() - finished)


def c10d_cycle(cycle: int) -> float:
    """The same at the door of torch.distributed, with one store for all cycles."""
    import fasthorovod.distributed  # noqa: F401 - registers the backend
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    began = time.perf_counter()
    dist.init_process_group(
        "fasthorovod", store=dist.PrefixStore(str(cycle), store()), rank=rank, world_size=RANKS
    )
    started = time.perf_counter()
    answer = torch.full((1000,), float(rank + cycle))
    dist.all_reduce(answer)
    assert torch.equal(answer, torch.full((1000,), 1.0 + 2 * cycle)), answer
    finished = time.perf_counter()
    dist.destroy_process_group()
    return (started - began) + (time.perf_counter() - finished)


STORE: list = []


def store():
    """The store of the job, made once."""
    import torch.distributed as dist

    if not STORE:
        is_master = os.environ["RANK"] == "0"
        STORE.append(
            dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), RANKS, is_master=is_master)
        )
    return STORE[0]


CYCLES = {"hvd": hvd_cycle, "c10d": c10d_cycle}


def run_rank(door: str, cycles: int) -> None:
    """A rank; rank 0 prints the times."""
    times = [CYCLES[door](cycle) for cycle in range(cycles + 1)][1:]
    if STORE:  # rank 0 holds it for the other
        STORE[0].set(f"done {os.environ['RANK']}", "")
        STORE[0].wait([f"done {rank}" for rank in range(RANKS)])
    if os.environ["RANK"] == "0":
        print(json.dumps(times))


def measure(door: str, cycles: int) -> list[float]:
    """Starts the ranks and gives rank 0's times."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "secret")
        secret.touch(mode=0o600)
        secret.write_text(secrets.token_hex(32))
        ranks = []
        for rank in range(RANKS):
            environment = {
                **os.environ,
                "RANK": str(rank),
                "MASTER_PORT": str(port),
                "OMP_NUM_THREADS": "1",
            }
            if door == "hvd":
                environment.update(
                    FASTHOROVOD_RANK=str(rank),
                    FASTHOROVOD_SIZE=str(RANKS),
                    FASTHOROVOD_RENDEZVOUS=f"127.0.0.1:{port}",
                    FASTHOROVOD_SECRET_FILE=str(secret),
                )
            command = [sys.executable, __file__, "--rank-of", door, "--cycles", str(cycles)]
            ranks.append(
                subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
            )
        outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit(f"a rank failed: {[rank.returncode for rank in ranks]}")
    return json.loads(outputs[0])


def main() -> None:
    """Measures both doors and prints a line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--rank-of", choices=CYCLES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank_of:
        return run_rank(options.rank_of, options.cycles)
    figures = {"ranks": RANKS, "cpus": os.cpu_count(), "machine": platform.processor()}
    print(f"{'door':<5} {'cycles':>6} {'median(ms)':>11} {'worst(ms)':>10}")
    for door in CYCLES:
        times = measure(door, options.cycles)
        median, worst = statistics.median(times) * 1000, max(times) * 1000
        figures[door] = {"median_ms": median, "worst_ms": worst, "cycles": len(times)}
        print(f"{door:<5} {len(times):>6} {median:>11.1f} {worst:>10.1f}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
