"""Groups, sequence numbers, both doors, and coming and going."""

import threading

import fasthorovod.torch as hvd
import torch
import torch.distributed as dist
from checks_c10d_common import needs_peers, rank, size


def works(group=None):
    members = dist.get_world_size(group)
    tensor = torch.ones(3)
    dist.all_reduce(tensor, group=group)
    assert torch.equal(tensor, torch.full((3,), float(members)))


def check_names():
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert backend.name() == "fasthorovod"
    assert dist.get_backend() == "fasthorovod"
    assert (backend.rank(), backend.size()) == (rank(), size())


def check_sequence_numbers():
    group = dist.new_group(list(range(size())))
    first = group._get_sequence_number_for_group()
    dist.all_reduce(torch.ones(1), group=group)
    work = dist.all_reduce(torch.ones(1), group=group, async_op=True)
    work.wait()
    assert group._get_sequence_number_for_group() == first + 2


@needs_peers
def check_sub_groups():
    everybody = list(range(size()))
    for members in (everybody[:1], everybody[1:], everybody[::-1], everybody[::2]):
        group = dist.new_group(sorted(members))
        if rank() in members:
            works(group)
            tensor = torch.full((2,), float(rank()))
            dist.broadcast(tensor, sorted(members)[-1], group=group)
            assert tensor[0] == max(members)
            dist.destroy_process_group(group)
    works()


@needs_peers
def check_groups_do_not_wait_for_one_another():
    one = dist.new_group(list(range(size())))
    other = dist.new_group(list(range(size())))
    first, second = (one, other) if rank() == 0 else (other, one)
    a, b = torch.ones(1000), torch.ones(1000)
    works = [
        dist.all_reduce(a if first is one else b, group=first, async_op=True),
        dist.all_reduce(a if second is one else b, group=second, async_op=True),
    ]
    for work in works:
        work.wait()
    assert a[0] == b[0] == size()


@needs_peers
def check_split_groups():
    half = (size() + 1) // 2
    parts = [list(range(half)), list(range(half, size()))]
    part = dist.split_group(split_ranks=parts)
    mine = parts[rank() >= half]
    assert dist.get_process_group_ranks(part) == mine
    works(part)
    tensor = torch.full((2,), float(rank()))
    dist.broadcast(tensor, mine[-1], group=part)
    assert tensor[0] == mine[-1]
    # Again, from a group whose ranks are not those of the world.
    tail = dist.new_group(list(range(1, size())))
    if rank() > 0:
        whole = dist.split_group(parent_pg=tail, split_ranks=[list(range(size() - 1))])
        works(whole)
        assert dist.get_process_group_ranks(whole) == list(range(1, size()))
    works()


@needs_peers
def check_ranks_outside_of_a_split():
    part = dist.split_group(split_ranks=[[0]])
    if rank() == 0:
        works(part)
    else:
        assert part is dist.GroupMember.NON_GROUP_MEMBER
    works()


def check_subgroups():
    group, groups = dist.new_subgroups(1)
    assert len(groups) == size()
    works(group)


def check_a_bound_device():
    dist.group.WORLD.bound_device_id = torch.device("cpu:0")
    group = dist.new_group([0])
    if rank() == 0:
        works(group)
    works()


def check_many_groups():
    groups = [dist.new_group(list(range(size()))) for _ in range(30)]
    works = [dist.all_reduce(torch.ones(10), group=g, async_op=True) for g in groups]
    for work in works:
        work.wait()


def check_threads_with_groups_of_their_own():
    groups = [dist.new_group(list(range(size()))) for _ in range(4)]
    failures = []

    def loop(number):
        for step in range(20):
            tensor = torch.full((100,), float(number + step))
            dist.all_reduce(tensor, group=groups[number])
            if tensor[0] != (number + step) * size():
                failures.append((number, step, tensor[0]))

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def check_the_horovod_door_beside():
    """hvd.init() in a process that has a group shares its engine."""
    hvd.init()
    assert (hvd.rank(), hvd.size()) == (rank(), size())
    work = dist.all_reduce(torch.ones(100), async_op=True)
    handle = hvd.allreduce_async(torch.ones(100), op=hvd.Sum, name="x")
    assert hvd.synchronize(handle)[0] == size()
    work.wait()
    hvd.shutdown()
    works()
    hvd.init()
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum, name="y")[0] == size()
    works()
    hvd.barrier()
    hvd.shutdown()


def check_monitored_barrier():
    dist.monitored_barrier()


def check_pending_works_end():
    for _ in range(5):
        dist.all_reduce(torch.ones(100), async_op=True)
    dist.group.WORLD._get_backend(torch.device("cpu"))._wait_for_pending_works()
