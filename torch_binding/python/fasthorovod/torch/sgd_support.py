"""Which optimizers can be wrapped where steps are made with formulas of our own."""

from __future__ import annotations

import torch

# Options of torch.optim.SGD that there are no formulas for.
_UNSUPPORTED = ("dampening", "nesterov", "maximize", "differentiable")


def require_sgd(what: str, optimizer) -> None:
    """NotImplementedError, which begins with `what`, unless all options have formulas."""
    kind = type(optimizer)
    if kind is not torch.optim.SGD:
        raise NotImplementedError(
            f"{what} wraps torch.optim.SGD itself for now, not {kind.__module__}."
            f"{kind.__qualname__}"
        )
    for group in optimizer.param_groups:
        for key in _UNSUPPORTED:
            if group.get(key):
                raise NotImplementedError(
                    f"{what} does not support {key}={group[key]} of torch.optim.SGD, only its "
                    "momentum and weight_decay"
                )
