"""Parameters and Python objects from one rank to the others."""

from __future__ import annotations

import torch

from ..common.process_sets import global_process_set
from . import mpi_ops

try:
    import cloudpickle as pickle  # also carries lambdas and classes of the main script
except ImportError:
    import pickle


def broadcast_parameters(params, root_rank, process_set=global_process_set) -> None:
    """Copies parameters from root_rank into those of every other rank, in place.

    params: a dict such as model.state_dict(), a list of (name, tensor), or a list of tensors (then
    the order must agree between ranks). Anything else is a ValueError, model.named_parameters() and
    other generators too: they may be used up already. The sets of names must agree between ranks.
    root_rank is a number in the world; ranks outside process_set must not call.
    """
    named = _named_tensors(params)
    handles = [
        mpi_ops.broadcast_async_(
            tensor, root_rank, name=f"parameters.{name}", process_set=process_set
        )
        for name, tensor in named
    ]
    for handle in handles:
        mpi_ops.synchronize(handle)


def _named_tensors(params) -> list:
    """(name, tensor) pairs, in the same order on all ranks."""
    if isinstance(params, dict):
        named = sorted(params.items())
    elif isinstance(params, list):
        named = [
            entry if isinstance(entry, tuple) and len(entry) == 2 else (str(i), entry)
            for i, entry in enumerate(params)
        ]
    else:
        raise ValueError(
            "broadcast_parameters takes a dict, a list of tensors or a list of (name, tensor), "
            f"not {type(params).__name__}"
        )
    for name, tensor in named:
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(
                f"broadcast_parameters: {name!r} is not a tensor but {type(tensor).__name__}"
            )
    return named


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """A Python object from root_rank, on every rank; the root gets the object that it gave.

    The object is pickled, with cloudpickle where that is installed; whoever takes part can make the
    others run code. An object that cannot be pickled is an error on every rank: the root's own, and
    ValueError elsewhere. Blocks.
    """
    name = "object" if name is None else name
    on_root = mpi_ops.rank() == root_rank
    content, failure = None, None
    if on_root:
        try:
            content = _to_bytes(obj)
        except Exception as error:  # the others must hear of it first
            failure = error
    size = torch.tensor([-1 if content is None else content.numel()], dtype=torch.int64)
    mpi_ops.broadcast_(size, root_rank, name=f"{name}.size", process_set=process_set)
    if failure is not None:
        raise failure
    if size.item() < 0:
        raise ValueError(f"broadcast_object: rank {root_rank} could not pickle its object")
    if content is None:
        content = torch.empty(size.item(), dtype=torch.uint8)
    mpi_ops.broadcast_(content, root_rank, name=f"{name}.content", process_set=process_set)
    return obj if on_root else _from_bytes(content)


def allgather_object(obj, name=None, process_set=global_process_set) -> list:
    """The Python objects of all ranks of the set, in rank order. See broadcast_object(). Blocks."""
    name = "object" if name is None else name
    content = _to_bytes(obj)
    size = torch.tensor([content.numel()])
    sizes = mpi_ops.allgather(size, name=f"{name}.size", process_set=process_set)
    joined = mpi_ops.allgather(content, name=f"{name}.content", process_set=process_set)
    return [_from_bytes(part) for part in joined.split(sizes.tolist())]


def _to_bytes(obj) -> torch.Tensor:
    return torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)


def _from_bytes(content: torch.Tensor):
    return pickle.loads(content.contiguous().numpy().tobytes())
