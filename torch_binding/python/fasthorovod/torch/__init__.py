"""The Horovod interface for PyTorch: import fasthorovod.torch as hvd.

Names, parameters, defaults and kinds of error are those of horovod.torch. All ranks must call the
same collectives with the same names; unnamed ones in the same order. Functions may be called from
any thread. Importing starts no thread; init() does.
"""

# The check must come before everything that needs torch.
# ruff: noqa: E402

from .._torch_check import check_torch

check_torch()

from .. import __version__, distributed  # noqa: F401 - registers the backend
from ..common.exceptions import HorovodInternalError
from ..common.process_sets import ProcessSet, global_process_set
from . import rules
from .compression import Compression
from .delayed_optimizer import DelayedOptimizer
from .functions import (
    allgather_object,
    broadcast_object,
    broadcast_parameters,
)
from .handles import poll, synchronize
from .lifecycle import (
    ccl_built,
    communication_statistics,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
)
from .mpi_ops import (
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather,
    allgather_async,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    join,
)
from .optimizer import DistributedOptimizer
from .optimizer_state import broadcast_optimizer_state
from .process_sets import add_process_set, remove_process_set
from .shared_memory import empty_shared, shared_allocator

__all__ = [
    "Average",
    "Compression",
    "DelayedOptimizer",
    "DistributedOptimizer",
    "HorovodInternalError",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "Sum",
    "__version__",
    "add_process_set",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "ccl_built",
    "communication_statistics",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "empty_shared",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
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
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "poll",
    "rank",
    "remove_process_set",
    "rocm_built",
    "rules",
    "shared_allocator",
    "shutdown",
    "size",
    "synchronize",
]

# Names of Horovod that this version lacks, and what to call the missing feature.
_MISSING = {
    "Adasum": "the Adasum reduction",
    "SyncBatchNorm": "synchronised batch normalisation",
    "alltoall": "all-to-all",
    "alltoall_async": "all-to-all",
    "elastic": "elastic training",
    "grouped_allgather": "grouped all-gather",
    "grouped_allgather_async": "grouped all-gather",
    "grouped_reducescatter": "reduce-scatter",
    "grouped_reducescatter_async": "reduce-scatter",
    "reducescatter": "reduce-scatter",
    "reducescatter_async": "reduce-scatter",
    "sparse_allreduce_async": "sparse all-reduce",
    "start_timeline": "the timeline",
    "stop_timeline": "the timeline",
}


def __getattr__(name: str):
    if name in _MISSING:
        raise AttributeError(
            f"this version of FastHorovod does not have {_MISSING[name]} ({__name__}.{name})"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
