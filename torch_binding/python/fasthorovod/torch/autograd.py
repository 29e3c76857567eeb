"""The collectives as functions with gradients, by Horovod's conventions."""

from __future__ import annotations

import torch

from . import mpi_ops


def _gradient_name(name):
    return None if name is None else f"{name}.gradient"


def _require_linear(op) -> None:
    if op not in (mpi_ops.Average, mpi_ops.Sum):
        raise NotImplementedError(
            "an all-reduce has a gradient for Average and Sum only, not for Min, Max and Product"
        )


class Allreduce(torch.autograd.Function):
    """Gradient: the same all-reduce of the incoming gradients."""

    @staticmethod
    def forward(ctx, tensor, op, name, prescale, postscale, process_set, codec):
        ctx.arguments = (op, name, prescale, postscale, process_set)
        return mpi_ops.synchronize(
            mpi_ops.allreduce_async(
                tensor,
                name=name,
                op=op,
                prescale_factor=prescale,
                postscale_factor=postscale,
                process_set=process_set,
                codec=codec,
            )
        )

    @staticmethod
    def backward(ctx, gradient):
        op, name, prescale, postscale, process_set = ctx.arguments
        _require_linear(op)
        result = mpi_ops.allreduce(
            gradient,
            name=_gradient_name(name),
            op=op,
            prescale_factor=prescale,
            postscale_factor=postscale,
            process_set=process_set,
        )
        return result, None, None, None, None, None, None


class GroupedAllreduce(torch.autograd.Function):
    """Gradient: the same grouped all-reduce of the incoming gradients."""

    @staticmethod
    def forward(ctx, op, name, prescale, postscale, process_set, codecs, *tensors):
        ctx.arguments = (op, name, prescale, postscale, process_set)
        return mpi_ops.synchronize(
            mpi_ops.grouped_allreduce_async(
                tensors,
                name=name,
                op=op,
                prescale_factor=prescale,
                postscale_factor=postscale,
                process_set=process_set,
                codecs=codecs,
            )
        )

    @staticmethod
    def backward(ctx, *gradients):
        op, name, prescale, postscale, process_set = ctx.arguments
        _require_linear(op)
        results = mpi_ops.grouped_allreduce(
            gradients,
            name=_gradient_name(name),
            op=op,
            prescale_factor=prescale,
            postscale_factor=postscale,
            process_set=process_set,
        )
        return None, None, None, None, None, None, *results


class Allgather(torch.autograd.Function):
    """Gradient: this rank's part of the average of the incoming gradients."""

    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows = tensor.shape[0] if tensor.dim() else 0
        ctx.name = name
        ctx.process_set = process_set
        return mpi_ops.synchronize(
            mpi_ops.allgather_async(tensor, name=name, process_set=process_set)
        )

    @staticmethod
    def backward(ctx, gradient):
        name = _gradient_name(ctx.name)
        among = {"name": name, "process_set": ctx.process_set}
        average = mpi_ops.allreduce(gradient, op=mpi_ops.Average, **among)
        rows_of_rank = mpi_ops.allgather(torch.tensor([ctx.rows]), **among)
        offset = int(rows_of_rank[: ctx.process_set.rank()].sum())
        return average.narrow(0, offset, ctx.rows), None, None


class Broadcast(torch.autograd.Function):
    """Gradient: the average of the incoming gradients on the root, zeros elsewhere."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank = root_rank
        ctx.name = name
        ctx.process_set = process_set
        return mpi_ops.synchronize(
            mpi_ops.broadcast_async(tensor, root_rank, name=name, process_set=process_set)
        )

    @staticmethod
    def backward(ctx, gradient):
        name = _gradient_name(ctx.name)
        average = mpi_ops.allreduce(
            gradient, name=name, op=mpi_ops.Average, process_set=ctx.process_set
        )
        if mpi_ops.rank() != ctx.root_rank:
            average = torch.zeros_like(average)
        return average, None, None, None
