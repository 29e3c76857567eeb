"""One training run: a model, its optimizer, its backend, its place in the data, its record."""

from __future__ import annotations

import time
from collections.abc import Callable

import data
import torch
from backends import Backend
from measure import Record
from model import Schedule, build_model, build_optimizer
from torch import nn
from torch.nn import functional

EVALUATION_BATCH = 500


class Contestant:
    """Trains step by step; several of them in one process take turns."""

    def __init__(
        self, backend: Backend, split: data.Split, steps: int, batch: int, seed: int
    ) -> None:
        self.backend = backend
        self.steps = steps
        self.step = 0
        self.record = Record()
        self.shard = data.Shard(len(split), backend.rank, backend.size, batch, seed)
        self._split = split
        self._schedule = Schedule(steps)
        model = build_model(seed)
        self._model, self._optimizer = backend.wrap(model, build_optimizer(model))

    @property
    def name(self) -> str:
        """As the table calls it."""
        return self.backend.name

    def train_step(self) -> float:
        """One step; the loss of this rank's batch."""
        images, labels = self._split.batch(self.shard.rows(self.step))
        for group in self._optimizer.param_groups:
            group["lr"] = self._schedule.rate(self.step)
        self._optimizer.zero_grad()
        output = self._model(torch.from_numpy(images))
        loss = functional.cross_entropy(output, torch.from_numpy(labels))
        loss.backward()
        self._optimizer.step()
        self.step += 1
        return loss.item()

    def run_block(self, steps: int, after_step: Callable[[float], None]) -> float:
        """Up to `steps` steps; the seconds they took on this rank."""
        begin = time.perf_counter()
        for _ in range(min(steps, self.steps - self.step)):
            loss = self.train_step()
            self.record.losses.append(loss)
            after_step(loss)
        self.backend.settle(self._optimizer)
        return time.perf_counter() - begin

    def weights(self) -> torch.Tensor:
        """All parameters of this rank's model, one after the other."""
        with self.backend.common_weights(self._optimizer):
            return nn.utils.parameters_to_vector(self._model.parameters()).detach()

    @torch.no_grad()
    def evaluate(self, split: data.Split) -> float:
        """The share of `split` that the model gets right; every rank looks at a part of it."""
        rows = range(self.backend.rank, len(split), self.backend.size)
        counts = torch.zeros(2, dtype=torch.float64)
        with self.backend.common_weights(self._optimizer):
            for begin in range(0, len(rows), EVALUATION_BATCH):
                part = rows[begin : begin + EVALUATION_BATCH]
                images, labels = split.batch(list(part))
                right = self._model(torch.from_numpy(images)).argmax(1) == torch.from_numpy(labels)
                counts += torch.tensor([right.sum().item(), len(part)], dtype=torch.float64)
        right, seen = self.backend.total(counts).tolist()
        return right / seen
