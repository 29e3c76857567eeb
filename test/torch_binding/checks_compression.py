"""What codecs do to tensors, and the recipe that DistributedOptimizer follows with twobit."""

import functools
import io
import warnings

import fasthorovod.torch as hvd
import numpy as np
import torch
from checks_common import Raises, equal_on_all_ranks, needs_peers
from fasthorovod import _C

THRESHOLD = 0.05
STEPS = 8
twobit = hvd.Compression.twobit


def values(rank, count=1500, seed=0):
    return torch.randn(count, generator=torch.Generator().manual_seed(100 * seed + rank))


class TwobitExchange:
    """The average that twobit makes of some ranks' tensors, step by step; residuals included."""

    def __init__(self, threshold):
        self.threshold = np.float32(threshold)
        self.residuals = {}

    def __call__(self, name, tensors):
        kept = self.residuals.setdefault(name, [np.float32(0)] * len(tensors))
        total = 0
        for rank, tensor in enumerate(tensors):
            value = tensor.numpy() + kept[rank]
            code = (value >= self.threshold).astype(int) - (value <= -self.threshold).astype(int)
            kept[rank] = value - np.float32(code) * self.threshold
            total = total + code
        unit = np.float32(np.float64(self.threshold) * (1.0 / len(tensors)))
        return torch.from_numpy(total.astype(np.float32) * unit)


def mean(tensors):
    """The plain all-reduce: summed in the order of the ranks, rounded, then divided."""
    total = tensors[0].numpy().copy()
    for other in tensors[1:]:
        total += other.numpy()
    return torch.from_numpy((total.astype(np.float64) * (1.0 / len(tensors))).astype(np.float32))


def check_every_codec_is_offered():
    offered = {name for name in vars(hvd.Compression) if not name.startswith("_")}
    assert offered == {name for name, _ in _C.codecs()}, offered


def check_roundings():
    everything = [values(rank) for rank in range(hvd.size())]
    for compression, dtype in (
        (hvd.Compression.fp16, torch.float16),
        (hvd.Compression.bf16, torch.bfloat16),
    ):
        rounded = [each.to(dtype).float() for each in everything]
        expected = mean(rounded).to(dtype).float()
        if hvd.size() == 1:
            expected = everything[0]
        eps = torch.finfo(dtype).eps
        for own in (everything[hvd.rank()], everything[hvd.rank()].double()):
            given = own.clone()
            result = hvd.allreduce(own, compression=compression)
            assert result.dtype == own.dtype and torch.equal(own, given)
            torch.testing.assert_close(result.float(), expected, rtol=eps, atol=eps)
            equal_on_all_ranks(result)
        results = hvd.grouped_allreduce([own, own.float()[:100]], compression=compression)
        torch.testing.assert_close(results[1], expected[:100], rtol=eps, atol=eps)
        whole = torch.arange(5)
        assert torch.equal(hvd.allreduce(whole, compression=compression), whole)


@needs_peers
def check_twobit_keeps_what_it_does_not_say():
    simulated = TwobitExchange(0.5)
    for seed in range(4):
        everything = [values(rank, seed=seed) for rank in range(hvd.size())]
        own = everything[hvd.rank()]
        result = hvd.allreduce(own, name="t", compression=twobit(0.5))
        assert torch.equal(result, simulated("t", everything))
        parts = hvd.grouped_allreduce([own, own[:99]], name="g", compression=twobit(0.5))
        assert torch.equal(parts[0], result)
        assert torch.equal(parts[1], result[:99])
    kept = _C.residual("allreduce.t", 0)
    assert torch.equal(kept, torch.from_numpy(simulated.residuals["t"][hvd.rank()]))
    _C.set_residual("allreduce.t", torch.zeros(0), 0)
    result = hvd.allreduce(own, name="t", compression=twobit(0.5))
    assert torch.equal(result, TwobitExchange(0.5)("t", everything))


def check_what_twobit_refuses():
    with Raises(ValueError, "give a name"):
        hvd.allreduce(torch.ones(5), compression=twobit(0.5))
    with Raises(ValueError, "give a name"):
        hvd.grouped_allreduce([torch.ones(5)], compression=twobit(0.5))
    for bad in (0, -1.0, float("nan"), float("inf"), "much", None, True):
        with Raises(ValueError, "threshold"):
            twobit(bad)
    for bad in (-1, 1.5, None, True):
        with Raises(ValueError, "warmup"):
            twobit(1.0, warmup=bad)
        with Raises(ValueError, "least_elements"):
            twobit(1.0, least_elements=bad)


@needs_peers
def check_ranks_with_different_thresholds_are_told_so():
    with Raises(hvd.HorovodInternalError, "threshold=1", "threshold=2", "rank 0"):
        hvd.allreduce(torch.ones(9), name="t", compression=twobit(1.0 if hvd.rank() else 2.0))
    net = Net()
    optimizer = wrap(net, compression=twobit(1.0 if hvd.rank() else 2.0, warmup=0))
    backward(net, 0)
    with Raises(hvd.HorovodInternalError, "threshold=1", "threshold=2"):
        optimizer.step()


class Net(torch.nn.Module):
    """A layer of 1120 weights, which are encoded; the rest is small, and a part is used by rank 0
    only."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.wide = torch.nn.Linear(16, 70)
        self.extra = torch.nn.Linear(70, 70)
        self.out = torch.nn.Linear(70, 4)

    def forward(self, x, use_extra):
        x = torch.tanh(self.wide(x))
        return self.out(x + self.extra(x) if use_extra else x)


def loss_of(net, rank, step):
    x = values(rank, 64, seed=step + 1).view(4, 16)
    return (net(x, use_extra=rank == 0) - x[:, :4].flip(1)).square().mean()


def backward(net, step):
    loss_of(net, hvd.rank(), step).backward()


def sgd(net):
    """Two groups with options of their own."""
    few, rest = [*net.wide.parameters()], [*net.extra.parameters(), *net.out.parameters()]
    groups = [{"params": few, "weight_decay": 1e-2}, {"params": rest, "momentum": 0.5, "lr": 0.05}]
    return torch.optim.SGD(groups, lr=0.1, momentum=0.9)


def wrap(net, compression=None, warmup=3, **options):
    if compression is None:
        compression = twobit(THRESHOLD, warmup=warmup)
    named = net.named_parameters()
    return hvd.DistributedOptimizer(sgd(net), named, compression=compression, **options)


def train(net, optimizer, steps=range(STEPS), passes=1):
    for step in steps:
        optimizer.zero_grad()
        for one in range(passes):
            backward(net, step * passes + one)
        optimizer.step()
    return net


@functools.cache
def simulate(ranks, warmup=3, passes=1, least_elements=1024, threshold=THRESHOLD):
    """Trains with these ranks' data in one process, as the recipe says; the net."""
    net = Net()
    optimizer = sgd(net)
    exchange = TwobitExchange(threshold)
    momenta = {}
    for step in range(STEPS):
        gradients = []
        for rank in ranks:
            net.zero_grad()
            for one in range(passes):
                loss_of(net, rank, step * passes + one).backward()
            some = ((p, p.grad) for p in net.parameters())
            gradients.append({p: torch.zeros_like(p) if g is None else g for p, g in some})
        for group in optimizer.param_groups:
            for p in group["params"]:
                own = [each[p] for each in gradients]
                if step < warmup:
                    p.grad = mean(own)
                    continue
                buffer = optimizer.state[p].get("momentum_buffer", torch.zeros_like(p))
                us = momenta.setdefault(p, [buffer.clone() for _ in ranks])
                with torch.no_grad():
                    for rank, gradient in enumerate(own):
                        g = gradient.add(p, alpha=group["weight_decay"])
                        us[rank] = us[rank].mul(group["momentum"]).add(g)
                    u = exchange(p, us) if p.numel() >= least_elements else mean(us)
                    p.sub_(u, alpha=group["lr"])
        if step < warmup:
            optimizer.step()
    return net


def same_bits(net, other):
    for (name, mine), theirs in zip(net.named_parameters(), other.parameters()):
        assert torch.equal(mine, theirs), (name, (mine - theirs).abs().max())
        equal_on_all_ranks(mine)


@needs_peers
def check_recipe_to_the_bit():
    everybody = range(hvd.size())
    for warmup in (0, 3):
        net = Net()
        same_bits(train(net, wrap(net, warmup=warmup)), simulate(everybody, warmup))
    net = Net()
    compression = twobit(0.1, warmup=2, least_elements=0)
    same_bits(train(net, wrap(net, compression)), simulate(everybody, 2, 1, 0, 0.1))


@needs_peers
def check_recipe_with_groups_and_passes():
    expected = simulate(range(hvd.size()), passes=3)
    for groups in (None, 1, 2):
        net = Net()
        optimizer = wrap(net, backward_passes_per_step=3, groups=groups)
        same_bits(train(net, optimizer, passes=3), expected)


@needs_peers
def check_recipe_in_process_sets():
    own_sets = [hvd.add_process_set([r]) for r in range(hvd.size())]
    net, alone = Net(), Net()
    train(net, wrap(net, warmup=1, process_set=own_sets[hvd.rank()]))
    train(alone, sgd(alone))
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), alone.parameters()))
    if hvd.size() < 3:
        return
    pair = hvd.add_process_set([0, 2])
    net = Net()
    train(net, wrap(net, process_set=pair))
    if pair.included():
        expected = simulate(range(0, 3, 2))
        assert all(torch.equal(a, b) for a, b in zip(net.parameters(), expected.parameters()))


def check_dense_steps_are_those_without_compression():
    net, plain = Net(), Net()
    train(net, wrap(net, warmup=STEPS))
    train(plain, wrap(plain, compression=hvd.Compression.none))
    same_bits(net, plain)


@needs_peers
def check_sum_is_average_of_larger_steps():
    """With thresholds and losses to match, the sum takes the way of the average."""
    size = hvd.size()
    net, summed = Net(), Net()
    train(net, wrap(net, compression=twobit(THRESHOLD, warmup=3)))
    optimizer = wrap(summed, compression=twobit(THRESHOLD / size, warmup=3), op=hvd.Sum)
    for step in range(STEPS):
        optimizer.zero_grad()
        (loss_of(summed, hvd.rank(), step) / size).backward()
        optimizer.step()
    for a, b in zip(net.parameters(), summed.parameters()):
        # Rounding may push a value over the threshold: then one element is a code apart.
        assert ((a - b).abs() > 1e-5).float().mean() < 0.01
        equal_on_all_ranks(b)


@needs_peers
def check_closure_and_synchronize_by_hand():
    expected = simulate(range(hvd.size()))
    net, by_hand = Net(), Net()
    optimizer = wrap(net)
    for step in range(STEPS):

        def closure(step=step):
            optimizer.zero_grad()
            loss = loss_of(net, hvd.rank(), step)
            loss.backward()
            return loss

        assert optimizer.step(closure).item() > 0
    same_bits(net, expected)
    optimizer = wrap(by_hand)
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(by_hand, step)
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()
    same_bits(by_hand, expected)
    assert [group["momentum"] for group in optimizer.param_groups] == [0.9, 0.5]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [1e-2, 0]


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


@needs_peers
def check_saved_state_goes_on_to_the_bit():
    for saved_after in (2, 5):  # in the dense steps, and after them
        net = Net()
        optimizer = wrap(net, groups=2)
        train(net, optimizer, range(saved_after))
        state = through_a_file(optimizer.state_dict())
        assert state["twobit"]["steps"] == saved_after
        assert ("extra.weight" in state["twobit"]["residual"]) == (saved_after > 3)
        later = Net()
        later.load_state_dict(net.state_dict())
        other = wrap(later)
        other.load_state_dict(state)
        train(later, other, range(saved_after, STEPS))
        same_bits(later, simulate(range(hvd.size())))
        train(net, optimizer, range(saved_after, STEPS))
        same_bits(net, later)


@needs_peers
def check_state_without_the_recipe_starts_dense_again():
    net, plain = Net(), Net()
    reference = wrap(plain, compression=hvd.Compression.none)
    train(plain, reference, range(3))
    optimizer = wrap(net)
    train(net, optimizer, range(6))
    net.load_state_dict(plain.state_dict())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.load_state_dict(through_a_file(reference.state_dict()))
    assert any("next 3 steps" in str(w.message) for w in caught)
    for one, other in ((net, optimizer), (plain, reference)):
        train(one, other, range(3, 6))
    same_bits(net, plain)
    state = optimizer.state_dict()
    assert state["twobit"] == {"steps": 3, "momentum": {}, "residual": {}}
    train(net, optimizer, [6])
    state = optimizer.state_dict()
    state["twobit"]["momentum"]["wide.weight"] = torch.zeros(3)
    with Raises(ValueError, "wide.weight"):
        optimizer.load_state_dict(state)
    backward(net, 7)
    with Raises(AssertionError, "state_dict"):
        optimizer.state_dict()


@needs_peers
def check_state_of_the_root_for_all():
    net = Net()
    optimizer = wrap(net)
    train(net, optimizer, range(6))
    state = through_a_file(optimizer.state_dict())
    later = Net()
    other = wrap(later)
    if hvd.rank() == 0:
        later.load_state_dict(net.state_dict())
        other.load_state_dict(state)
    hvd.broadcast_parameters(later.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(other, root_rank=0)
    mine = other.state_dict()["twobit"]
    assert mine["steps"] == 6
    assert mine["residual"].keys() == {"wide.weight", "extra.weight"}
    for tensor in (*mine["momentum"].values(), *mine["residual"].values()):
        equal_on_all_ranks(tensor)
    train(later, other, range(6, STEPS))
    equal_on_all_ranks(later.extra.weight)


@needs_peers
def check_a_value_that_is_not_finite_is_taken_back():
    net = Net()
    optimizer = wrap(net)
    train(net, optimizer, range(4))
    before = [p.detach().clone() for p in net.parameters()]
    for parameter in (net.wide.weight, net.out.bias):  # one is encoded, the other is not
        momenta = dict(optimizer.state_dict()["twobit"]["momentum"])
        optimizer.zero_grad()
        scale = float("inf") if hvd.rank() == 1 else 1.0
        hook = parameter.register_hook(lambda gradient, scale=scale: gradient * scale)
        backward(net, 4)
        hook.remove()
        optimizer.synchronize()
        assert not torch.isfinite(parameter.grad).all()
        equal_on_all_ranks(torch.isfinite(parameter.grad))
        optimizer.zero_grad()  # what a loss scaler does: no step
        after = optimizer.state_dict()["twobit"]
        assert all(torch.equal(after["momentum"][name], u) for name, u in momenta.items())
        assert all(torch.isfinite(kept).all() for kept in after["residual"].values())
        assert all(torch.equal(a, b) for a, b in zip(net.parameters(), before))
    train(net, optimizer, range(4, STEPS))
    assert all(torch.isfinite(p).all() for p in net.parameters())
    equal_on_all_ranks(net.extra.weight)


def check_optimizers_that_twobit_does_not_go_with():
    net = Net()

    def refused(optimizer, *words):
        with Raises(NotImplementedError, "Compression.twobit", *words):
            hvd.DistributedOptimizer(optimizer, net.named_parameters(), compression=twobit(0.1))

    def with_options(**options):
        return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, **options)

    refused(torch.optim.Adam(net.parameters()), "Adam", "torch.optim.SGD")
    refused(with_options(nesterov=True), "nesterov=True", "weight_decay")
    refused(with_options(dampening=0.1), "dampening=0.1")
    refused(with_options(maximize=True), "maximize=True")
    with Raises(NotImplementedError, "no further parameters"):
        wrap(net).add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
