"""A program of mpi4py that also uses hvd: both see the same ranks, and both work on threads."""

import threading

import fasthorovod.torch as hvd
import torch
from mpi4py import MPI


def gather_numbers(numbers):
    numbers.extend(MPI.COMM_WORLD.allgather(MPI.COMM_WORLD.rank))


hvd.init()
assert hvd.mpi_threads_supported()
assert (hvd.rank(), hvd.size()) == (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)
numbers = []
beside = threading.Thread(target=gather_numbers, args=(numbers,))
beside.start()
total = hvd.allreduce(torch.full((100_000,), hvd.rank() + 1.0), op=hvd.Sum)
beside.join()
assert numbers == list(range(hvd.size()))
assert torch.equal(total, torch.full_like(total, sum(range(1, hvd.size() + 1))))
hvd.shutdown()
assert MPI.COMM_WORLD.allreduce(1) == MPI.COMM_WORLD.size
print("beside mpi4py: ok", flush=True)
