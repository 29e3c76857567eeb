"""Start and stop of the engine, and where this process stands among the others."""

from __future__ import annotations

import atexit

import torch  # noqa: F401 - the extension needs its libraries loaded

from .. import _C
from . import handles
from .process_sets import add_initial, check_initial


def init(comm=None, process_sets=None) -> None:
    """Meets the other ranks and starts the engine; harmless when it is running already.

    Who this process is comes from the environment (FASTHOROVOD_RANK, FASTHOROVOD_SIZE and where to
    meet). Without any of it the process is a world of one: rank 0 of size 1. All ranks must call it
    within FASTHOROVOD_START_TIMEOUT seconds. After shutdown() it may be called again.

    process_sets: a list of ProcessSet objects, the same on all ranks, that are added at once; or
    "dynamic", which is not needed here: sets may always be added later. comm is here for Horovod's
    signature only: anything but None is a NotImplementedError.

    Raises ValueError when a setting or a process set is wrong, and HorovodInternalError when the
    ranks did not meet or do not agree about the sets; then the engine does not run.
    """
    if comm is not None:
        raise NotImplementedError("this version of FastHorovod has no sub-communicators (comm)")
    initial = check_initial(process_sets)
    if _C.is_initialized():
        return
    handles.restart_names()
    _C.init()
    _stop_at_exit()
    try:
        add_initial(initial)
    except BaseException:
        shutdown()
        raise


def shutdown() -> None:
    """Stops the engine; operations that are not done fail. Harmless while none runs.

    Blocks until the engine's threads ended. Operations of other ranks that need this one fail.
    """
    _C.shutdown()


_stops_at_exit = False


def _stop_at_exit() -> None:
    global _stops_at_exit  # noqa: PLW0603 - registered once for the process
    if not _stops_at_exit:
        atexit.register(shutdown)
        _stops_at_exit = True


def is_initialized() -> bool:
    """Whether the engine runs in this process. False in a child made by fork."""
    return _C.is_initialized()


def rank() -> int:
    """This process's number among all, from 0. ValueError before init()."""
    return _C.world().rank


def size() -> int:
    """How many processes take part. ValueError before init()."""
    return _C.world().size


def local_rank() -> int:
    """This process's number among those of its host. ValueError before init()."""
    return _C.world().local_rank


def local_size() -> int:
    """How many processes this host has. ValueError before init()."""
    return _C.world().local_size


def cross_rank() -> int:
    """This host's number among those that have my local_rank(). ValueError before init()."""
    return _C.world().cross_rank


def cross_size() -> int:
    """How many hosts have a process with my local_rank(). ValueError before init()."""
    return _C.world().cross_size


def is_homogeneous() -> bool:
    """Whether all hosts have the same number of processes. ValueError before init()."""
    return _C.world().homogeneous


def communication_statistics() -> dict:
    """What the engine did since init(), as numbers. ValueError before init().

    operations, tensors, payload_bytes: what ran, after fusion, and the bytes of its tensors.
    bytes_sent, bytes_received: on the wire, headers included; what ranks of one host reduce in
    shared memory is not among them. cache_hits: requests that cost one bit. refused_connections:
    strangers turned away. blocked_seconds: time that threads of this process waited in
    synchronize() and the blocking calls.
    """
    return _C.statistics()


def mpi_built() -> bool:
    """Whether the plug-in for MPI was built and installed, so that mpirun can start ranks."""
    return _C.mpi_built()


def mpi_enabled() -> bool:
    """Whether the ranks met by MPI: mpirun (or another MPI launcher) started them, and init() ran.

    Data goes over TCP all the same, unless FASTHOROVOD_DATA_PLANE=mpi says otherwise.
    """
    return _C.mpi_enabled()


def mpi_threads_supported() -> bool:
    """Whether the program may call MPI on any thread, as mpi4py's programs do.

    ValueError where MPI is not enabled: before init(), or with another launcher.
    """
    if not mpi_enabled():
        raise ValueError("MPI is not in use: mpirun did not start this rank, or init() has not run")
    return _C.mpi_threads_supported()


def gloo_built() -> bool:
    """False: FastHorovod moves data over TCP of its own, which does what Horovod uses Gloo for."""
    return False


def gloo_enabled() -> bool:
    """False: FastHorovod moves data over TCP of its own, which does what Horovod uses Gloo for."""
    return False


def nccl_built() -> int:
    """0, Horovod's answer for "no": tensors on a GPU travel through host memory."""
    return 0


def ddl_built() -> bool:
    """False: IBM's library is not used."""
    return False


def ccl_built() -> bool:
    """False: Intel's library is not used."""
    return False


def cuda_built() -> bool:
    """False: no CUDA code is compiled in; tensors on a GPU travel through host memory."""
    return False


def rocm_built() -> bool:
    """False: no ROCm code is compiled in; tensors on a GPU travel through host memory."""
    return False
