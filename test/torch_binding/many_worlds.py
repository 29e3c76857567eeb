"""One rank that starts and ends many worlds, one after the other; nothing of them may be left.

Its argument says how many. The memory that counts is what the C library and Python have handed out,
not what is resident. That may grow by a tensor a world, with any backend: the C library of Debian
12 can not use a freed tensor's memory for the next tensor, which must be aligned, once a small
block lies behind it, and torch's flight recorder keeps such a block of every group. Without the
recorder, which the test turns off, the bytes in use are those of the backend.
"""

import ctypes
import datetime
import gc
import os
import sys
import time
from pathlib import Path

import fasthorovod.distributed  # noqa: F401 - registers the backend
import torch
import torch.distributed as dist

FIRST_WORLDS = 10  # they fill pools for good and do not count
# Of one world. The C library counts blocks that a thread keeps to itself as in use: up to 300 bytes
# a world were seen. Torch keeps 11 objects of Python.
MOST_BYTES = 2 << 10
MOST_OBJECTS = 20
ENDING_LIMIT_S = 20  # for what ends by itself: threads, and connections that others have closed


class MallocInfo(ctypes.Structure):
    """What mallinfo2() of the C library returns."""

    _fields_ = [
        ("arena", ctypes.c_size_t),
        ("ordblks", ctypes.c_size_t),
        ("smblks", ctypes.c_size_t),
        ("hblks", ctypes.c_size_t),
        ("hblkhd", ctypes.c_size_t),
        ("usmblks", ctypes.c_size_t),
        ("fsmblks", ctypes.c_size_t),
        ("uordblks", ctypes.c_size_t),
        ("fordblks", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    ]


LIBC = ctypes.CDLL(None)
LIBC.mallinfo2.restype = MallocInfo


def bytes_in_use():
    """Of all threads, in blocks of any size."""
    info = LIBC.mallinfo2()
    return info.uordblks + info.hblkhd


def text_of(path):
    """What a file of /proc says, or where a link there leads; empty when it has just gone."""
    try:
        return os.readlink(path) if path.is_symlink() else path.read_text().strip()
    except OSError:
        return ""


def things():
    """Descriptors, threads, children and shared memory of this process, each in words."""
    me = Path("/proc/self")
    descriptors = {f"descriptor {path.name}: {text_of(path)}" for path in (me / "fd").iterdir()}
    threads = {f"thread {path.name}: {text_of(path / 'comm')}" for path in (me / "task").iterdir()}
    children = {
        f"child {child}"
        for path in (me / "task").iterdir()
        for child in text_of(path / "children").split()
    }
    maps = {line for line in text_of(me / "maps").splitlines() if "/memfd:" in line}
    reading = {entry for entry in descriptors if entry.endswith(("/fd", ": "))}
    return (descriptors - reading) | threads | children | maps


def new_things(before):
    """What is there now and was not; waits for what is about to end."""
    deadline = time.monotonic() + ENDING_LIMIT_S
    while (new := things() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return new


def live_one_world(store, rank, size):
    """With a group beside the default one, and operations of both."""
    dist.init_process_group(
        "fasthorovod",
        store=store,
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=60),
    )
    for group in (dist.group.WORLD, dist.new_group(list(range(size)))):
        tensor = torch.ones(100_000)
        dist.all_reduce(tensor, group=group)
        assert tensor[0] == tensor[-1] == size, tensor
    dist.destroy_process_group()


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    port, worlds = int(os.environ["MASTER_PORT"]), int(sys.argv[1]) - FIRST_WORLDS
    store = dist.TCPStore(os.environ["MASTER_ADDR"], port, size, is_master=rank == 0)
    for _ in range(FIRST_WORLDS):
        live_one_world(store, rank, size)
    gc.collect()
    before = things()
    objects, used = sys.getallocatedblocks(), bytes_in_use()
    for _ in range(worlds):
        live_one_world(store, rank, size)
    gc.collect()
    new = new_things(before)
    used, objects = bytes_in_use() - used, sys.getallocatedblocks() - objects
    print(f"of {worlds} worlds: {used} bytes, {objects} objects, {new}", flush=True)
    assert not new
    assert used < MOST_BYTES * worlds
    assert objects < MOST_OBJECTS * worlds
    store.barrier("the end", size)


if __name__ == "__main__":
    main()
