"""Names and groups for the parameters of an optimizer, the same on all ranks."""

from __future__ import annotations

import torch


def name_parameters(optimizer, named_parameters) -> dict:
    """Parameter -> name, in the optimizer's order. ValueError for names that do not fit."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if named_parameters is None:
        return {
            parameter: f"noname.{i}.{j}"
            for i, group in enumerate(optimizer.param_groups)
            for j, parameter in enumerate(group["params"])
        }
    names = {}
    taken = set()
    for entry in named_parameters:
        if not isinstance(entry, tuple) or len(entry) != 2 or not isinstance(entry[0], str):
            raise ValueError(
                "named_parameters must hold tuples (name, parameter), as model.named_parameters() "
                "gives them"
            )
        name, parameter = entry
        if name in taken:
            raise ValueError(f"named_parameters has the name {name!r} twice")
        taken.add(name)
        names.setdefault(parameter, name)  # a tied weight has two names; the first counts
    missing = sum(parameter not in names for parameter in parameters)
    if missing:
        raise ValueError(
            f"named_parameters lacks {missing} of the {len(parameters)} parameters of the optimizer"
        )
    return {parameter: names[parameter] for parameter in parameters}


def assign_groups(parameters: list, groups) -> dict:
    """Parameter -> the tuple of parameters that it travels with; without those that go alone.

    groups: None, how many groups to make, or lists of parameters.
    """
    if groups is None:
        return {}
    if isinstance(groups, bool) or not isinstance(groups, (int, list)):
        raise ValueError("groups must be a number or a list of lists of parameters")
    if isinstance(groups, int):
        if groups <= 0:
            raise ValueError(f"groups must be at least 1, not {groups}")
        groups = _split_evenly(parameters, groups)
    else:
        _check_groups(parameters, groups)
    return {member: tuple(group) for group in groups for member in group}


def _split_evenly(parameters: list, count: int) -> list:
    edges = [len(parameters) * i // count for i in range(count + 1)]
    return [parameters[a:b] for a, b in zip(edges, edges[1:]) if b > a]


def _check_groups(parameters: list, groups: list) -> None:
    known = set(parameters)
    grouped = set()
    for group in groups:
        if not isinstance(group, (list, tuple)):
            raise ValueError("groups must be a number or a list of lists of parameters")
        for member in group:
            if not isinstance(member, torch.Tensor) or member not in known:
                raise ValueError("groups holds something that is not a parameter of the optimizer")
            if member in grouped:
                raise ValueError("groups holds a parameter twice")
            grouped.add(member)
