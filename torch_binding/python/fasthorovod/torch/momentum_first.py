"""The exchange of gradients with Compression.twobit: momentum first, then codes.

Momentum that is made after decoding amplifies what codes are late with, and training suffers. So
once the dense first steps are over, each rank has a momentum of its own and sends that:

    u = momentum * u + gradient + weight_decay * weights

What comes back in .grad is the average of the ranks' u, with which a step without momentum and
weight decay is made. See docs/algorithms.md.
"""

from __future__ import annotations

import weakref

import torch

from .. import _C
from . import mpi_ops
from .compression import Compression, TwobitCompressor
from .gradient_exchange import Exchange
from .handles import operation_name


def puts_momentum_first(compression, op) -> bool:
    """Whether gradients that travel so need a MomentumExchange."""
    return isinstance(compression, TwobitCompressor) and op in (mpi_ops.Average, mpi_ops.Sum)


class MomentumExchange(Exchange):
    """An Exchange for torch.optim.SGD. Its step must use brings_momentum.

    Tensors of `momentum` are replaced and never changed, so a saved state may share them.
    """

    def __init__(self, names, groups, settings) -> None:
        super().__init__(names, groups, settings)
        self.steps = 0  # in which gradients were reduced: the same on all ranks
        self.momentum = {}  # parameter -> u, where it is no longer the optimizer's
        self.next_momentum = {}  # parameter -> u with the gradient that is under way
        self.brings_momentum = False  # whether .grad holds momentum, which finish() put there
        self._optimizer = None

    def serve(self, optimizer) -> None:
        """Takes options and first momenta from this optimizer."""
        self._optimizer = weakref.ref(optimizer)
        # Loading a state makes new groups, so their places are what stays.
        places = enumerate(optimizer.param_groups)
        self._group_of = {p: place for place, group in places for p in group["params"]}

    def is_dense(self) -> bool:
        """Whether this step is one of the first ones, that send gradients as they are."""
        return self.steps < self.settings.compression.warmup

    def compression_of(self, parameter):
        small = parameter.numel() < self.settings.compression.least_elements
        return Compression.none if self.is_dense() or small else self.settings.compression

    @torch.no_grad()
    def outgoing(self, parameter):
        gradient = super().outgoing(parameter)
        if not self.is_dense():
            self.next_momentum[parameter] = self._add_momentum(parameter, gradient)
            gradient.copy_(self.next_momentum[parameter])
        return gradient

    def _add_momentum(self, parameter, gradient) -> torch.Tensor:
        """The next u, with the operations of torch.optim.SGD."""
        if parameter not in self.momentum:
            self.momentum[parameter] = self._take_momentum(parameter)
        group = self._optimizer().param_groups[self._group_of[parameter]]
        decay = group["weight_decay"] * self._share()
        if decay != 0:
            gradient = gradient.add(parameter, alpha=decay)
        return self.momentum[parameter].mul(group["momentum"]).add_(gradient)

    def _take_momentum(self, parameter) -> torch.Tensor:
        """The optimizer's, which is the same on all ranks, so that it is also their average."""
        buffer = self._optimizer().state.pop(parameter, {}).get("momentum_buffer")
        if buffer is None:
            return torch.zeros_like(parameter)
        return buffer if self._share() == 1.0 else buffer * self._share()

    def _share(self) -> float:
        """This rank's part of what the ranks have in common and the reduction puts together."""
        return 1.0 / self.settings.process_set.size() if self.settings.op == mpi_ops.Sum else 1.0

    def settle(self) -> None:
        """Makes the momenta of the step those that count, unless a loss scaler will skip it.

        All ranks have the same results, so all of them decide alike.
        """
        self.brings_momentum = not self.is_dense()
        self.steps += 1
        if all(torch.isfinite(parameter.grad).all() for parameter in self.next_momentum):
            self.momentum.update(self.next_momentum)

    def forget(self) -> None:
        super().forget()
        self.next_momentum = {}

    def save(self) -> dict:
        """What this rank needs, beside the optimizer's state, to go on to the bit.

        AssertionError while gradients are being reduced.
        """
        if self.in_flight:
            raise AssertionError(
                "state_dict() after backward() but before step() or synchronize() would miss the "
                "momentum and residuals of that step"
            )
        residuals = {name: self._residual(parameter) for parameter, name in self.names.items()}
        return {
            "steps": self.steps,
            "momentum": {self.names[p]: momentum for p, momentum in self.momentum.items()},
            "residual": {name: kept for name, kept in residuals.items() if kept.numel() > 0},
        }

    def require_fit(self, saved) -> None:
        """ValueError when a saved state is none, or is of other parameters."""
        if not isinstance(saved, dict) or not {"steps", "momentum", "residual"} <= saved.keys():
            raise ValueError("load_state_dict: this is not the state of Compression.twobit")
        shapes = {name: tuple(parameter.shape) for parameter, name in self.names.items()}
        for name, momentum in saved["momentum"].items():
            if shapes.get(name) != tuple(momentum.shape):
                raise ValueError(
                    f"load_state_dict: the state has the momentum of a parameter {name} of shape "
                    f"{tuple(momentum.shape)}; here are {shapes}"
                )

    def load(self, saved: dict) -> None:
        """Goes on from what save() gave; require_fit() has passed."""
        self.start_over()
        momentum = {
            parameter: saved["momentum"][name].to(parameter.device, parameter.dtype)
            for parameter, name in self.names.items()
            if name in saved["momentum"]
        }
        if not self.has_peers():  # then nothing is sent, and torch's SGD does it all
            for parameter, buffer in momentum.items():
                self._optimizer().state[parameter]["momentum_buffer"] = buffer.clone()
            return
        self.momentum = momentum
        self.steps = saved["steps"]
        for parameter, name in self.names.items():
            if name in saved["residual"]:
                self._put_residual(parameter, saved["residual"][name])

    def start_over(self) -> None:
        """Begins with dense steps again, with nothing kept."""
        self.forget()
        self.steps = 0
        self.momentum = {}
        self.brings_momentum = False
        for parameter in self.names:
            if self._residual(parameter).numel() > 0:
                self._put_residual(parameter, torch.zeros(0))

    def _residual(self, parameter) -> torch.Tensor:
        """What the codec keeps of it; nothing without peers, or when the engine is gone."""
        number = self.settings.process_set.process_set_id
        if not _C.is_initialized() or number is None or not self.has_peers():
            return torch.zeros(0)
        return _C.residual(operation_name("allreduce", self.name_of(parameter)), number)

    def _put_residual(self, parameter, residual) -> None:
        number = self.settings.process_set.process_set_id
        _C.set_residual(operation_name("allreduce", self.name_of(parameter)), residual, number)
