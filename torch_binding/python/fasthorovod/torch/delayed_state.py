"""The state of a DelayedOptimizer as plain values, keyed by parameter name."""

from __future__ import annotations

import torch

from .flat_memory import copy_all


def save(optimizer, exchange, flat) -> dict:
    """What load() needs to go on to the bit; tensors are copies. No exchange is under way.

    rule: its text. steps: made so far. taken_over: whether the global weights are apart from the
    model. state: by name, global_weights (once apart) and momentum_buffer (once there is one).
    param_groups: options, with the names of the parameters.
    """
    state = {}
    for i, (name, parameter) in enumerate(zip(flat.names, flat.parameters)):
        state[name] = {}
        if exchange.taken_over:
            state[name]["global_weights"] = flat.weight_views[i].clone()
        buffer = optimizer.state.get(parameter, {}).get("momentum_buffer")
        if buffer is not None:
            state[name]["momentum_buffer"] = buffer.clone()
    return {
        "rule": repr(optimizer._rule),
        "steps": exchange.steps,
        "taken_over": exchange.taken_over,
        "state": state,
        "param_groups": [
            {**group, "params": _names_of(optimizer, group)} for group in optimizer.param_groups
        ],
    }


def load(saved: dict, optimizer, exchange, flat) -> None:
    """Takes over what save() gave. ValueError, and nothing is changed, when it does not fit."""
    _require_fit(saved, optimizer, flat)
    exchange.restore(saved["steps"], saved["taken_over"])
    for group, options in zip(optimizer.param_groups, saved["param_groups"]):
        group.update({key: value for key, value in options.items() if key != "params"})
    states = [saved["state"][name] for name in flat.names]
    for parameter, velocity, state in zip(flat.parameters, flat.velocity_views, states):
        buffer = state.get("momentum_buffer")
        if saved["taken_over"]:
            velocity.copy_(buffer)
            optimizer.state[parameter]["momentum_buffer"] = velocity
        elif buffer is None:
            optimizer.state.pop(parameter, None)
        else:
            optimizer.state[parameter]["momentum_buffer"] = buffer.clone()
    if saved["taken_over"]:
        copy_all(flat.weight_views, [state["global_weights"] for state in states])


def _names_of(optimizer, group: dict) -> list:
    return [optimizer._names[parameter] for parameter in group["params"]]


def _require_fit(saved: dict, optimizer, flat) -> None:
    wanted = {"rule", "steps", "taken_over", "state", "param_groups"}
    if not isinstance(saved, dict) or not wanted <= saved.keys():
        raise ValueError("load_state_dict: this is not the state of a DelayedOptimizer")
    if saved["rule"] != repr(optimizer._rule):
        raise ValueError(
            f"load_state_dict: the state is of the rule {saved['rule']}, this is {optimizer._rule}"
        )
    theirs = [group["params"] for group in saved["param_groups"]]
    ours = [_names_of(optimizer, group) for group in optimizer.param_groups]
    if theirs != ours or saved["state"].keys() != set(flat.names):
        raise ValueError("load_state_dict: the state is of other parameters, or in another order")
    parts = ("global_weights", "momentum_buffer") if saved["taken_over"] else ()
    for name, parameter in zip(flat.names, flat.parameters):
        state = saved["state"][name]
        missing = [part for part in parts if part not in state]
        wrong = [part for part, value in state.items() if not _is_like(value, parameter)]
        if missing or wrong:
            raise ValueError(
                f"load_state_dict: {(missing or wrong)[0]} of {name} is not a float32 tensor of "
                f"shape {tuple(parameter.shape)}"
            )


def _is_like(value, parameter) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.shape == parameter.shape
        and value.dtype == parameter.dtype
    )
