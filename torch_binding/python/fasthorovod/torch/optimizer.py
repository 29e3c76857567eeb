"""An optimizer that steps with gradients reduced over all ranks.

Each parameter gets a hook that runs when its gradient is complete. It sends the gradient off while
the backward pass goes on with the layers below; synchronize(), which step() calls, sends what did
not come up, waits, and leaves the reduced gradients in the parameters.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from ..common.process_sets import ProcessSet, global_process_set, registered
from . import mpi_ops
from .compression import Compression
from .parameter_names import assign_groups, name_parameters

# Two optimizers of one process set never share a name; its ranks make theirs in the same order.
_ordinals = defaultdict(itertools.count)


@dataclass
class _Settings:
    """How gradients travel."""

    passes: int  # backward passes before a gradient is sent
    compression: type
    op: int
    prescale: float
    postscale: float
    sparse_as_dense: bool
    process_set: ProcessSet


class _Exchange:
    """Sends the gradients of one optimizer, puts reduced ones back. Thread: one at a time."""

    def __init__(self, names, groups, settings) -> None:
        self.names = names  # parameter -> name
        self.groups = groups  # parameter -> tuple of the parameters that travel with it
        self.settings = settings
        self.prefix = f"optimizer.{next(_ordinals[settings.process_set.process_set_id])}"
        self.seen = dict.fromkeys(names, 0)  # backward passes since the last synchronize
        self.ready = set()  # members of a group that still wait for the others
        self.in_flight = {}  # handle -> [(parameter, context of compression)]
        self.sent = set()
        self.hooked = set()

    def has_peers(self) -> bool:
        """Whether this rank reduces gradients with others; else it uses its own as they are."""
        process_set = self.settings.process_set
        return process_set.included() is not False and process_set.size() != 1

    def hook_parameters(self) -> None:
        """Hooks those that need a gradient by now."""
        # The hook must not keep the exchange alive: the parameters often outlive the optimizer.
        this = weakref.ref(self)

        def gradient_is_complete(parameter) -> None:
            exchange = this()
            if exchange is not None:
                exchange.count_pass(parameter)

        for parameter in self.names:
            if parameter.requires_grad and parameter not in self.hooked:
                self.hooked.add(parameter)
                parameter.register_post_accumulate_grad_hook(gradient_is_complete)

    def count_pass(self, parameter) -> None:
        if parameter in self.sent or self.seen[parameter] >= self.settings.passes:
            raise AssertionError(
                f"the gradient of {self.names[parameter]} was computed more than "
                f"backward_passes_per_step={self.settings.passes} times before step() or "
                "synchronize(); raise backward_passes_per_step to accumulate gradients"
            )
        self.seen[parameter] += 1
        if self.seen[parameter] == self.settings.passes:
            self.gradient_is_ready(parameter)

    def gradient_is_ready(self, parameter) -> None:
        group = self.groups.get(parameter)
        if group is None:
            self.send([parameter], self.names[parameter])
            return
        self.ready.add(parameter)
        if all(member in self.ready for member in group if member.requires_grad):
            self.send_group(group)

    def send_group(self, group) -> None:
        members = [member for member in group if member.requires_grad]
        self.ready.difference_update(members)
        self.send(members, f"group.{self.names[group[0]]}")

    def send(self, parameters, name) -> None:
        """Starts the all-reduce of gradients; missing ones count as zero."""
        compression = self.settings.compression
        pairs = [compression.compress(self.gradient(p)) for p in parameters]
        tensors = [pair[0] for pair in pairs]
        codecs = [mpi_ops.choose_codec(compression, t, self.settings.op, name) for t in tensors]
        options = {
            "name": f"{self.prefix}.{name}",
            "op": self.settings.op,
            "prescale_factor": self.settings.prescale,
            "postscale_factor": self.settings.postscale,
            "process_set": self.settings.process_set,
        }
        if len(tensors) == 1:
            handle = mpi_ops.allreduce_async_(tensors[0], codec=codecs[0], **options)
        else:
            handle = mpi_ops.grouped_allreduce_async_(tensors, codecs=codecs, **options)
        self.in_flight[handle] = list(zip(parameters, (pair[1] for pair in pairs)))
        self.sent.update(parameters)

    def gradient(self, parameter) -> torch.Tensor:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        elif parameter.grad.is_sparse:
            if not self.settings.sparse_as_dense:
                raise NotImplementedError(
                    f"the gradient of {self.names[parameter]} is sparse, which this version of "
                    "FastHorovod does not reduce; pass sparse_as_dense=True"
                )
            parameter.grad = parameter.grad.to_dense()
        return parameter.grad.detach()

    def finish(self) -> None:
        """Sends what did not come up, waits for all and puts the results back."""
        for parameter in self.names:
            if parameter.requires_grad and parameter not in self.sent:
                group = self.groups.get(parameter)
                if group is None:
                    self.send([parameter], self.names[parameter])
                else:
                    self.send_group(group)
        try:
            for handle, parameters in self.in_flight.items():
                self.put_back(mpi_ops.synchronize(handle), parameters)
        finally:
            self.forget()
        self.hook_parameters()

    def put_back(self, outputs, parameters) -> None:
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        for output, (parameter, context) in zip(outputs, parameters):
            reduced = self.settings.compression.decompress(output, context)
            if parameter.grad is None:
                parameter.grad = reduced
            elif reduced.data_ptr() != parameter.grad.data_ptr():
                with torch.no_grad():
                    parameter.grad.copy_(reduced)

    def forget(self) -> None:
        """Starts over, as before the first backward pass."""
        self.seen = dict.fromkeys(self.names, 0)
        self.ready.clear()
        self.in_flight = {}
        self.sent.clear()


class _DistributedOptimizer:
    """What DistributedOptimizer() puts before the class of the optimizer that it wraps."""

    def _start(self, exchange) -> None:
        self._exchange = exchange
        self._should_synchronize = True
        self._synchronized = False
        self._warned = False
        if exchange.has_peers():
            exchange.hook_parameters()

    def synchronize(self) -> None:
        """Waits until all gradients are reduced; after it .grad holds what step() will use.

        Call it before clipping or unscaling gradients, and then step() within skip_synchronize().
        Gradients that did not come up on this rank count as zero; with fewer backward passes than
        backward_passes_per_step, what was accumulated so far is reduced.
        Raises HorovodInternalError when the exchange failed.
        """
        if self._exchange.has_peers():
            self._exchange.finish()
        else:
            self._exchange.forget()
        self._synchronized = True

    @contextmanager
    def skip_synchronize(self):
        """Within it step() uses the gradients as they are: synchronize() was called by hand."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure=None):
        """Reduces the gradients, then makes the step of the wrapped optimizer.

        With a closure, the gradients are reduced each time after it ran.
        """
        if closure is not None and self._should_synchronize:
            closure = self._reducing(closure)
        elif self._should_synchronize:
            self._synchronize_once()
        self._synchronized = False
        return super().step(closure) if closure is not None else super().step()

    # torch adds its profiling and step hooks to the wrapped class; twice would run them twice.
    step.hooked = True

    def _synchronize_once(self) -> None:
        if not self._synchronized or self._exchange.in_flight:
            self.synchronize()
        elif not self._warned:
            self._warned = True
            warnings.warn(
                "optimizer.step() after optimizer.synchronize(): the gradients are reduced "
                "already and are not reduced again; use 'with optimizer.skip_synchronize(): "
                "optimizer.step()'",
                stacklevel=3,
            )

    def _reducing(self, closure):
        def reduced_closure():
            with torch.enable_grad():
                loss = closure()
            self.synchronize()
            return loss

        return reduced_closure

    def zero_grad(self, *args, **kwargs):
        """As the wrapped optimizer's. AssertionError while gradients are being reduced."""
        if self._exchange.in_flight:
            raise AssertionError(
                "zero_grad() after backward() but before step() or synchronize() would destroy "
                "gradients that are being reduced"
            )
        return super().zero_grad(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        """As the wrapped optimizer's; gradients in flight are forgotten."""
        self._exchange.forget()
        self._synchronized = False
        return super().load_state_dict(*args, **kwargs)

    def set_backward_passes_per_step(self, passes) -> None:
        """Changes how many backward passes make a step; not in the middle of a step."""
        _require_passes(passes)
        self._exchange.settings.passes = passes


def _require_passes(passes) -> None:
    if passes <= 0:
        raise ValueError(f"backward_passes_per_step must be at least 1, not {passes}")


def _choose_scales(op, gradient_predivide_factor) -> tuple:
    if gradient_predivide_factor == 1.0:
        return 1.0, 1.0
    if op != mpi_ops.Average:
        raise ValueError("gradient_predivide_factor goes with op=Average only")
    return 1.0 / gradient_predivide_factor, gradient_predivide_factor


def DistributedOptimizer(  # noqa: N802 - Horovod's name
    optimizer,
    named_parameters=None,
    compression=Compression.none,
    backward_passes_per_step=1,
    op=mpi_ops.Average,
    gradient_predivide_factor=1.0,
    num_groups=0,
    groups=None,
    sparse_as_dense=False,
    process_set=global_process_set,
):
    """The optimizer, with gradients reduced over all ranks before each step.

    The result is an instance of a class derived from the optimizer's own, with the same options and
    the same state; use it instead of the one given. All ranks must wrap the same parameters, and
    their optimizers in the same order.

    named_parameters: (name, parameter) pairs, usually model.named_parameters(); they must cover the
        optimizer's parameters, with unique names. Without them names come from positions.
    compression: how gradients are made smaller for the way; see Compression.
    backward_passes_per_step: after how many backward passes a gradient is sent. The gradients of
        the passes are summed, as torch does.
    op: Average or Sum (or Min, Max, Product).
    gradient_predivide_factor: with Average, divides gradients by this before the sum, and by the
        rest after it.
    groups: a number of groups of parameters, or lists of parameters; those of a group travel
        together. num_groups is the older way to say the number.
    process_set: the ranks among which gradients are reduced; a rank that is not in it steps with
        its own gradients.
    sparse_as_dense: makes sparse gradients dense; without it they are a NotImplementedError.

    A parameter that is not used on some ranks counts as zero there. One that is used nowhere ends
    with a gradient of zeros, to which weight decay and momentum still apply. Parameters that do not
    need a gradient are left alone, if that is so on all ranks.

    Raises ValueError for bad arguments, AssertionError in backward() after more passes than said.
    """
    registered(process_set)
    _require_passes(backward_passes_per_step)
    op = mpi_ops.choose_reduction(None, op)
    if num_groups:
        warnings.warn("num_groups= is deprecated; use groups=", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    names = name_parameters(optimizer, named_parameters)
    prescale, postscale = _choose_scales(op, gradient_predivide_factor)
    settings = _Settings(
        backward_passes_per_step,
        compression,
        op,
        prescale,
        postscale,
        sparse_as_dense,
        process_set,
    )
    exchange = _Exchange(names, assign_groups(list(names), groups), settings)
    own = type(optimizer)
    wrapped = type(own.__name__, (_DistributedOptimizer, own), {"__module__": own.__module__})
    result = wrapped.__new__(wrapped)
    # Options and state are shared with the optimizer given, so its constructor need not be called.
    # A scheduler made before may have put a bound step() of the old object there: not that.
    result.__dict__.update({k: v for k, v in optimizer.__dict__.items() if k != "step"})
    result._start(exchange)
    return result
