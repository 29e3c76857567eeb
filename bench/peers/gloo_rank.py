"""One rank of torch's gloo under the loop of tools/fasthorovod-bench/back_to_back.h.

The comparison forks its ranks from a process that has torch already, since importing it takes
longer than most measurements.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

PERIOD = 7
SUMMANDS = 3
LEAST_SLICE = 16 << 10  # of a tensor that is cut
LEAST_ITERATIONS, MOST_ITERATIONS = 2, 2000
WARM_UP_SHARE, MOST_WARM_UP = 0.1, 64
LIMIT = timedelta(seconds=60)


@dataclass(frozen=True)
class GlooJob:
    """What is the same for all ranks. `budget_s` 0: so many `iterations`."""

    size: int
    store: str  # a file that is not there yet
    interface: str
    connections: int
    bytes: tuple[int, ...]
    budget_s: float
    iterations: int
    trace: bool


def enter_network(path: str) -> None:
    """Moves this process, which has one thread, into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(path, os.O_RDONLY)
    if libc.setns(handle, 0) != 0:
        raise OSError(ctypes.get_errno(), f"cannot enter {path}")
    os.close(handle)


class Rank:
    """Gloo as torch.distributed makes it, below torch's own wrapper of each call."""

    def __init__(self, rank: int, job: GlooJob) -> None:
        import torch
        import torch.distributed as dist

        self.torch, self.rank, self.job = torch, rank, job
        torch.set_num_threads(1)
        # One context, with connections of its own, for each time the interface is named.
        os.environ["GLOO_SOCKET_IFNAME"] = ",".join([job.interface] * job.connections)
        store = dist.FileStore(job.store, job.size)
        self.group = dist.ProcessGroupGloo(store, rank, job.size, timeout=LIMIT)
        self.times = []

    def use(self, size: int) -> None:
        """Makes the buffer of a size, what goes into it and what comes out."""
        count = size // 4
        place = self.torch.arange(count, dtype=self.torch.int32) % PERIOD
        ranks = range(self.job.size)
        self.own = ((place + self.rank) % SUMMANDS).to(self.torch.float32)
        self.expected = sum((place + rank) % SUMMANDS for rank in ranks).to(self.torch.float32)
        self.values = self.torch.empty(count)
        slices = max(1, min(self.job.connections, size // LEAST_SLICE))
        self.parts = list(self.values.chunk(slices))

    def allreduce(self) -> None:
        """Of the buffer, in place; parts travel at the same time."""
        if len(self.parts) == 1:
            self.group.allreduce([self.values]).wait()
            return
        works = [self.group.allreduce([part]) for part in self.parts]
        for work in works:
            work.wait()

    def exchange(self, own: list[float]) -> list[list[float]]:
        """Every rank's numbers, on every rank."""
        numbers = self.torch.zeros(self.job.size, len(own), dtype=self.torch.float64)
        numbers[self.rank] = self.torch.tensor(own, dtype=self.torch.float64)
        self.group.allreduce([numbers]).wait()
        return numbers.tolist()

    def check(self) -> int:
        """How many values of this rank came out wrong."""
        self.values.copy_(self.own)
        start = time.perf_counter()
        self.allreduce()
        self.checked = time.perf_counter() - start
        wrong = int((self.values != self.expected).sum())
        self.values.zero_()
        return wrong

    def warm_up(self) -> float:
        """The seconds of an iteration, after enough of them."""
        checked = max(each[0] for each in self.exchange([self.checked]))
        if 0 < self.job.budget_s <= checked:
            return checked
        batch = 1
        while True:
            start = time.perf_counter()
            for _ in range(batch):
                self.allreduce()
            took = max(each[0] for each in self.exchange([time.perf_counter() - start]))
            if took >= WARM_UP_SHARE * self.job.budget_s or batch >= MOST_WARM_UP:
                return took / batch
            batch *= 4

    def iterations(self, seconds: float) -> int:
        """How many are timed."""
        if self.job.budget_s == 0:
            return self.job.iterations
        fit = int(self.job.budget_s / max(seconds, 1e-9))
        return max(LEAST_ITERATIONS, min(MOST_ITERATIONS, fit))

    def run(self, count: int) -> list[float]:
        """Microseconds of each iteration."""
        times = []
        for number in range(count):
            start = time.perf_counter_ns()
            self.allreduce()
            times.append((time.perf_counter_ns() - start) / 1000)
            if self.job.trace and self.rank == 0:
                print(self.values.nbytes, number, f"{times[-1]:.3f}", flush=True)
        return times

    def measure(self, size: int) -> int:
        """Prints the figures of a size on rank 0; how many values were wrong."""
        self.use(size)
        first_wrong = self.check()
        count = self.iterations(self.warm_up())
        before = time.process_time()
        times = self.run(count)
        cpu = time.process_time() - before
        sums = self.exchange([cpu, float(first_wrong + self.check())])
        wrong = int(sum(each[1] for each in sums))
        if self.rank == 0:
            figures = {
                "bytes": size,
                "time_us": statistics.median(times),
                "min_us": min(times),
                "max_us": max(times),
                "cpu_us": sum(each[0] for each in sums) * 1e6 / count,
                "iterations": count,
                "wrong": wrong,
            }
            print(json.dumps(figures), flush=True)
        return wrong


def fork_rank(rank: int, job: GlooJob, network: str, out: int, error: int) -> int:
    """Starts a rank in a network namespace; its process number. `out` and `error` become its
    standard output and error."""
    pid = os.fork()
    if pid != 0:
        return pid
    code = 1
    try:
        os.dup2(out, 1)
        os.dup2(error, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        enter_network(network)
        worker = Rank(rank, job)
        code = min(1, sum(worker.measure(size) for size in job.bytes))
        worker.exchange([0.0])  # nobody leaves while others still have something to receive
    except BaseException as failure:
        Path("/dev/stderr").write_text(f"gloo, rank {rank}: {failure}\n")
    finally:
        # No farewells: the forked copy of the parent's state is nobody's.
        os._exit(code)
