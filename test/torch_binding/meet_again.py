"""One rank of a world that meets several times at one store, as under torchrun.

The first attempt fails, since one rank (the argument) stays away from it. Later ones succeed: after
groups that ended in another order on each rank, and after a sub-group whose attempt failed.
"""

import datetime
import os
import sys

import fasthorovod.distributed  # noqa: F401 - registers the backend
import torch
import torch.distributed as dist


def meet(store, limit):
    dist.init_process_group(
        "fasthorovod",
        store=store,
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=datetime.timedelta(seconds=limit),
    )


def works(group=None):
    tensor = torch.ones(3)
    dist.all_reduce(tensor, group=group)
    assert tensor[0] == dist.get_world_size(group)


def fails(call, word):
    try:
        call()
    except dist.DistBackendError as error:
        assert word in str(error), error
    else:
        raise AssertionError("the attempt succeeded")


def main():
    absent = int(sys.argv[1])
    os.environ.pop("FASTHOROVOD_START_TIMEOUT")  # torch's limits count
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    port = int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], port, size, is_master=rank == 0)
    if rank != absent:
        for _ in range(rank + 1):  # not even the others try equally often
            fails(lambda: meet(store, 1), f"meet: {absent}" if rank == 0 else "to meet")
    store.barrier("one attempt failed", size)
    everybody = list(range(size))
    for _ in range(3):
        meet(store, 60)
        groups = [dist.group.WORLD, *(dist.new_group(everybody) for _ in range(3))]
        for group in groups:
            works(group)
        for group in groups if rank % 2 else reversed(groups):
            if dist.is_initialized():  # with the default group go all
                dist.destroy_process_group(group)
    meet(store, 60)
    if rank != absent:
        limit = datetime.timedelta(seconds=1)
        fails(
            lambda: dist.new_group(everybody, timeout=limit, group_desc="some come"), "come to meet"
        )
    works()
    dist.destroy_process_group()
    meet(store, 60)
    works(dist.new_group(everybody))
    dist.destroy_process_group()
    print("met again", flush=True)
    store.barrier("the end", size)


if __name__ == "__main__":
    main()
