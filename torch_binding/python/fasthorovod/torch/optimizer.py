"""An optimizer that steps with gradients reduced over all ranks.

Each parameter gets a hook that runs when its gradient is complete. It sends the gradient off while
the backward pass goes on with the layers below; synchronize(), which step() calls, sends what did
not come up, waits, and leaves the reduced gradients in the parameters.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import torch

from ..common.process_sets import global_process_set, registered
from . import mpi_ops
from .compression import Compression
from .functions import broadcast_object
from .gradient_exchange import Exchange, Settings
from .momentum_first import MomentumExchange, puts_momentum_first
from .parameter_names import assign_groups, name_parameters
from .sgd_support import require_sgd

_TWOBIT = "twobit"  # under which state_dict() has what Compression.twobit needs


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


class MomentumFirst(_DistributedOptimizer):
    """The same before torch.optim.SGD, with Compression.twobit; see MomentumExchange."""

    def _start(self, exchange) -> None:
        exchange.serve(self)
        super()._start(exchange)

    def step(self, closure=None):
        """As without compression. What .grad brings may be momentum: then SGD adds none.

        With a closure, the gradients are reduced after it ran.
        """
        loss = None
        if closure is not None:
            # Here, since it computes gradients, which need the options that are set to 0 below.
            with torch.enable_grad():
                loss = closure()
        if self._should_synchronize:
            self._synchronize_once()
        self._synchronized = False
        with self._options_for_step():
            super(_DistributedOptimizer, self).step()
        return loss

    step.hooked = True

    @contextmanager
    def _options_for_step(self):
        options = [(g, g["momentum"], g["weight_decay"]) for g in self.param_groups]
        try:
            if self._exchange.brings_momentum:
                for group in self.param_groups:
                    group.update(momentum=0.0, weight_decay=0.0)
            yield
        finally:
            for group, momentum, decay in options:
                group.update(momentum=momentum, weight_decay=decay)

    def state_dict(self) -> dict:
        """torch's, and under "twobit" the steps made, and this rank's momenta and residuals by
        parameter name. AssertionError while gradients are being reduced.
        """
        return {**super().state_dict(), _TWOBIT: self._exchange.save()}

    def load_state_dict(self, state_dict) -> None:
        """Goes on from a state; from one without "twobit" with dense steps again, and says so.

        ValueError when it is of other parameters; then nothing is changed.
        """
        saved = state_dict.get(_TWOBIT)
        if saved is not None:
            self._exchange.require_fit(saved)
        super().load_state_dict({k: v for k, v in state_dict.items() if k != _TWOBIT})
        if saved is not None:
            self._exchange.load(saved)
            return
        self._exchange.start_over()
        warnings.warn(
            "load_state_dict: the state was saved without Compression.twobit, so the next "
            f"{self._exchange.settings.compression.warmup} steps send gradients as they are",
            stacklevel=2,
        )

    def broadcast_own_state(self, root_rank, process_set) -> None:
        """Gives all ranks what the root has beside torch's state."""
        on_root = mpi_ops.rank() == root_rank
        saved = self._exchange.save() if on_root else None
        saved = broadcast_object(saved, root_rank, "optimizer_state.twobit", process_set)
        if not on_root:
            self._exchange.load(saved)

    def add_param_group(self, param_group) -> None:
        """Always NotImplementedError: the parameters are those of the start."""
        raise NotImplementedError(
            "an optimizer with Compression.twobit takes no further parameters; make a new one"
        )


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
    compression: how gradients are made smaller for the way; see Compression. With twobit the
        optimizer must be torch.optim.SGD without dampening, nesterov or maximize, and .grad has the
        average of the ranks' momenta once the dense first steps are over.
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

    Raises ValueError for bad arguments, NotImplementedError for an optimizer that twobit does not
    go with, AssertionError in backward() after more passes than said.
    """
    registered(process_set)
    _require_passes(backward_passes_per_step)
    op = mpi_ops.choose_reduction(None, op)
    if num_groups:
        warnings.warn("num_groups= is deprecated; use groups=", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    names = name_parameters(optimizer, named_parameters)
    prescale, postscale = _choose_scales(op, gradient_predivide_factor)
    settings = Settings(
        backward_passes_per_step,
        compression,
        op,
        prescale,
        postscale,
        sparse_as_dense,
        process_set,
    )
    front, exchanging = _DistributedOptimizer, Exchange
    if puts_momentum_first(compression, op):
        require_sgd("DistributedOptimizer with Compression.twobit", optimizer)
        front, exchanging = MomentumFirst, MomentumExchange
    exchange = exchanging(names, assign_groups(list(names), groups), settings)
    own = type(optimizer)
    wrapped = type(own.__name__, (front, own), {"__module__": own.__module__})
    result = wrapped.__new__(wrapped)
    # Options and state are shared with the optimizer given, so its constructor need not be called.
    # A scheduler made before may have put a bound step() of the old object there: not that.
    result.__dict__.update({k: v for k, v in optimizer.__dict__.items() if k != "step"})
    result._start(exchange)
    return result
