"""Training with DistributedOptimizer equals training one process on the data of all ranks."""

import gc
import warnings

import fasthorovod.torch as hvd
import torch
from checks_common import Raises, equal_on_all_ranks, needs_peers

STEPS = 5


class Net(torch.nn.Module):
    """A layer that may be unused, one that may be frozen, and a tied pair."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.embed = torch.nn.Linear(6, 8, bias=False)
        self.hidden = torch.nn.Linear(8, 8)
        self.extra = torch.nn.Linear(8, 8)
        self.out = torch.nn.Linear(8, 6)

    def forward(self, x, use_extra=True):
        x = torch.tanh(self.hidden(self.embed(x)))
        if use_extra:
            x = x + self.extra(x)
        return self.out(x)


def tied():
    net = Net()
    net.out = torch.nn.Linear(8, 6, bias=False)
    net.out.weight = torch.nn.Parameter(net.embed.weight.detach().t().clone())
    net.hidden.weight = net.extra.weight
    return net


def loss_of(net, rank, step, **options):
    generator = torch.Generator().manual_seed(100 * step + rank)
    x = torch.randn(4, 6, generator=generator)
    return (net(x, **options) - x.flip(1)).square().mean()


def sgd(net):
    trained = [p for p in net.parameters() if p.requires_grad]
    return torch.optim.SGD(trained, lr=0.1, momentum=0.9)


def adam(net):
    return torch.optim.Adam(net.parameters(), lr=0.01)


def train_alone(net, make, passes=1, clip=None, factor=1.0, options=lambda rank: {}):
    """One process sees the data of all ranks."""
    optimizer = make(net)
    for step in range(STEPS):
        optimizer.zero_grad()
        for one in range(passes):
            for rank in range(hvd.size()):
                loss = loss_of(net, rank, step * passes + one, **options(rank))
                (loss * factor / hvd.size()).backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
    return net


def train_together(net, make, passes=1, clip=None, options=lambda rank: {}, **arguments):
    """Each rank sees its own data."""
    optimizer = hvd.DistributedOptimizer(
        make(net),
        named_parameters=net.named_parameters(),
        backward_passes_per_step=passes,
        **arguments,
    )
    for step in range(STEPS):
        optimizer.zero_grad()
        for one in range(passes):
            loss_of(net, hvd.rank(), step * passes + one, **options(hvd.rank())).backward()
        if clip is None:
            optimizer.step()
        else:
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            with optimizer.skip_synchronize():
                optimizer.step()
    return net


def same_nets(a, b, tolerance=1e-5):
    for (name, x), y in zip(a.named_parameters(), b.parameters()):
        torch.testing.assert_close(
            x, y, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )
        equal_on_all_ranks(y)


def check_equals_one_process():
    for make in (sgd, adam):
        same_nets(train_alone(Net(), make), train_together(Net(), make))


def check_accumulation_sums_the_passes():
    same_nets(train_alone(Net(), sgd, passes=3), train_together(Net(), sgd, passes=3))


def check_clipping_of_reduced_gradients():
    same_nets(train_alone(Net(), sgd, clip=0.05), train_together(Net(), sgd, clip=0.05))
    alone = train_alone(Net(), sgd, clip=0.05, passes=2)
    same_nets(alone, train_together(Net(), sgd, clip=0.05, passes=2))


def check_sum_and_predivide():
    alone = train_alone(Net(), sgd, factor=hvd.size())
    same_nets(alone, train_together(Net(), sgd, op=hvd.Sum))
    alone = train_alone(Net(), sgd)
    same_nets(alone, train_together(Net(), sgd, gradient_predivide_factor=4.0))
    with Raises(ValueError, "predivide"):
        train_together(Net(), sgd, op=hvd.Sum, gradient_predivide_factor=2.0)


def check_groups():
    alone = train_alone(Net(), sgd)
    for groups in (1, 2, 100):
        same_nets(alone, train_together(Net(), sgd, groups=groups))
    net = Net()
    lists = [[net.out.weight, net.embed.weight], [net.hidden.bias]]
    same_nets(alone, train_together(net, sgd, groups=lists, gradient_predivide_factor=2.0))
    net = Net()
    for bad in (
        0,
        -1,
        1.5,
        [net.out.weight],
        [[net.out.weight], [net.out.weight]],
        [[Net().out.bias]],
    ):
        with Raises(ValueError, "groups"):
            train_together(net, sgd, groups=bad)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        same_nets(alone, train_together(Net(), sgd, num_groups=3))
    assert any("num_groups" in str(w.message) for w in caught)


def check_fp16_compression():
    together = train_together(Net(), sgd, compression=hvd.Compression.fp16)
    same_nets(train_alone(Net(), sgd), together, tolerance=5e-3)


def check_parameters_unused_on_some_ranks_count_as_zero():
    def options(rank):
        return {"use_extra": rank == 0}

    same_nets(train_alone(Net(), sgd, options=options), train_together(Net(), sgd, options=options))
    alone = train_alone(Net(), sgd, options=options)
    same_nets(alone, train_together(Net(), sgd, options=options, groups=2))


def check_parameters_unused_everywhere():
    def options(rank):
        return {"use_extra": False}

    same_nets(train_alone(Net(), sgd, options=options), train_together(Net(), sgd, options=options))


def check_tied_weights_are_reduced_once():
    same_nets(train_alone(tied(), sgd), train_together(tied(), sgd))
    net = tied()
    before = hvd.communication_statistics()["tensors"]
    optimizer = hvd.DistributedOptimizer(
        sgd(net), named_parameters=net.named_parameters(remove_duplicate=False)
    )
    loss_of(net, hvd.rank(), 0).backward()
    optimizer.step()
    reduced = hvd.communication_statistics()["tensors"] - before
    assert reduced == (len(list(net.parameters())) if hvd.size() > 1 else 0)


def frozen():
    net = Net()
    net.hidden.requires_grad_(False)
    return net


def check_frozen_parameters():
    same_nets(train_alone(frozen(), sgd), train_together(frozen(), sgd))
    same_nets(train_alone(frozen(), adam), train_together(frozen(), adam, groups=2))


def check_parameters_frozen_and_thawed_between_steps():
    net, alone = Net(), Net()
    optimizer = hvd.DistributedOptimizer(adam(net), net.named_parameters())
    reference = adam(alone)
    for step in range(4):
        for one in (net, alone):
            one.hidden.requires_grad_(step % 2 == 1)
        optimizer.zero_grad()
        reference.zero_grad()
        loss_of(net, hvd.rank(), step).backward()
        optimizer.step()
        for rank in range(hvd.size()):
            (loss_of(alone, rank, step) / hvd.size()).backward()
        reference.step()
    same_nets(alone, net)


def check_two_optimizers_do_not_meet():
    for named in (False, True):
        nets = [Net(), Net()]
        optimizers = [
            hvd.DistributedOptimizer(sgd(n), n.named_parameters() if named else None) for n in nets
        ]
        for step in range(STEPS):
            for optimizer in optimizers:
                optimizer.zero_grad()
            for net in nets:
                loss_of(net, hvd.rank(), step).backward()
            for optimizer in optimizers:
                optimizer.step()
        alone = train_alone(Net(), sgd)
        for net in nets:
            same_nets(alone, net)


def check_closure():
    net = Net()
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    for step in range(STEPS):

        def closure(step=step):
            optimizer.zero_grad()
            loss = loss_of(net, hvd.rank(), step)
            loss.backward()
            return loss

        assert optimizer.step(closure).item() > 0
    same_nets(train_alone(Net(), sgd), net)


def check_last_incomplete_accumulation_is_reduced_by_step():
    net = Net()
    optimizer = hvd.DistributedOptimizer(
        sgd(net), net.named_parameters(), backward_passes_per_step=4
    )
    loss_of(net, hvd.rank(), 0).backward()
    optimizer.step()
    optimizer.zero_grad()
    for one in range(4):
        loss_of(net, hvd.rank(), one + 1).backward()
    optimizer.step()
    equal_on_all_ranks(net.out.weight)


@needs_peers
def check_misuse_is_an_assertion():
    net = Net()
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    loss_of(net, hvd.rank(), 0).backward()
    with Raises(AssertionError, "zero_grad"):
        optimizer.zero_grad()
    with Raises(AssertionError, "backward_passes_per_step"):
        loss_of(net, hvd.rank(), 1).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    optimizer.set_backward_passes_per_step(2)
    for one in range(2):
        loss_of(net, hvd.rank(), one).backward()
    optimizer.step()
    optimizer.zero_grad(True)
    equal_on_all_ranks(net.out.weight)


def check_arguments_that_do_not_fit():
    net = Net()
    optimizer = sgd(net)
    named = list(net.named_parameters())
    for bad, word in (
        (named[:-1], "lacks"),
        ([("same", p) for _, p in named], "twice"),
        ([p for _, p in named], "tuples"),
    ):
        with Raises(ValueError, word):
            hvd.DistributedOptimizer(optimizer, named_parameters=bad)
    for passes in (0, -1):
        with Raises(ValueError, "backward_passes_per_step"):
            hvd.DistributedOptimizer(optimizer, named, backward_passes_per_step=passes)
    with Raises(NotImplementedError, "Adasum"):
        hvd.DistributedOptimizer(optimizer, named, op=2)


def check_step_after_synchronize_warns_once():
    net = Net()
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(net, hvd.rank(), step).backward()
            optimizer.synchronize()
            optimizer.step()
    assert sum("skip_synchronize" in str(w.message) for w in caught) == 1
    same_nets(train_alone(Net(), sgd), net)


def check_stays_the_user_s_optimizer():
    net = Net()
    plain = adam(net)
    old_scheduler = torch.optim.lr_scheduler.StepLR(plain, 1, gamma=0.5)
    optimizer = hvd.DistributedOptimizer(plain, net.named_parameters())
    assert isinstance(optimizer, torch.optim.Adam)
    assert type(optimizer).__name__ == "Adam"
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    calls = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss_of(net, hvd.rank(), 0).backward()
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.005
    del old_scheduler
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    optimizer.zero_grad()
    loss_of(net, hvd.rank(), 1).backward()
    optimizer.step()
    assert calls == [1, 1]
    assert optimizer.state[net.out.weight]["step"] == 2
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})


def check_other_types_and_layouts():
    torch.manual_seed(3)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 1), torch.nn.Flatten()
    ).to(memory_format=torch.channels_last)
    alone = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 1), torch.nn.Flatten()
    )
    alone.load_state_dict(net.state_dict())
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    reference = sgd(alone)

    def data(rank, step):
        generator = torch.Generator().manual_seed(100 * step + rank)
        x = torch.randn(2, 3, 6, 6, generator=generator)
        return x.to(memory_format=torch.channels_last)

    for step in range(3):
        optimizer.zero_grad()
        net(data(hvd.rank(), step)).square().mean().backward()
        optimizer.step()
        reference.zero_grad()
        for rank in range(hvd.size()):
            (alone(data(rank, step)).square().mean() / hvd.size()).backward()
        reference.step()
    same_nets(alone, net)
    half = Net().bfloat16()
    optimizer = hvd.DistributedOptimizer(sgd(half), half.named_parameters())
    half(torch.full((2, 6), float(hvd.rank()), dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    equal_on_all_ranks(half.out.weight)


def check_sparse_gradients():
    def embedding():
        torch.manual_seed(1)
        return torch.nn.Embedding(10, 3, sparse=True)

    words = [torch.tensor([r, 5, 5]) for r in range(hvd.size())]
    net = embedding()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), sparse_as_dense=True
    )
    net(words[hvd.rank()]).sum().backward()
    optimizer.step()
    alone = embedding()
    reference = torch.optim.SGD(alone.parameters(), lr=0.1)
    for word in words:
        (alone(word).sum() / hvd.size()).backward()
    reference.step()
    same_nets(alone, net)


@needs_peers
def check_optimizers_that_are_gone_send_nothing():
    net = Net()
    for _ in range(2):
        hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    gc.collect()
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    before = hvd.communication_statistics()["tensors"]
    loss_of(net, hvd.rank(), 0).backward()
    optimizer.step()
    sent = hvd.communication_statistics()["tensors"] - before
    assert sent == len(list(net.parameters())), sent
