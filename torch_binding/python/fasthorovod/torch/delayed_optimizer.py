"""An optimizer whose exchange of gradients runs while the next step is computed.

The model has local weights, made from the global weights and this rank's own gradient. The global
weights and their velocity lie in flat tensors beside it; the engine's worker updates them when the
average of the gradients of all ranks is there. See ops/compensation/od_sgd.h for the order of
things, docs/algorithms.md for the formulas.
"""

from __future__ import annotations

import zlib
from contextlib import contextmanager, suppress

import torch

from .. import _C
from ..common.exceptions import HorovodInternalError
from ..common.process_sets import global_process_set, usable
from . import delayed_state
from .agreement import require_same
from .flat_memory import FlatMemory, copy_all
from .functions import broadcast_object
from .lifecycle import rank
from .ordinals import next_ordinal
from .parameter_names import name_parameters
from .rules import ODSGD
from .sgd_support import require_sgd


def _plain_step(optimizer) -> None:
    """The step of torch.optim.SGD without the hooks that torch puts round it."""
    step = torch.optim.SGD.step
    if getattr(step, "hooked", False):
        step = step.__wrapped__
    step(optimizer)


class Delayed:
    """What DelayedOptimizer() puts before torch.optim.SGD. Thread: one at a time."""

    def _start(self, names: dict, rule: ODSGD, process_set) -> None:
        trained = {p: name for p, name in names.items() if p.requires_grad}
        self._names = names
        self._rule = rule
        self._process_set = process_set
        self._flat = FlatMemory(trained)
        self._name = f"delayed.{next_ordinal('delayed', process_set)}"
        self._exchange = _C.DelayedSgd(
            name=self._name,
            weights=self._flat.weights,
            velocity=self._flat.velocity,
            gradient=self._flat.gradient,
            process_set=process_set.process_set_id,
            warm_up=rule.warmup,
        )
        self._agreed = False  # that all ranks go on from the same state

    def step(self, closure=None):
        """Makes a step with this rank's gradients.

        First waits until the exchange of the last step is done. During the warm-up it then averages
        the gradients of all ranks, leaves them in .grad and makes the step of torch.optim.SGD.
        Later it makes the local step, starts the exchange and returns while that runs. .grad may
        be changed at once.

        The options of the parameter groups count as they are now; ranks whose options or numbers
        of steps differ all get an error, and no update is made. The first step, and the first after
        load_state_dict(), compares the state of the ranks: ValueError on all of them when it
        differs.

        Raises HorovodInternalError when the exchange of the last step failed, or the ranks had made
        different steps, and from then on.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            self.synchronize()
            self._require_agreement()
            if self._exchange.next_is_delayed():
                self._make_delayed_step()
            else:
                self._make_synchronous_step()
        return loss

    step = torch.optim.Optimizer.profile_hook_step(step)
    step.hooked = True

    def _make_synchronous_step(self) -> None:
        self._flat.take_gradients()
        self._exchange.start(list(self._settings()))
        self._exchange.finish()
        self._flat.give_gradients()
        _plain_step(self)

    def _make_delayed_step(self) -> None:
        self._flat.take_gradients()
        if self._exchange.awaits_take_over:
            self._take_over()
        self._exchange.start(list(self._settings()))
        torch.autograd.graph.increment_version(self._flat.parameters)

    def _take_over(self) -> None:
        copy_all(self._flat.weight_views, self._flat.parameters)
        for parameter, velocity in zip(self._flat.parameters, self._flat.velocity_views):
            buffer = self.state[parameter].get("momentum_buffer")
            if buffer is None:
                velocity.zero_()
            else:
                velocity.copy_(buffer)
            self.state[parameter]["momentum_buffer"] = velocity
        self._exchange.take_over()

    def _settings(self):
        """(name, parameter, its rates) of each trained parameter, in the order of the memory."""
        trained = dict(zip(self._flat.parameters, self._flat.names))
        for group in self.param_groups:
            rate = float(group["lr"])
            local_rate = rate if self._rule.local_rate is None else self._rule.local_rate
            rates = (local_rate, rate, float(group["momentum"]), float(group["weight_decay"]))
            for parameter in group["params"]:
                if parameter in trained:
                    yield trained[parameter], parameter, rates

    def synchronize(self) -> None:
        """Waits until the exchange of the last step, if any, is done and the global weights have
        its update.

        Raises HorovodInternalError when an exchange failed, now or before.
        """
        self._exchange.finish()

    @contextmanager
    def global_weights(self):
        """Within it the model has the global weights, the same on all ranks; see synchronize().

        For validation and for saving the model. No step is made within; afterwards the model has
        its local weights again. In the warm-up the model has the global weights anyway.
        """
        self.synchronize()
        self._exchange.show()
        local = None
        try:
            if self._exchange.taken_over:
                local = [parameter.detach().clone() for parameter in self._flat.parameters]
                copy_all(self._flat.parameters, self._flat.weight_views)
            yield
        finally:
            if local is not None:
                copy_all(self._flat.parameters, local)
            self._exchange.hide()

    def state_dict(self) -> dict:
        """The state by parameter name, after the exchange of the last step; a copy.

        It holds the global weights and their velocity, not the local weights, which are in the
        model. To go on later as if nothing had been, to the bit, save and load the model's state
        too, outside of global_weights(), on each rank for itself.
        """
        self.synchronize()
        return delayed_state.save(self, self._exchange, self._flat)

    def load_state_dict(self, state_dict: dict) -> None:
        """Goes on from a state that state_dict() gave, also after a failed exchange.

        ValueError when it is of other parameters or another rule; then nothing is changed. All
        ranks have to load: the next step compares what they have.
        """
        with suppress(HorovodInternalError):  # what it is about is replaced
            self.synchronize()
        delayed_state.load(state_dict, self, self._exchange, self._flat)
        self._agreed = False

    def broadcast_state(self, root_rank: int, process_set) -> None:
        """Does the work of broadcast_optimizer_state()."""
        on_root = rank() == root_rank
        state = self.state_dict() if on_root else None
        state = broadcast_object(state, root_rank, "optimizer_state", process_set)
        if not on_root:
            self.load_state_dict(state)
        self._agreed = False

    def add_param_group(self, param_group) -> None:
        """Always NotImplementedError: the parameters are those of the start."""
        raise NotImplementedError("DelayedOptimizer takes no further parameters; make a new one")

    def _require_agreement(self) -> None:
        if self._agreed:
            return
        if self._exchange.taken_over:
            values = [self._flat.weights, self._flat.velocity]
        else:
            values = self._flat.parameters
        description = {
            "steps made": f"{self._exchange.steps}",
            "the weights": f"checksum {_checksum(values):08x}",
        }
        what = "DelayedOptimizer.step (hvd.broadcast_parameters gives all ranks equal weights)"
        require_same(what, description, f"{self._name}.state", self._process_set)
        self._agreed = True


def _checksum(tensors) -> int:
    checksum = 0
    for tensor in tensors:
        checksum = zlib.crc32(tensor.detach().reshape(-1).view(torch.uint8).numpy(), checksum)
    return checksum


def _options(group: dict) -> str:
    keys = ("lr", "momentum", "weight_decay")
    return ", ".join(f"{key}={float(group[key]):g}" for key in keys if key in group)


def _describe(optimizer, names: dict, rule, refusal) -> dict:
    """What has to be the same on all ranks, in words."""
    description = {
        "whether it can be made": "no objection" if refusal is None else str(refusal),
        "the rule": repr(rule),
        "the number of parameters": str(len(names)),
    }
    for i, group in enumerate(optimizer.param_groups):
        description[f"parameter group {i}"] = _options(group)
    for i, (parameter, name) in enumerate(names.items()):
        frozen = "" if parameter.requires_grad else ", without gradient"
        description[f"parameter {i}"] = f"'{name}' of shape {tuple(parameter.shape)}{frozen}"
    return description


def _require_support(optimizer, names: dict, rule) -> None:
    if not isinstance(rule, ODSGD):
        raise ValueError(f"rule must be hvd.rules.ODSGD(...), not {rule!r}")
    require_sgd("DelayedOptimizer", optimizer)
    for parameter, name in names.items():
        if parameter.requires_grad:
            _C.check_delayed(name, parameter)


def DelayedOptimizer(  # noqa: N802 - beside DistributedOptimizer
    optimizer, named_parameters=None, *, rule, process_set=global_process_set
):
    """The optimizer, with the exchange of a step's gradients running during the next step.

    The result is an instance of a class derived from torch.optim.SGD, with the options of the
    optimizer given; use it instead of that. It adds synchronize() and global_weights(), and
    state_dict() is by parameter name. All ranks must wrap the same parameters with equal values,
    and their optimizers in the same order, and make the same number of steps. Blocks until all
    ranks have called it.

    optimizer: torch.optim.SGD, with momentum and weight decay as you like; not dampening, nesterov,
        maximize or differentiable. Parameters that need a gradient now are trained: contiguous
        float32 tensors on the CPU.
    named_parameters: (name, parameter) pairs, usually model.named_parameters(); they must cover the
        optimizer's parameters, with unique names. Without them names come from positions.
    rule: hvd.rules.ODSGD(...).
    process_set: the ranks among which gradients are averaged; this rank is one of them.

    A parameter without a gradient counts as zero, and weight decay and momentum still apply.

    Raises ValueError for bad arguments, NotImplementedError for what is not supported; and the same
    ValueError on all ranks, which says who has what, when the ranks differ in the rule, the options
    or the names and shapes of the parameters.
    """
    usable(process_set)
    names = name_parameters(optimizer, named_parameters)
    refusal = None
    try:
        _require_support(optimizer, names, rule)
    except (ValueError, NotImplementedError) as error:
        refusal = error  # once the others know
    description = _describe(optimizer, names, rule, refusal)
    require_same("DelayedOptimizer", description, "delayed", process_set)
    if refusal is not None:
        raise refusal
    wrapped = type("SGD", (Delayed, torch.optim.SGD), {"__module__": torch.optim.SGD.__module__})
    result = wrapped.__new__(wrapped)
    # Options and state are shared with the optimizer given, so its constructor need not be called.
    # A scheduler made before may have put a bound step() of the old object there: not that.
    result.__dict__.update({k: v for k, v in optimizer.__dict__.items() if k != "step"})
    result._start(names, rule, process_set)
    return result
