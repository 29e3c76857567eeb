"""The global weights, their velocity and the gradient of all parameters, one after the other."""

from __future__ import annotations

import torch

from .. import _C


class FlatMemory:
    """Three flat float32 tensors, and a view of each by parameter.

    The gradient has a few elements more, for the engine. Ranks with the same parameters in the same
    order have the same layout. Thread: one at a time.
    """

    def __init__(self, names: dict) -> None:
        """Takes parameter -> name. The parameters are contiguous float32 tensors on the CPU."""
        self.parameters = list(names)
        self.names = list(names.values())
        total = sum(parameter.numel() for parameter in names)
        self.weights, self.velocity = torch.zeros(total), torch.zeros(total)
        self.gradient = torch.zeros(total + _C.DelayedSgd.mark_elements)
        self.weight_views = self._views(self.weights)
        self.velocity_views = self._views(self.velocity)
        self.gradient_views = self._views(self.gradient[:total])

    def _views(self, flat: torch.Tensor) -> list:
        parts = flat.split([parameter.numel() for parameter in self.parameters])
        return [part.view_as(p) for part, p in zip(parts, self.parameters)]

    def take_gradients(self) -> None:
        """Copies this rank's gradients in; missing ones count as zero."""
        for name, parameter in zip(self.names, self.parameters):
            if parameter.grad is not None and parameter.grad.layout != torch.strided:
                raise NotImplementedError(
                    f"the gradient of {name} is sparse, which DelayedOptimizer does not support yet"
                )
        views, gradients = [], []
        for view, parameter in zip(self.gradient_views, self.parameters):
            if parameter.grad is None:
                view.zero_()
            else:
                views.append(view)
                gradients.append(parameter.grad)
        copy_all(views, gradients)

    def give_gradients(self) -> None:
        """Copies what the buffer holds now into the parameters' gradients."""
        for view, parameter in zip(self.gradient_views, self.parameters):
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            parameter.grad.copy_(view)


@torch.no_grad()
def copy_all(targets: list, sources: list) -> None:
    """Copies each source into its target."""
    if targets:
        torch._foreach_copy_(targets, sources)
