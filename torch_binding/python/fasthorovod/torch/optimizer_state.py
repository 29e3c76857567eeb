"""The state of an optimizer from one rank to the others.

The root describes its state in one object: the options of each group, and for each parameter what
its state holds. Tensors of that state then travel as tensors, in place where the receiver has one
that fits. No step is run, so nothing changes on the root.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ..common.process_sets import global_process_set
from . import mpi_ops
from .delayed_optimizer import Delayed
from .functions import broadcast_object
from .optimizer import MomentumFirst


@dataclass
class _TensorState:
    """A tensor of the state, which travels by itself."""

    shape: tuple
    dtype: torch.dtype
    beside_parameter: bool  # on the parameter's device; else on the host


@dataclass
class _Description:
    groups: list = field(default_factory=list)  # a group's options, by name
    shapes: list = field(default_factory=list)  # each group's parameter shapes
    states: list = field(
        default_factory=list
    )  # each parameter's state: name -> value or _TensorState


def broadcast_optimizer_state(
    optimizer, root_rank, model=None, process_set=global_process_set
) -> None:
    """Copies options and state of the root's optimizer to every other rank.

    Works for any optimizer of torch, whether any rank has made a step or none; what a rank had and
    the root has not is dropped. The parameters must agree in number, order and shape, or all ranks
    raise ValueError. `model` is Horovod's and has no effect. Blocks.
    """
    if isinstance(optimizer, Delayed):
        optimizer.broadcast_state(root_rank, process_set)
        return
    on_root = mpi_ops.rank() == root_rank
    root_s = broadcast_object(
        _describe(optimizer) if on_root else None, root_rank, "optimizer_state", process_set
    )
    _require_same_parameters(optimizer, root_s, root_rank, process_set)
    if not on_root:
        _take_options(optimizer, root_s)
        _take_layout(optimizer, root_s)
    handles = []
    for i, (parameter, described) in enumerate(zip(_parameters(optimizer), root_s.states)):
        for key in sorted(k for k, v in described.items() if isinstance(v, _TensorState)):
            tensor = optimizer.state[parameter][key]
            name = f"optimizer_state.{i}.{key}"
            handles.append(mpi_ops.broadcast_async_(tensor, root_rank, name, process_set))
    for handle in handles:
        mpi_ops.synchronize(handle)
    if isinstance(optimizer, MomentumFirst):
        optimizer.broadcast_own_state(root_rank, process_set)


def _parameters(optimizer) -> list:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _shapes(optimizer) -> list:
    return [[tuple(p.shape) for p in group["params"]] for group in optimizer.param_groups]


def _describe(optimizer) -> _Description:
    description = _Description(shapes=_shapes(optimizer))
    for group in optimizer.param_groups:
        options = {
            key: value for key, value in group.items() if key not in ("params", "param_names")
        }
        description.groups.append({key: _portable(value) for key, value in options.items()})
    for parameter in _parameters(optimizer):
        state = optimizer.state.get(parameter, {})
        description.states.append(
            {key: _describe_value(value, parameter) for key, value in state.items()}
        )
    return description


def _describe_value(value, parameter):
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        return _TensorState(tuple(value.shape), value.dtype, value.device == parameter.device)
    return _portable(value)


def _portable(value):
    """The value, with tensors on the host, where every rank can unpickle them."""
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _require_same_parameters(optimizer, root_s: _Description, root_rank: int, process_set) -> None:
    same = torch.tensor([root_s.shapes == _shapes(optimizer)], dtype=torch.int32)
    name = "optimizer_state.same"
    if not mpi_ops.allreduce_(same, op=mpi_ops.Min, name=name, process_set=process_set).item():
        raise ValueError(
            "broadcast_optimizer_state: the parameters of the optimizer on some rank differ from "
            f"those of rank {root_rank} in number, order or shape"
        )


def _take_options(optimizer, root_s: _Description) -> None:
    for group, options in zip(optimizer.param_groups, root_s.groups):
        for key, value in options.items():
            mine = group.get(key)
            if isinstance(value, torch.Tensor) and isinstance(mine, torch.Tensor):
                value = value.to(mine.device)  # noqa: PLW2901
            group[key] = value


def _take_layout(optimizer, root_s: _Description) -> None:
    """State like the root's: plain values taken over, tensors of the right shape to be filled."""
    for parameter, described in zip(_parameters(optimizer), root_s.states):
        old = optimizer.state.pop(parameter, {})
        if not described:
            continue
        optimizer.state[parameter] = {
            key: _room_for(value, old.get(key), parameter)
            if isinstance(value, _TensorState)
            else value
            for key, value in described.items()
        }


def _room_for(described: _TensorState, mine, parameter) -> torch.Tensor:
    device = parameter.device if described.beside_parameter else torch.device("cpu")
    if (
        isinstance(mine, torch.Tensor)
        and tuple(mine.shape) == described.shape
        and mine.dtype == described.dtype
        and mine.device == device
    ):
        return mine
    if described.shape == tuple(parameter.shape):
        return torch.empty_like(parameter, dtype=described.dtype, device=device).detach()
    return torch.empty(described.shape, dtype=described.dtype, device=device)
