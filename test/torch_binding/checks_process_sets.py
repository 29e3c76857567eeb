"""Process sets: collectives, gradients, state and training among some of the ranks."""

import random

import fasthorovod.torch as hvd
import torch
from checks_common import Raises, needs_peers, same
from checks_optimizer import STEPS, Net, loss_of, sgd
from fasthorovod.common import process_sets


def sets_of_world():
    """Overlapping sets, each rank in some; the last rank alone is in the last."""
    last = hvd.size() - 1
    lists = [[0], list(range(1, hvd.size())), [0, last] if last else [], [last]]
    unique = []
    for ranks in lists:
        known = [*unique, list(range(hvd.size()))]
        if ranks and ranks not in known:
            unique.append(ranks)
    return [hvd.add_process_set(ranks) for ranks in unique]


def mine(sets):
    return [each for each in sets if each.included()]


def value(rank, shape=(5,)):
    return torch.full(shape, float(rank + 1))


def total(process_set):
    return float(sum(rank + 1 for rank in process_set.ranks))


def check_sets_say_who_is_in_them():
    sets = sets_of_world()
    assert [each.process_set_id for each in sets] == list(range(1, len(sets) + 1))
    for each in sets:
        assert each.size() == len(each.ranks)
        assert each.included() == (hvd.rank() in each.ranks)
        if each.included():
            assert each.ranks[each.rank()] == hvd.rank()
        else:
            with Raises(ValueError, "is not in"):
                each.rank()
        assert process_sets.process_set_by_id(each.process_set_id) is each
    assert process_sets.process_sets() == [hvd.global_process_set, *sets]
    with Raises(ValueError, "no process set 99"):
        process_sets.process_set_by_id(99)


def check_collectives_among_the_ranks_of_a_set():
    sets = sets_of_world()
    for _ in range(3):
        for each in mine(sets):
            ranks = [float(rank + 1) for rank in each.ranks]
            own = value(hvd.rank())
            assert hvd.allreduce(own, op=hvd.Sum, process_set=each)[0] == sum(ranks)
            assert hvd.allreduce(own, process_set=each)[0] == sum(ranks) / len(ranks)
            assert hvd.allreduce_(own.clone(), op=hvd.Max, process_set=each)[0] == max(ranks)
            outputs = hvd.grouped_allreduce([own, own], op=hvd.Sum, process_set=each)
            assert [out[0] for out in outputs] == [sum(ranks)] * 2
            rows = hvd.allgather(value(hvd.rank(), (hvd.rank(), 2)), process_set=each)
            same(rows, torch.cat([value(rank, (rank, 2)) for rank in each.ranks]))
            for root in each.ranks:
                same(hvd.broadcast(own, root, process_set=each), value(root))
            hvd.barrier(process_set=each)
            assert (
                hvd.broadcast_object(hvd.rank(), each.ranks[-1], process_set=each)
                == (each.ranks[-1])
            )
            assert hvd.allgather_object(hvd.rank(), process_set=each) == each.ranks


def check_everything_at_once_in_any_order():
    sets = [hvd.global_process_set, *mine(sets_of_world())]
    shuffle = random.Random(hvd.rank()).shuffle
    for _ in range(5):
        calls = [(each, i) for each in sets for i in range(40)]
        shuffle(calls)
        handles = [
            hvd.allreduce_async(
                value(hvd.rank(), (1 + 97 * i,)), op=hvd.Sum, name=f"{i}", process_set=each
            )
            for each, i in calls
        ]
        for handle, (each, i) in zip(handles, calls):
            result = hvd.synchronize(handle)
            same(result, torch.full((1 + 97 * i,), total(each)))


def check_gradients_stay_in_the_set():
    for each in mine(sets_of_world()):
        size = each.size()
        x = value(hvd.rank()).requires_grad_()
        hvd.allreduce(x, op=hvd.Sum, process_set=each).sum().backward()
        same(x.grad, torch.full((5,), float(size)))
        x = value(hvd.rank(), (hvd.rank() + 1, 2)).requires_grad_()
        rows = hvd.allgather(x, process_set=each)
        (rows * torch.arange(len(rows))[:, None]).sum().backward()
        before = sum(rank + 1 for rank in each.ranks if rank < hvd.rank())
        same(x.grad[:, 0], torch.arange(before, before + hvd.rank() + 1).float())
        x = value(hvd.rank()).requires_grad_()
        root = each.ranks[-1]
        hvd.broadcast(x, root, process_set=each).sum().backward()
        same(x.grad, torch.full((5,), float(hvd.rank() == root)))


def check_sets_that_cannot_be():
    refused = {
        "is there already": list(range(hvd.size())),
        f"rank {hvd.size()} is not one of": [0, hvd.size()],
        "at least one rank": [],
    }
    if hvd.size() > 1:
        hvd.add_process_set([0])
        refused["are a process set already, number 1"] = [0]
    for words, ranks in refused.items():
        with Raises(ValueError, words):
            hvd.add_process_set(ranks)
    for wrong in (["0"], [1.5], [True], [-1], 3, "01", None):
        with Raises(ValueError, "ProcessSet"):
            hvd.ProcessSet(wrong)
    with Raises(ValueError, "once"):
        hvd.ProcessSet([0, 0])
    with Raises(ValueError, "must be a ProcessSet"):
        hvd.allreduce(torch.zeros(1), process_set=[0])
    with Raises(ValueError, "not registered", "add_process_set"):
        hvd.allreduce(torch.zeros(1), process_set=hvd.ProcessSet([0]))
    with Raises(ValueError, "not registered"):
        hvd.DistributedOptimizer(sgd(Net()), process_set=hvd.ProcessSet([0]))


@needs_peers
def check_sets_of_others_are_refused():
    others = hvd.add_process_set([0])
    if hvd.rank() == 0:
        with Raises(ValueError, "root 1 is not one of the ranks [0]"):
            hvd.broadcast(torch.zeros(2), 1, process_set=others)
        return
    for call in (hvd.allreduce, hvd.allgather, hvd.allreduce_async, hvd.allreduce_):
        with Raises(ValueError, f"rank {hvd.rank()} is not in"):
            call(torch.zeros(2), process_set=others)
    with Raises(ValueError, "is not in"):
        hvd.barrier(process_set=others)


@needs_peers
def check_ranks_that_name_different_sets():
    with Raises(hvd.HorovodInternalError, "disagree about the ranks", "rank 0: [0]"):
        hvd.add_process_set([min(hvd.rank(), 1)])
    with Raises(hvd.HorovodInternalError, "new process set", "all-reduce"):
        if hvd.rank():
            hvd.add_process_set([0])
        else:
            hvd.allreduce(torch.zeros(2))
    assert hvd.add_process_set([0]).process_set_id == 1


@needs_peers
def check_mistakes_stay_in_the_set():
    each = hvd.add_process_set([0, 1]) if hvd.size() > 2 else hvd.global_process_set
    if each.included():
        with Raises(hvd.HorovodInternalError, "disagree about the shape"):
            hvd.allreduce(torch.zeros(1 + hvd.rank()), name="x", process_set=each)
        hvd.allreduce(torch.zeros(3), name="x", process_set=each)
    hvd.allreduce(torch.zeros(3), name="x")


def check_sets_come_and_go():
    for number in range(1, 6):
        if hvd.size() == 1:
            return
        first = hvd.add_process_set([hvd.size() - 1])
        assert first.process_set_id == number
        if first.included():
            hvd.allreduce(torch.zeros(1), process_set=first)
        assert hvd.remove_process_set(first)
        assert (first.process_set_id, first.ranks, first.included()) == (None, None, None)
        assert not hvd.remove_process_set(first)
        with Raises(ValueError, "not registered"):
            hvd.allreduce(torch.zeros(1), process_set=first)
        with Raises(ValueError, "removed"):
            hvd.add_process_set(first)
    assert not hvd.remove_process_set(hvd.global_process_set)


def check_sets_given_to_init():
    lists = [[0], [hvd.size() - 1]] if hvd.size() > 1 else []
    hvd.shutdown()
    sets = [hvd.ProcessSet(ranks) for ranks in lists]
    for _ in range(3):  # the objects may be used again after each start
        hvd.init(process_sets=sets)
        assert [each.process_set_id for each in sets] == list(range(1, len(sets) + 1))
        for each in mine(sets):
            assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=each).item() == 1
        hvd.barrier()
        hvd.shutdown()
        assert all(each.process_set_id is None for each in sets)
    for wrong in ("static", [[0]], [hvd.ProcessSet([0]), hvd.ProcessSet([0])]):
        with Raises(ValueError, "process_sets"):
            hvd.init(process_sets=wrong)
        assert not hvd.is_initialized()
    hvd.init(process_sets="dynamic")


def check_a_bad_set_ends_init():
    hvd.shutdown()
    with Raises(ValueError, "is not one of"):
        hvd.init(process_sets=[hvd.ProcessSet([0, 1000])])
    assert not hvd.is_initialized()
    hvd.init()


@needs_peers
def check_join_counts_as_zeros_in_sets():
    pair = hvd.add_process_set([0, 1]) if hvd.size() > 2 else hvd.global_process_set
    if hvd.rank() == 0:
        for step in range(3):
            out = hvd.allreduce(torch.ones(2), op=hvd.Sum, name="x", process_set=pair)
            assert out[0] == (1.0 if step else 2.0)
    elif hvd.rank() == 1:
        hvd.allreduce(torch.ones(2), op=hvd.Sum, name="x", process_set=pair)
    hvd.join()
    if pair.included():
        assert hvd.allreduce(torch.ones(2), op=hvd.Sum, process_set=pair)[0] == 2.0


def check_state_from_the_root_of_a_set():
    for each in mine(sets_of_world()):
        root = each.ranks[-1]
        net = Net()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.fill_(float(hvd.rank()))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1 * (hvd.rank() + 1), momentum=0.9)
        if hvd.rank() == root:
            loss_of(net, 0, 0).backward()
            optimizer.step()
        hvd.broadcast_parameters(net.state_dict(), root, process_set=each)
        hvd.broadcast_optimizer_state(optimizer, root, process_set=each)
        assert optimizer.param_groups[0]["lr"] == 0.1 * (root + 1)
        rows = hvd.allgather(net.out.weight.detach().reshape(1, -1), process_set=each)
        assert all(torch.equal(row, rows[0]) for row in rows)


def train_alone(net, optimizer, ranks):
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in ranks:
            (loss_of(net, rank, step) / len(ranks)).backward()
        optimizer.step()


def check_two_sets_train_two_models():
    """Each set its own, at the same time; a third model is trained by all ranks beside them."""
    front = [rank for rank in range(hvd.size()) if rank % 2 == 0]
    back = [rank for rank in range(hvd.size()) if rank % 2]
    sets = [hvd.add_process_set(ranks) for ranks in (front, back) if hvd.size() > 1]
    (own,) = mine(sets) or [hvd.global_process_set]
    trained, common = Net(), Net()
    optimizer = hvd.DistributedOptimizer(
        sgd(trained), trained.named_parameters(), process_set=own, groups=2
    )
    common_optimizer = hvd.DistributedOptimizer(sgd(common), common.named_parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        common_optimizer.zero_grad()
        loss_of(trained, hvd.rank(), step).backward()
        loss_of(common, hvd.rank(), step).backward()
        common_optimizer.step()
        optimizer.step()
    for net, ranks in ((trained, own.ranks), (common, list(range(hvd.size())))):
        alone = Net()
        train_alone(alone, sgd(alone), ranks)
        for a, b in zip(net.parameters(), alone.parameters()):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@needs_peers
def check_a_rank_outside_trains_by_itself():
    first = hvd.add_process_set([0])
    net, alone = Net(), Net()
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters(), process_set=first)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(net, hvd.rank(), step).backward()
        optimizer.step()
    train_alone(alone, sgd(alone), [hvd.rank()])
    for a, b in zip(net.parameters(), alone.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
