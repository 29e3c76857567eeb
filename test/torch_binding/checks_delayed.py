"""DelayedOptimizer follows the formulas of its rule to the bit, and all ranks alike."""

import gc
import io
import time
import warnings

import fasthorovod.torch as hvd
import numpy as np
import torch
from checks_common import Raises, equal_on_all_ranks, needs_peers
from checks_optimizer import Net, loss_of

STEPS = 8
ODSGD = hvd.rules.ODSGD


def used(rank):
    """A layer that only rank 0 uses: it has no gradient elsewhere."""
    return {"use_extra": rank == 0}


def groups_of(net):
    """Two groups with settings of their own."""
    slow = [*net.embed.parameters(), *net.hidden.parameters()]
    fast = [*net.extra.parameters(), *net.out.parameters()]
    return [
        {"params": slow, "momentum": 0.9, "weight_decay": 1e-2},
        {"params": fast, "momentum": 0.5, "lr": 0.05},
    ]


def sgd(net):
    return torch.optim.SGD(groups_of(net), lr=0.1, weight_decay=0.0)


def delayed(net, warmup=2, **settings):
    rule = ODSGD(warmup=warmup, **settings)
    return hvd.DelayedOptimizer(sgd(net), net.named_parameters(), rule=rule)


def set_rates(optimizer, step):
    """A schedule: each step has rates of its own."""
    optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
    optimizer.param_groups[1]["lr"] = 0.05 + 0.01 * step


def train(net, optimizer, steps):
    for step in steps:
        set_rates(optimizer, step)
        optimizer.zero_grad()
        loss_of(net, hvd.rank(), step, **used(hvd.rank())).backward()
        optimizer.step()


def values(net):
    return [parameter.detach().clone() for parameter in net.parameters()]


def same_bits(ours, theirs):
    for mine, other in zip(ours, theirs):
        assert torch.equal(mine.view(torch.int32), other.view(torch.int32)), (mine, other)


class Simulation:
    """All ranks in one process. The warm-up is torch's SGD; then come the formulas, in float32."""

    def __init__(self, warmup, local_rate):
        self.warmup, self.local_rate = warmup, local_rate
        self.replicas = [Net() for _ in range(hvd.size())]
        self.common = Net()
        self.optimizer = sgd(self.common)
        self.velocity = {p: np.zeros(p.shape, np.float32) for p in self.common.parameters()}

    def gradients(self, rank, step):
        net = self.replicas[rank]
        net.zero_grad()
        loss_of(net, rank, step, **used(rank)).backward()
        return [torch.zeros_like(p) if p.grad is None else p.grad for p in net.parameters()]

    def step(self, step):
        set_rates(self.optimizer, step)
        all_gradients = [self.gradients(rank, step) for rank in range(hvd.size())]
        settings = {p: group for group in self.optimizer.param_groups for p in group["params"]}
        for i, parameter in enumerate(self.common.parameters()):
            own = [gradients[i].numpy() for gradients in all_gradients]
            mean = own[0].copy()
            for other in own[1:]:
                mean += other
            mean = (mean.astype(np.float64) * (1.0 / hvd.size())).astype(np.float32)
            if step < self.warmup:
                parameter.grad = torch.from_numpy(mean)
            else:
                locals_ = [list(net.parameters())[i].detach().numpy() for net in self.replicas]
                self.update(parameter, settings[parameter], own, mean, locals_)
        if step < self.warmup:
            self.optimizer.step()
            for net in self.replicas:
                net.load_state_dict(self.common.state_dict())
            for p in self.common.parameters():
                self.velocity[p] = self.optimizer.state[p]["momentum_buffer"].numpy().copy()

    def update(self, parameter, group, own, mean, locals_):
        rate, momentum, decay = (
            np.float32(group[key]) for key in ("lr", "momentum", "weight_decay")
        )
        local_rate = rate if self.local_rate is None else np.float32(self.local_rate)
        weights, velocity = parameter.detach().numpy(), self.velocity[parameter]
        for local, gradient in zip(locals_, own):
            local[:] = weights - local_rate * (momentum * velocity + (gradient + decay * weights))
        velocity[:] = momentum * velocity + (mean + decay * weights)
        weights -= rate * velocity


def check_follows_the_formulas_to_the_bit():
    for warmup, local_rate in ((0, None), (3, None), (2, 0.03)):
        net = Net()
        optimizer = delayed(net, warmup, local_rate=local_rate)
        simulation = Simulation(warmup, local_rate)
        for step in range(STEPS):
            train(net, optimizer, [step])
            simulation.step(step)
            same_bits(values(net), values(simulation.replicas[hvd.rank()]))
            with optimizer.global_weights():
                same_bits(values(net), values(simulation.common))
        state = optimizer.state_dict()["state"]
        named = dict(simulation.common.named_parameters())
        for name, one in state.items():
            velocity = torch.from_numpy(simulation.velocity[named[name]])
            same_bits([one["momentum_buffer"]], [velocity])


def check_warm_up_is_synchronous_sgd_to_the_bit():
    net, reference = Net(), Net()
    optimizer = delayed(net, warmup=STEPS)
    synchronous = hvd.DistributedOptimizer(sgd(reference), reference.named_parameters())
    for step in range(STEPS):
        train(net, optimizer, [step])
        train(reference, synchronous, [step])
        same_bits(values(net), values(reference))
        for mine, other in zip(net.parameters(), reference.parameters()):
            same_bits([mine.grad], [other.grad])
    # And one more is not.
    train(net, optimizer, [STEPS])
    train(reference, synchronous, [STEPS])
    assert hvd.size() == 1 or not torch.equal(net.out.weight, reference.out.weight)


def check_a_local_rate_of_zero_gives_the_last_global_weights():
    net = Net()
    optimizer = delayed(net, warmup=1, local_rate=0)
    train(net, optimizer, [0])
    for step in range(1, STEPS):
        with optimizer.global_weights():
            before = values(net)
        train(net, optimizer, [step])
        same_bits(values(net), before)


def check_global_weights_are_the_same_on_all_ranks_and_local_ones_are_not():
    net = Net()
    optimizer = delayed(net)
    for step in range(STEPS):
        train(net, optimizer, [step])
        local = values(net)
        with optimizer.global_weights():
            for parameter in net.parameters():
                equal_on_all_ranks(parameter)
            is_apart = not torch.equal(net.out.weight, local[-2])
        same_bits(values(net), local)
        assert is_apart == (step >= 2 and hvd.size() > 1), step
    with Raises(RuntimeError, "mine"), optimizer.global_weights():
        raise RuntimeError("mine")
    same_bits(values(net), local)


def check_a_state_goes_on_to_the_bit():
    for saved_after in (1, 2, 5):  # in the warm-up, at its end, and after it
        net = Net()
        optimizer = delayed(net)
        train(net, optimizer, range(saved_after))
        file = io.BytesIO()
        torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
        train(net, optimizer, range(saved_after, STEPS))
        file.seek(0)
        saved = torch.load(file)
        again = Net()
        other = delayed(again)
        again.load_state_dict(saved["model"])
        other.load_state_dict(saved["optimizer"])
        assert other.param_groups[1]["lr"] == saved["optimizer"]["param_groups"][1]["lr"]
        train(again, other, range(saved_after, STEPS))
        same_bits(values(net), values(again))
        with optimizer.global_weights(), other.global_weights():
            same_bits(values(net), values(again))
        for one, two in zip(
            optimizer.state_dict()["state"].values(), other.state_dict()["state"].values()
        ):
            same_bits(one.values(), two.values())


def check_a_saved_state_is_a_copy():
    net = Net()
    optimizer = delayed(net, warmup=0)
    train(net, optimizer, range(3))
    state = optimizer.state_dict()
    kept = state["state"]["out.weight"]["global_weights"].clone()
    train(net, optimizer, range(3, 5))
    optimizer.synchronize()
    same_bits([state["state"]["out.weight"]["global_weights"]], [kept])


def check_states_that_do_not_fit():
    net = Net()
    optimizer = delayed(net)
    train(net, optimizer, range(4))
    state = optimizer.state_dict()
    before = values(net)

    def broken(**changes):
        return {**state, **changes}

    shorter = {k: v for k, v in state["state"].items() if k != "out.weight"}
    scalar = {"global_weights": torch.ones(1), "momentum_buffer": torch.ones(1)}
    for bad, word in (
        ({}, "not the state"),
        (torch.optim.SGD(net.parameters(), lr=1).state_dict(), "not the state"),
        (broken(rule=repr(ODSGD(warmup=5))), "warmup=5"),
        (broken(state=shorter), "other parameters"),
        (broken(param_groups=state["param_groups"][::-1]), "other parameters"),
        (broken(state={**state["state"], "out.weight": {}}), "out.weight"),
        (broken(state={**state["state"], "out.weight": scalar}), "out.weight"),
        (broken(steps=1), "warm-up"),
    ):
        with Raises(ValueError, word):
            optimizer.load_state_dict(bad)
    same_bits(values(net), before)
    optimizer.load_state_dict(state)
    train(net, optimizer, range(4, 6))
    optimizer.synchronize()


def check_a_state_comes_from_the_root_to_all():
    net = Net()
    optimizer = delayed(net)
    train(net, optimizer, range(4))
    saved = net.state_dict(), optimizer.state_dict()
    again = Net()
    other = delayed(again)
    if hvd.rank() == 0:
        again.load_state_dict(saved[0])
        other.load_state_dict(saved[1])
    hvd.broadcast_parameters(again.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(other, root_rank=0)
    with optimizer.global_weights(), other.global_weights():
        same_bits(values(net), values(again))
    train(again, other, range(4, 6))
    with other.global_weights():
        for parameter in again.parameters():
            equal_on_all_ranks(parameter)


@needs_peers
def check_a_step_returns_while_its_exchange_can_not_have_run():
    net = Net()
    optimizer = delayed(net, warmup=0)
    train(net, optimizer, [0])
    optimizer.synchronize()
    go_on = torch.zeros(1)
    if hvd.rank() == 1:
        # This rank makes its step only when rank 0 is in the middle of its next one.
        held = hvd.broadcast_async_(go_on, 0, name="go on")
        limit = time.monotonic() + 30
        while not hvd.poll(held):
            assert time.monotonic() < limit, "rank 0 did not go on without this one"
            time.sleep(0.01)
        hvd.synchronize(held)
        train(net, optimizer, [1])
    else:
        train(net, optimizer, [1])
        assert optimizer._exchange.in_flight
        assert optimizer._exchange.updates == 1
        set_rates(optimizer, 2)
        optimizer.zero_grad()
        loss_of(net, hvd.rank(), 2, **used(hvd.rank())).backward()
        assert optimizer._exchange.updates == 1
        hvd.broadcast_(go_on, 0, name="go on")
        optimizer.step()  # here it has to wait
        assert optimizer._exchange.updates == 2
    if hvd.rank() == 1:
        train(net, optimizer, [2])
    with optimizer.global_weights():
        equal_on_all_ranks(net.out.weight)


@needs_peers
def check_gradients_may_change_at_once_after_a_step():
    net, reference = Net(), Net()
    optimizers = [delayed(one, warmup=0) for one in (net, reference)]
    for step in range(4):
        for one, optimizer in zip((net, reference), optimizers):
            train(one, optimizer, [step])
            if one is net:
                for parameter in one.parameters():
                    if parameter.grad is not None:
                        parameter.grad.fill_(torch.nan)
    same_bits(values(net), values(reference))


@needs_peers
def check_ranks_that_differ_are_told_who_has_what():
    def fails(make, *words):
        with Raises(ValueError, *words) as caught:
            make()
        sentences = hvd.allgather_object(str(caught.error))
        assert len(set(sentences)) == 1, sentences

    def other(usual, unusual):
        return unusual if hvd.rank() == 1 else usual

    def wrap(net, optimizer=None, rule=None, names=None):
        optimizer = sgd(net) if optimizer is None else optimizer
        names = list(net.named_parameters()) if names is None else names
        hvd.DelayedOptimizer(optimizer, names, rule=ODSGD() if rule is None else rule)

    net = Net()
    fails(lambda: wrap(net, rule=ODSGD(warmup=other(5, 6))), "rank 1 has", "warmup=5", "warmup=6")
    fails(lambda: wrap(net, rule=ODSGD(other(None, 0.5))), "local_rate=0.5", "local_rate=None")
    fails(lambda: wrap(net, rule=other(ODSGD(), "2bit")), "2bit", "no objection")
    rates = torch.optim.SGD(net.parameters(), lr=other(0.1, 0.2), momentum=0.9)
    fails(lambda: wrap(net, rates), "lr=0.1", "lr=0.2", "parameter group 0")
    renamed = [(other(n, f"my.{n}"), p) for n, p in net.named_parameters()]
    fails(lambda: wrap(net, names=renamed), "'embed.weight'", "'my.embed.weight'", "rank 1 has")
    wider = Net()
    wider.out = torch.nn.Linear(8, 6 + other(0, 1))
    fails(lambda: wrap(wider), "'out.weight' of shape (6, 8)", "'out.weight' of shape (7, 8)")
    fewer = torch.optim.SGD(list(net.parameters())[: other(6, 7)], lr=0.1)
    fails(lambda: wrap(net, fewer), "number of parameters", "rank 1 has 7")
    adam = other(None, torch.optim.Adam(net.parameters()))
    fails(lambda: wrap(net, adam), "rank 1 has", "Adam", "no objection")
    wrap(net)  # the next one works


@needs_peers
def check_unequal_weights_are_found_at_the_first_step():
    net = Net()
    if hvd.rank() == 1:
        with torch.no_grad():
            net.out.bias[0] += 1
    optimizer = delayed(net)
    for _ in range(2):
        with Raises(ValueError, "the weights", "broadcast_parameters", "rank 1 has"):
            train(net, optimizer, [0])
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    train(net, optimizer, [0])
    state = optimizer.state_dict()
    train(net, optimizer, [1, 2, 3])
    later = optimizer.state_dict()
    optimizer.load_state_dict(state if hvd.rank() else later)
    with Raises(ValueError, "steps made", "rank 0 has 4"):
        train(net, optimizer, [4])


@needs_peers
def check_learning_rates_that_differ_are_an_error_on_all_ranks():
    for warmup in (0, 9):
        net = Net()
        optimizer = delayed(net, warmup)
        train(net, optimizer, [0])
        if hvd.rank() == 1:
            optimizer.register_step_pre_hook(lambda one, *_: one.param_groups[1].update(lr=0.07))
        with Raises(hvd.HorovodInternalError, "different steps", "made step 2") as caught:
            train(net, optimizer, [1])
            optimizer.synchronize()
        assert caught.error.code == "mismatch between ranks", caught.error.code
        with Raises(hvd.HorovodInternalError, "different steps"):
            optimizer.step()


def check_what_is_not_supported_is_refused_by_name():
    net = Net()

    def refused(kind, optimizer, *words):
        with Raises(kind, *words):
            hvd.DelayedOptimizer(optimizer, net.named_parameters(), rule=ODSGD())

    def with_options(**options):
        return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, **options)

    refused(NotImplementedError, torch.optim.Adam(net.parameters()), "torch.optim", "Adam")
    refused(NotImplementedError, with_options(nesterov=True), "nesterov=True")
    refused(NotImplementedError, with_options(dampening=0.1), "dampening=0.1")
    refused(NotImplementedError, with_options(maximize=True), "maximize=True")
    wrapped = hvd.DistributedOptimizer(with_options(), net.named_parameters())
    refused(NotImplementedError, wrapped, "torch.optim.SGD itself")
    with Raises(ValueError, "hvd.rules.ODSGD", "'ODSGD'"):
        hvd.DelayedOptimizer(sgd(net), net.named_parameters(), rule="ODSGD")
    for named, word in ((list(net.named_parameters())[:-1], "lacks"), (net.parameters(), "tuples")):
        with Raises(ValueError, word):
            hvd.DelayedOptimizer(sgd(net), named, rule=ODSGD())
    double = Net().double()
    with Raises(ValueError, "embed.weight", "float64", "float32"):
        delayed(double)
    turned = Net()
    turned.out.weight = torch.nn.Parameter(torch.ones(8, 6).t())
    with Raises(ValueError, "out.weight", "not contiguous"):
        delayed(turned)
    for bad in (-1, float("nan"), float("inf"), "fast", True):
        with Raises(ValueError, "local_rate"):
            ODSGD(local_rate=bad)
    for bad in (-1, 1.5, None, True):
        with Raises(ValueError, "warmup"):
            ODSGD(warmup=bad)
    with Raises(NotImplementedError, "no further parameters"):
        delayed(net).add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
    words = torch.nn.Embedding(10, 3, sparse=True)
    plain = torch.optim.SGD(words.parameters(), lr=0.1)
    optimizer = hvd.DelayedOptimizer(plain, words.named_parameters(), rule=ODSGD(warmup=0))
    words(torch.tensor([1])).sum().backward()
    with Raises(NotImplementedError, "gradient of weight is sparse"):
        optimizer.step()


def check_no_step_while_the_global_weights_are_shown():
    net = Net()
    optimizer = delayed(net, warmup=1)
    for step in range(4):
        train(net, optimizer, [step])
        before = values(net)
        with optimizer.global_weights():
            with Raises(ValueError, "global weights"):
                optimizer.step()
            with Raises(ValueError, "global weights"), optimizer.global_weights():
                pass
        same_bits(values(net), before)


def check_frozen_parameters_are_left_alone():
    net = Net()
    net.hidden.requires_grad_(False)
    before = net.hidden.weight.clone()
    optimizer = delayed(net, warmup=1)
    train(net, optimizer, range(4))
    with optimizer.global_weights():
        same_bits([net.hidden.weight], [before])
    assert "hidden.weight" not in optimizer.state_dict()["state"]


def check_stays_the_user_s_optimizer():
    net = Net()
    plain = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    old_scheduler = torch.optim.lr_scheduler.StepLR(plain, 1, gamma=0.5)
    rule = ODSGD(warmup=1)
    optimizer = hvd.DelayedOptimizer(plain, net.named_parameters(), rule=rule)
    assert isinstance(optimizer, torch.optim.SGD)
    assert type(optimizer).__name__ == "SGD"
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    calls = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))

    def closure():
        optimizer.zero_grad()
        loss = loss_of(net, hvd.rank(), 0)
        loss.backward()
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(3):
            version = net.out.weight._version
            assert optimizer.step(closure).item() > 0
            assert net.out.weight._version > version
            scheduler.step()
            assert len(calls) == step + 1
    assert optimizer.param_groups[0]["lr"] == 0.0125
    del old_scheduler


def check_two_optimizers_and_a_plain_one_do_not_meet():
    nets = [Net(), Net(), Net()]
    optimizers = [
        delayed(nets[0], warmup=0),
        delayed(nets[1], warmup=0),
        hvd.DistributedOptimizer(sgd(nets[2]), nets[2].named_parameters()),
    ]
    for step in range(4):
        for net, optimizer in zip(nets, optimizers):
            train(net, optimizer, [step])
    same_bits(values(nets[0]), values(nets[1]))


@needs_peers
def check_in_a_process_set():
    if hvd.size() == 2:
        return  # there is no smaller set than the world
    front = hvd.add_process_set([0, 1])
    net = Net()
    arguments = {"rule": ODSGD(warmup=1), "process_set": front}
    if not front.included():
        with Raises(ValueError, "is not in"):
            hvd.DelayedOptimizer(sgd(net), net.named_parameters(), **arguments)
        return
    optimizer = hvd.DelayedOptimizer(sgd(net), net.named_parameters(), **arguments)
    train(net, optimizer, range(4))
    with optimizer.global_weights():
        rows = hvd.allgather(net.out.bias.detach().unsqueeze(0), process_set=front)
    assert torch.equal(rows[0], rows[1])


@needs_peers
def check_a_failed_exchange_is_told_at_the_next_step_and_a_state_heals_it():
    net = Net()
    optimizer = delayed(net, warmup=0)
    train(net, optimizer, range(3))
    saved = net.state_dict(), optimizer.state_dict()
    saved = {k: v.clone() for k, v in saved[0].items()}, saved[1]
    if hvd.rank() == 1:
        hvd.shutdown()
    else:
        with Raises(hvd.HorovodInternalError) as caught:
            train(net, optimizer, range(3, 5))
        assert caught.error.culprit == 1, caught.error
        for call in (optimizer.step, optimizer.synchronize, optimizer.state_dict):
            with Raises(hvd.HorovodInternalError):
                call()
        hvd.shutdown()
    hvd.init()
    net.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    reference = Net()
    other = delayed(reference, warmup=0)
    train(reference, other, range(3))
    for one, its_optimizer in ((net, optimizer), (reference, other)):
        train(one, its_optimizer, range(3, 6))
    same_bits(values(net), values(reference))


def check_an_optimizer_may_go_while_its_exchange_is_under_way():
    net = Net()
    optimizer = delayed(net, warmup=0)
    train(net, optimizer, range(2))
    del optimizer, net
    gc.collect()
    hvd.barrier()
    net = Net()
    optimizer = delayed(net, warmup=0)
    train(net, optimizer, range(2))
    hvd.barrier()  # all exchanges have been started
    hvd.shutdown()
    hvd.init()


def check_nothing_works_before_init():
    net = Net()
    optimizer = delayed(net, warmup=0)
    train(net, optimizer, [0])
    optimizer.synchronize()
    hvd.shutdown()
    with Raises(ValueError, "init()"):
        train(net, optimizer, [1])
    with Raises(ValueError, "init()"):
        delayed(Net())
    hvd.init()
