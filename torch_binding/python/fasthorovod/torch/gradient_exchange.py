"""The exchange of an optimizer's gradients: each is sent off when it is complete."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch

from ..common.process_sets import ProcessSet
from . import mpi_ops
from .ordinals import next_ordinal


@dataclass
class Settings:
    """How gradients travel."""

    passes: int  # backward passes before a gradient is sent
    compression: type
    op: int
    prescale: float
    postscale: float
    sparse_as_dense: bool
    process_set: ProcessSet


class Exchange:
    """Sends the gradients of one optimizer, puts reduced ones back. Thread: one at a time."""

    def __init__(self, names, groups, settings) -> None:
        self.names = names  # parameter -> name
        self.groups = groups  # parameter -> tuple of the parameters that travel with it
        self.settings = settings
        self.prefix = f"optimizer.{next_ordinal('optimizer', settings.process_set)}"
        self.seen = dict.fromkeys(names, 0)  # backward passes since the last synchronize
        self.ready = set()  # members of a group that still wait for the others
        self.in_flight = {}  # handle -> [(parameter, its compression, context of that)]
        self.sent = set()
        self.hooked = set()

    def has_peers(self) -> bool:
        """Whether this rank reduces gradients with others; else it uses its own as they are."""
        process_set = self.settings.process_set
        return process_set.included() is not False and process_set.size() != 1

    def hook_parameters(self) -> None:
        """Hooks those that need a gradient by now."""
        # The hook must not keep the exchange alive: the parameters often outlive the optimizer.
        this = weakref.ref(self)

        def gradient_is_complete(parameter) -> None:
            exchange = this()
            if exchange is not None:
                exchange.count_pass(parameter)

        for parameter in self.names:
            if parameter.requires_grad and parameter not in self.hooked:
                self.hooked.add(parameter)
                parameter.register_post_accumulate_grad_hook(gradient_is_complete)

    def count_pass(self, parameter) -> None:
        if parameter in self.sent or self.seen[parameter] >= self.settings.passes:
            raise AssertionError(
                f"the gradient of {self.names[parameter]} was computed more than "
                f"backward_passes_per_step={self.settings.passes} times before step() or "
                "synchronize(); raise backward_passes_per_step to accumulate gradients"
            )
        self.seen[parameter] += 1
        if self.seen[parameter] == self.settings.passes:
            self.gradient_is_ready(parameter)

    def gradient_is_ready(self, parameter) -> None:
        group = self.groups.get(parameter)
        if group is None:
            self.send([parameter])
            return
        self.ready.add(parameter)
        if all(member in self.ready for member in group if member.requires_grad):
            self.send_group(group)

    def send_group(self, group) -> None:
        members = [member for member in group if member.requires_grad]
        self.ready.difference_update(members)
        self.send(members, f"group.{self.names[group[0]]}")

    def send(self, parameters, bundle="") -> None:
        """Starts the all-reduce of gradients; missing ones count as zero."""
        compressions = [self.compression_of(p) for p in parameters]
        pairs = [c.compress(self.outgoing(p)) for c, p in zip(compressions, parameters)]
        tensors = [pair[0] for pair in pairs]
        names = [self.name_of(parameter) for parameter in parameters]
        op = self.settings.op
        codecs = [
            mpi_ops.choose_codec(*each, op, name)
            for *each, name in zip(compressions, tensors, names)
        ]
        options = {
            "op": op,
            "prescale_factor": self.settings.prescale,
            "postscale_factor": self.settings.postscale,
            "process_set": self.settings.process_set,
        }
        if len(tensors) == 1:
            handle = mpi_ops.allreduce_async_(tensors[0], name=names[0], codec=codecs[0], **options)
        else:
            handle = mpi_ops.grouped_allreduce_async_(
                tensors, name=f"{self.prefix}.{bundle}", codecs=codecs, names=names, **options
            )
        contexts = [pair[1] for pair in pairs]
        self.in_flight[handle] = list(zip(parameters, compressions, contexts))
        self.sent.update(parameters)

    def name_of(self, parameter) -> str:
        """What its gradient is called on the way, alone or in a group."""
        return f"{self.prefix}.{self.names[parameter]}"

    def compression_of(self, parameter):
        """How its gradient is made smaller in this step."""
        del parameter  # the same for all of them here
        return self.settings.compression

    def outgoing(self, parameter) -> torch.Tensor:
        """What is sent for a parameter: memory of its .grad."""
        return self.gradient(parameter)

    def gradient(self, parameter) -> torch.Tensor:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        elif parameter.grad.is_sparse:
            if not self.settings.sparse_as_dense:
                raise NotImplementedError(
                    f"the gradient of {self.names[parameter]} is sparse, which this version of "
                    "FastHorovod does not reduce; pass sparse_as_dense=True"
                )
            parameter.grad = parameter.grad.to_dense()
        return parameter.grad.detach()

    def finish(self) -> None:
        """Sends what did not come up, waits for all and puts the results back."""
        for parameter in self.names:
            if parameter.requires_grad and parameter not in self.sent:
                group = self.groups.get(parameter)
                if group is None:
                    self.send([parameter])
                else:
                    self.send_group(group)
        try:
            for handle, parameters in self.in_flight.items():
                self.put_back(mpi_ops.synchronize(handle), parameters)
            self.settle()
        finally:
            self.forget()
        self.hook_parameters()

    def put_back(self, outputs, parameters) -> None:
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        for output, (parameter, compression, context) in zip(outputs, parameters):
            reduced = compression.decompress(output, context)
            if parameter.grad is None:
                parameter.grad = reduced
            elif reduced.data_ptr() != parameter.grad.data_ptr():
                with torch.no_grad():
                    parameter.grad.copy_(reduced)

    def settle(self) -> None:
        """Called when all results are in place."""

    def forget(self) -> None:
        """Starts over, as before the first backward pass."""
        self.seen = dict.fromkeys(self.names, 0)
        self.ready.clear()
        self.in_flight = {}
        self.sent.clear()
