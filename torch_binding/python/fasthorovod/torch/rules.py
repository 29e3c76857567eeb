"""Rules by which DelayedOptimizer lets a step start before the exchange of the last one is done.

A rule is a plain value: its kind and its settings, the same on all ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ODSGD:
    """One-step delay: a rank goes on with its own gradient while the ranks average the last one.

    local_rate: the rate of the local step, or None for the optimizer's learning rate of that step,
        which is what trains well. With 0 a rank computes with the global weights as they were one
        step ago, which does not train well with momentum.
    warmup: how many steps are synchronous SGD before the first delayed one.

    ValueError for anything else.
    """

    local_rate: float | None = None
    warmup: int = 200

    def __post_init__(self) -> None:
        rate, warmup = self.local_rate, self.warmup
        is_number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
        if rate is not None and not (is_number and math.isfinite(rate) and rate >= 0):
            raise ValueError(f"local_rate must be None or a number from 0, not {rate!r}")
        if isinstance(warmup, bool) or not isinstance(warmup, int) or warmup < 0:
            raise ValueError(f"warmup must be a whole number of steps from 0, not {warmup!r}")
