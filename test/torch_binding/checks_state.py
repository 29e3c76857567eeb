"""Objects, parameters and optimizer state from one rank to the others."""

import copy

import fasthorovod.torch as hvd
import torch
from checks_common import Raises, equal_on_all_ranks, needs_peers


class Unpicklable:
    def __reduce__(self):
        raise TypeError("not this one")


def check_broadcast_object():
    for root in range(hvd.size()):
        for obj in (None, {"a": [1, 2.5], "root": root}, "x" * 3_000_000, torch.arange(5)):
            got = hvd.broadcast_object(obj if hvd.rank() == root else "nothing", root_rank=root)
            assert type(got) is type(obj)
            assert torch.equal(got, obj) if isinstance(obj, torch.Tensor) else got == obj
    named = hvd.broadcast_object(hvd.rank(), 0, name="mine", process_set=hvd.global_process_set)
    assert named == 0


def check_broadcast_of_an_object_that_cannot_be_pickled():
    kind = TypeError if hvd.rank() == 0 else ValueError
    with Raises(kind):
        hvd.broadcast_object(Unpicklable())
    assert hvd.broadcast_object("fine") == "fine"


def check_allgather_object():
    objects = hvd.allgather_object({"rank": hvd.rank(), "data": "y" * (1000 * hvd.rank())})
    assert [o["rank"] for o in objects] == list(range(hvd.size()))
    assert [len(o["data"]) for o in objects] == [1000 * r for r in range(hvd.size())]
    assert hvd.allgather_object(None) == [None] * hvd.size()


def model_of_rank():
    torch.manual_seed(hvd.rank())
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 2),
    )


def model_of_root(root):
    torch.manual_seed(root)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 2),
    )


def check_broadcast_parameters_in_every_form():
    root = hvd.size() - 1
    wanted = model_of_root(root).state_dict()
    forms = {
        "dict": lambda m: m.state_dict(),
        "list of pairs": lambda m: list(m.state_dict().items()),
        "list of tensors": lambda m: list(m.state_dict().values()),
    }
    for form in forms.values():
        model = model_of_rank().to(memory_format=torch.channels_last)
        hvd.broadcast_parameters(form(model), root)
        assert all(torch.equal(model.state_dict()[k], v) for k, v in wanted.items())
        assert model[0].weight.requires_grad
        assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
    model = model_of_rank()
    for refused in (model.named_parameters(), model.parameters(), {"a": 3}, [("a", None)], None):
        with Raises(ValueError, "broadcast_parameters"):
            hvd.broadcast_parameters(refused, 0)


def optimizers():
    """(name, how to make it) for those of torch that take dense float parameters of any shape."""
    return {
        "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
        "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
        "tensor lr": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01), foreach=False),
        "AdamW": lambda p: torch.optim.AdamW(p, betas=(0.8, 0.9)),
        "RAdam": torch.optim.RAdam,
        "NAdam": torch.optim.NAdam,
        "Adamax": torch.optim.Adamax,
        "RMSprop": lambda p: torch.optim.RMSprop(p, momentum=0.5, centered=True),
        "Adagrad": torch.optim.Adagrad,
        "Adadelta": torch.optim.Adadelta,
        "ASGD": torch.optim.ASGD,
        "Rprop": torch.optim.Rprop,
        "Adafactor": torch.optim.Adafactor,
        "LBFGS": torch.optim.LBFGS,
    }


def make_steps(model, optimizer, count):
    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3, 4, 4)).square().sum()
        loss.backward()
        return loss

    for _ in range(count):
        optimizer.step(closure)


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for key in sorted(value, key=str) for t in tensors_in(value[key])]
    if isinstance(value, (list, tuple)):
        return [t for entry in value for t in tensors_in(entry)]
    return []


def plain(value):
    """The state without tensors, to compare with ==."""
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), str(value.dtype))
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(entry) for entry in value)
    return value


def equal_state_on_all_ranks(optimizer):
    state = optimizer.state_dict()
    everywhere = hvd.allgather_object(plain(state))
    assert all(one == everywhere[0] for one in everywhere), everywhere
    for tensor in tensors_in(state):
        equal_on_all_ranks(tensor)


def check_optimizer_state_after_steps_on_the_root_only():
    for name, make in optimizers().items():
        model = model_of_rank()
        optimizer = make(model.parameters())
        if hvd.rank() == 0:
            make_steps(model, optimizer, 3)
        before = copy.deepcopy(optimizer.state_dict())
        weights = copy.deepcopy(model.state_dict())
        hvd.broadcast_optimizer_state(optimizer, 0)
        equal_state_on_all_ranks(optimizer)
        assert all(torch.equal(weights[k], v) for k, v in model.state_dict().items()), name
        if hvd.rank() == 0:
            assert plain(before) == plain(optimizer.state_dict()), name
            for a, b in zip(tensors_in(before), tensors_in(optimizer.state_dict())):
                assert torch.equal(a, b), name
        make_steps(model, optimizer, 1)


def check_optimizer_state_that_only_others_have_is_dropped():
    for make in optimizers().values():
        model = model_of_rank()
        optimizer = make(model.parameters())
        if hvd.rank() != 0:
            make_steps(model, optimizer, 2)
        hvd.broadcast_optimizer_state(optimizer, 0)
        equal_state_on_all_ranks(optimizer)


def check_options_are_restored():
    model = model_of_rank()
    layers = [{"params": model[0].parameters()}, {"params": model[3].parameters(), "lr": 0.5}]
    optimizer = torch.optim.SGD(layers, lr=0.1, momentum=0.9)
    if hvd.rank() == 0:
        optimizer.param_groups[0]["lr"] = 0.025
        optimizer.param_groups[1]["momentum"] = 0.25
        optimizer.param_groups[1]["weight_decay"] = 1e-4
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.025
    assert optimizer.param_groups[1]["momentum"] == 0.25
    assert optimizer.param_groups[1]["weight_decay"] == 1e-4
    assert optimizer.param_groups[1]["lr"] == 0.5
    assert optimizer.param_groups[1]["foreach"] is None
    assert isinstance(optimizer.param_groups[1]["nesterov"], bool)


def check_wrapped_and_frozen():
    model = model_of_rank()
    model[0].requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adam(model.parameters()), model.named_parameters()
    )
    make_steps(model, optimizer, 2)
    hvd.broadcast_optimizer_state(optimizer, 0)
    equal_state_on_all_ranks(optimizer)


@needs_peers
def check_different_parameters_are_refused_on_all_ranks():
    model = torch.nn.Linear(3 + hvd.rank(), 2)
    optimizer = torch.optim.Adam(model.parameters())
    with Raises(ValueError, "differ"):
        hvd.broadcast_optimizer_state(optimizer, 0)
