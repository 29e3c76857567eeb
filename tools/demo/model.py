"""The network the demo trains: two convolutions and two dense layers, 205,922 parameters."""

from __future__ import annotations

import math

import torch
from torch import nn


def build_model(seed: int) -> nn.Module:
    """A fresh network; equal seeds give equal weights."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 12, kernel_size=5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(12, 32, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def build_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """SGD whose rate a schedule sets before every step."""
    return torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9, weight_decay=1e-4)


class Schedule:
    """A linear warm-up to `peak` over `warm_up` steps, then a cosine to zero at step `steps`."""

    def __init__(self, steps: int, peak: float = 0.1, warm_up: int = 100) -> None:
        self.steps = steps
        self.peak = peak
        self.warm_up = min(warm_up, max(1, steps // 4))

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step < self.warm_up:
            return self.peak * (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(1, self.steps - self.warm_up)
        return self.peak * 0.5 * (1.0 + math.cos(math.pi * done))
