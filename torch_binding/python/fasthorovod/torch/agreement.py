"""A check that all ranks were told the same, with one error for all of them when they were not."""

from __future__ import annotations

from ..common.process_sets import ProcessSet
from .functions import allgather_object


def require_same(what: str, description: dict, name: str, process_set: ProcessSet) -> None:
    """Compares the descriptions (texts by subject) of all ranks of the set. Blocks.

    ValueError, the same on all ranks, that says which ranks have what in the first subject where
    they differ. `name` is that of the exchange.
    """
    if process_set.size() == 1:
        return
    ranks = process_set.ranks
    descriptions = dict(zip(ranks, allgather_object(description, name, process_set)))
    for subject in dict.fromkeys(s for each in descriptions.values() for s in each):
        holders: dict = {}
        for rank in ranks:
            holders.setdefault(descriptions[rank].get(subject, "none"), []).append(rank)
        if len(holders) > 1:
            sides = "; ".join(f"{_named(who)} {has}" for has, who in holders.items())
            raise ValueError(f"{what}: the ranks differ in {subject}: {sides}")


def _named(ranks: list) -> str:
    return f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {str(ranks)[1:-1]} have"
