"""The collectives. Horovod's name for this module is kept; no MPI is involved.

Common to all:
- Every rank calls the operation with the same name, or without a name in the same order.
- process_set: the ranks that take part, which are then all that "every rank" means; a ProcessSet
  that was added. ValueError on a rank that is not in it.
- Types: bool, all integers, float16, bfloat16, float32, float64. Any strides; tensors on a GPU go
  through host memory. Sparse, quantized and complex tensors are a ValueError.
- ..._async returns a handle for poll() and synchronize(); until then leave the tensor alone.
- codec: (name, threshold) of what encodes float32 values on the way, as Compressor.codec() says it;
  codecs: one for each tensor.
- A trailing underscore writes the result into the tensor given (not an expanded one).
- ValueError: before init(), or something the caller can mend, such as a name that is in flight.
  HorovodInternalError: the operation failed; see its fields.
- Any thread may call; the interpreter lock is free while a call waits.
"""

from __future__ import annotations

import warnings

from .. import _C
from ..common.process_sets import global_process_set, usable
from . import autograd
from .compression import NO_CODEC, Compression, Compressor
from .handles import NoOperation, all_joined, new_handle, operation_name, poll, synchronize
from .lifecycle import (
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_threads_supported,
    rank,
    shutdown,
    size,
)

__all__ = [
    "Average",
    "Max",
    "Min",
    "Product",
    "Sum",
    "allgather",
    "allgather_async",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_threads_supported",
    "poll",
    "rank",
    "shutdown",
    "size",
    "synchronize",
]

# Horovod's numbers, which scripts may have stored.
Average = 0
Sum = 1
Min = 3
Max = 4
Product = 5
_ADASUM = 2


def choose_reduction(average, op) -> int:
    """The reduction that the old argument `average` and the new one `op` ask for."""
    if average is not None:
        if op is not None:
            raise ValueError("give either op or the older average, not both")
        warnings.warn("average= is deprecated; use op=", DeprecationWarning, stacklevel=3)
        return Average if average else Sum
    if op is None:
        return Average
    if op == _ADASUM:
        raise NotImplementedError("this version of FastHorovod does not have the Adasum reduction")
    if op not in (Average, Sum, Min, Max, Product):
        raise ValueError(f"op must be Average, Sum, Min, Max or Product, not {op!r}")
    return op


def choose_codec(compression, tensor, op, name):
    """The codec of a tensor that compression.compress() gave: (name, threshold)."""
    # Compressors written for Horovod have no codec().
    codec = getattr(compression, "codec", Compressor.codec)(tensor)
    if codec == NO_CODEC or op not in (Average, Sum):
        return NO_CODEC
    if name is None and codec[0] == "twobit":
        raise ValueError(
            "Compression.twobit keeps what it did not send under the operation's name: give a name"
        )
    return codec


def _start_allreduce(tensor, in_place, name, op, prescale, postscale, process_set, codec):
    number = usable(process_set)
    name = operation_name("allreduce", name, number)
    scales = (prescale, postscale)
    operation = _C.allreduce([name], [tensor], in_place, op, *scales, "", number, [codec])
    return new_handle(operation, (tensor,))


def _start_grouped_allreduce(
    tensors, in_place, name, op, prescale, postscale, process_set, codecs, names=None
):
    number = usable(process_set)
    tensors = tuple(tensors)
    if not tensors:
        return new_handle(NoOperation(), single=False)
    bundle = operation_name("grouped_allreduce", name, number)
    if names is None:
        names = [f"{bundle}_{i + 1}of{len(tensors)}" for i in range(len(tensors))]
    else:
        names = [operation_name("allreduce", each, number) for each in names]
    codecs = [NO_CODEC] * len(tensors) if codecs is None else codecs
    scales = (prescale, postscale)
    operation = _C.allreduce(names, tensors, in_place, op, *scales, bundle, number, codecs)
    return new_handle(operation, tensors, single=False)


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Combines a tensor of the same shape and type from all ranks; every rank gets the result.

    op: Average (the default), Sum, Min, Max or Product. Values are multiplied by prescale_factor
    before and by postscale_factor after; with integers the products are cut to whole numbers.
    bool: Sum is "or", Product is "and". Differentiable for Average and Sum: the gradient is the
    same all-reduce of the incoming gradients.
    """
    op = choose_reduction(average, op)
    compressed, context = compression.compress(tensor)
    codec = choose_codec(compression, compressed, op, name)
    output = autograd.Allreduce.apply(
        compressed, op, name, prescale_factor, postscale_factor, process_set, codec
    )
    return compression.decompress(output, context)


def allreduce_async(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    codec=NO_CODEC,
):
    """allreduce() without waiting and without gradient: returns a handle; the result is new."""
    op = choose_reduction(average, op)
    return _start_allreduce(
        tensor, False, name, op, prescale_factor, postscale_factor, process_set, codec
    )


def allreduce_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    codec=NO_CODEC,
):
    """allreduce() in place, without gradient; returns the tensor."""
    op = choose_reduction(average, op)
    return synchronize(
        _start_allreduce(
            tensor, True, name, op, prescale_factor, postscale_factor, process_set, codec
        )
    )


def allreduce_async_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    codec=NO_CODEC,
):
    """allreduce() in place without waiting: returns a handle."""
    op = choose_reduction(average, op)
    return _start_allreduce(
        tensor, True, name, op, prescale_factor, postscale_factor, process_set, codec
    )


def grouped_allreduce(
    tensors,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """allreduce() of a list of tensors as one operation; returns a list. See allreduce().

    All members wait for each other on all ranks and then travel together.
    """
    op = choose_reduction(average, op)
    pairs = [compression.compress(tensor) for tensor in tensors]
    compressed = [pair[0] for pair in pairs]
    codecs = [choose_codec(compression, tensor, op, name) for tensor in compressed]
    outputs = autograd.GroupedAllreduce.apply(
        op, name, prescale_factor, postscale_factor, process_set, codecs, *compressed
    )
    return [compression.decompress(out, pair[1]) for out, pair in zip(outputs, pairs)]


def grouped_allreduce_async(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    codecs=None,
):
    """grouped_allreduce() without waiting: one handle, whose result is a tuple of new tensors."""
    op = choose_reduction(average, op)
    return _start_grouped_allreduce(
        tensors, False, name, op, prescale_factor, postscale_factor, process_set, codecs
    )


def grouped_allreduce_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    codecs=None,
):
    """grouped_allreduce() in place; returns a tuple of the tensors."""
    op = choose_reduction(average, op)
    return synchronize(
        _start_grouped_allreduce(
            tensors, True, name, op, prescale_factor, postscale_factor, process_set, codecs
        )
    )


def grouped_allreduce_async_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    codecs=None,
    names=None,
):
    """grouped_allreduce() in place without waiting: one handle.

    names: one a member, by which it is also known when it travels alone.
    """
    op = choose_reduction(average, op)
    return _start_grouped_allreduce(
        tensors, True, name, op, prescale_factor, postscale_factor, process_set, codecs, names
    )


def allgather(tensor, name=None, process_set=global_process_set):
    """Joins the tensors of all ranks along the first dimension, in rank order.

    The first dimension may differ between ranks, and may be 0; the others must agree, and there
    must be one. Differentiable, with Horovod's convention: the gradient is the average over ranks
    of the incoming gradient, of which each rank takes its own part.
    """
    return autograd.Allgather.apply(tensor, name, process_set)


def allgather_async(tensor, name=None, process_set=global_process_set):
    """allgather() without waiting and without gradient: returns a handle."""
    number = usable(process_set)
    name = operation_name("allgather", name, number)
    return new_handle(_C.allgather(name, tensor, number), (tensor,))


def _start_broadcast(tensor, in_place, root_rank, name, process_set):
    number = usable(process_set)
    name = operation_name("broadcast", name, number)
    operation = _C.broadcast(name, tensor, in_place, root_rank, number)
    return new_handle(operation, (tensor,))


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """The tensor of root_rank, on every rank, as a new tensor. Shapes and types must agree.

    root_rank is the rank's number in the world, also in a process set; it must be in the set.

    Differentiable, with Horovod's convention: the root gets the average over ranks of the incoming
    gradient, the others get zeros.
    """
    return autograd.Broadcast.apply(tensor, root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """broadcast() into the tensor given, without gradient; returns it."""
    return synchronize(_start_broadcast(tensor, True, root_rank, name, process_set))


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """broadcast() without waiting and without gradient: returns a handle."""
    return _start_broadcast(tensor, False, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """broadcast() into the tensor given without waiting: returns a handle."""
    return _start_broadcast(tensor, True, root_rank, name, process_set)


def barrier(process_set=global_process_set) -> None:
    """Waits until every rank is here, and what all of them started in the set before is done."""
    number = usable(process_set)
    synchronize(new_handle(_C.barrier(operation_name("barrier", None, number), number)))


def join(device=-1) -> int:
    """Says that this rank has no more data, waits for all others to say so; the rank that was last.

    Until then the all-reduces of the others go on with zeros from this rank (an average still
    divides by the number of all ranks); their other collectives raise HorovodInternalError. The
    same holds in every process set that this rank is in.
    `device` is Horovod's and has no effect.
    """
    operation = _C.join("join")
    operation.finish()
    all_joined()
    return operation.last_joined
