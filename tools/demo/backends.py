"""What differs between the backends the demo runs: starting, wrapping a model, summing, waiting.

Everything else (model, data, loop, measurement) is shared, so that a difference in the table is a
difference between backends.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import nn


class Backend(ABC):
    """A way to communicate. Created once a process, on every rank."""

    name: str
    rank: int
    size: int

    @abstractmethod
    def wrap(
        self, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[nn.Module, torch.optim.Optimizer]:
        """Model and optimizer that start equal and average gradients over all ranks."""

    def common_weights(self, optimizer: torch.optim.Optimizer) -> AbstractContextManager:
        """Within it the model has the weights that all ranks share; after wrap() at any time."""
        del optimizer
        return nullcontext()

    def settle(self, optimizer: torch.optim.Optimizer) -> None:
        """Ends what a step of this optimizer may have left under way."""
        del optimizer  # most steps leave nothing

    @abstractmethod
    def total(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of `values` over all ranks."""

    @abstractmethod
    def barrier(self) -> None:
        """Returns when every rank has come here."""

    @abstractmethod
    def close(self) -> None:
        """Ends the backend in good order."""


class Fasthorovod(Backend):
    """This project, through its Horovod interface."""

    name = "fasthorovod"

    def __init__(self, warm_up: int) -> None:
        """`warm_up`: how many steps are dense and synchronous before others begin."""
        import fasthorovod.torch as hvd

        self._hvd = hvd
        self._warm_up = warm_up
        hvd.init()
        if "FASTHOROVOD_AUX" in os.environ:
            self.name += f", {os.environ['FASTHOROVOD_AUX']} auxiliaries a rank"
        self.rank = hvd.rank()
        self.size = hvd.size()

    def wrap(self, model, optimizer):
        hvd = self._hvd
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        return model, hvd.DistributedOptimizer(optimizer, model.named_parameters())

    def total(self, values):
        return self._hvd.allreduce(values, op=self._hvd.Sum)

    def barrier(self):
        self._hvd.barrier()

    def close(self):
        self._hvd.shutdown()


class FasthorovodOdSgd(Fasthorovod):
    """The same with OD-SGD: a step goes on while the gradients of the last one are averaged."""

    name = "fasthorovod, OD-SGD"

    def wrap(self, model, optimizer):
        hvd = self._hvd
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        rule = hvd.rules.ODSGD(warmup=self._warm_up)
        return model, hvd.DelayedOptimizer(optimizer, model.named_parameters(), rule=rule)

    def common_weights(self, optimizer):
        return optimizer.global_weights()

    def settle(self, optimizer):
        optimizer.synchronize()


class FasthorovodTwobit(Fasthorovod):
    """The same with 2 bits a value on the way to the owners, and exact sums on the way back."""

    name = "fasthorovod, twobit"
    THRESHOLD = 0.02  # in units of this model's momentum

    def wrap(self, model, optimizer):
        hvd = self._hvd
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        compression = hvd.Compression.twobit(self.THRESHOLD, warmup=self._warm_up)
        named = model.named_parameters()
        return model, hvd.DistributedOptimizer(optimizer, named, compression=compression)


class Gloo(Backend):
    """torch's own CPU backend, through DistributedDataParallel with its defaults."""

    name = "gloo"

    def __init__(self, rank: int, size: int, meeting_file: Path) -> None:
        import torch.distributed as dist

        # Over loopback, where the wire bytes of both backends are counted.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._dist = dist
        self.rank = rank
        self.size = size
        dist.init_process_group(
            "gloo", init_method=f"file://{meeting_file.resolve()}", rank=rank, world_size=size
        )

    def wrap(self, model, optimizer):
        return nn.parallel.DistributedDataParallel(model), optimizer

    def total(self, values):
        values = values.clone()
        self._dist.all_reduce(values)
        return values

    def barrier(self):
        self._dist.barrier()

    def close(self):
        self._dist.destroy_process_group()


class Ddp(Backend):
    """A backend of torch.distributed under DistributedDataParallel, in a job of torchrun.

    The first one in a process makes the default group; each later one has a group beside it.
    """

    def __init__(self, name: str) -> None:
        import torch.distributed as dist

        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self.name = f"{name}, DDP"
        self._dist = dist
        if dist.is_initialized():
            self._group = dist.new_group(backend=name)
        else:
            dist.init_process_group(name)
            self._group = dist.group.WORLD
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()

    def wrap(self, model, optimizer):
        return nn.parallel.DistributedDataParallel(model, process_group=self._group), optimizer

    def total(self, values):
        values = values.clone()
        self._dist.all_reduce(values, group=self._group)
        return values

    def barrier(self):
        self._dist.barrier(group=self._group)

    def close(self):
        self._dist.destroy_process_group(self._group)


class Alone(Backend):
    """No communication at all: each rank trains a copy of its own. The yardstick of the others."""

    name = "no communication"

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size

    def wrap(self, model, optimizer):
        return model, optimizer

    def total(self, values):
        return values * self.size

    def barrier(self):
        pass

    def close(self):
        pass
