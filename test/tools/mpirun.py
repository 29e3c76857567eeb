"""Programs under mpirun, for the tests of this folder and of torch_binding."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

MPIRUN = os.environ.get("FASTHOROVOD_TEST_MPIRUN") or shutil.which("mpirun")
PLUGIN = "fasthorovod-mpi.so"
LIMIT_S = 120

# Open MPI refuses root, and more processes than there are cores, unless told otherwise.
ALLOWED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
# Each rank poses as a host of its own, so that data goes between them as between hosts.
OWN_HOST = 'FASTHOROVOD_HOST_IDENTITY=$$ exec "$@"'


def why_not(folder) -> str:
    """Why nothing can run here with the plug-in of that folder; "" if it can."""
    if MPIRUN is None:
        return "mpirun is not installed"
    if folder is None or not (Path(folder) / PLUGIN).exists():
        return f"{PLUGIN} (built where MPI is found) is missing"
    return ""


def environment(**settings) -> dict:
    """This environment without anybody's job in it."""
    names = ("FASTHOROVOD_", "HOROVOD_", "TORCHELASTIC_", "OMPI_", "PMI", "PMIX_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(names)}
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        kept.pop(name, None)
    return {**kept, **ALLOWED, "OMP_NUM_THREADS": "1", **settings}


def run(size, *command, apart=False, limit=LIMIT_S, **settings):
    """The command on so many ranks, ended; `apart`: as ranks of different hosts."""
    words = ["sh", "-c", OWN_HOST, "sh", *command] if apart else list(command)
    return subprocess.run(
        [MPIRUN, "-np", str(size), *words],
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
        stdin=subprocess.DEVNULL,
        env=environment(**settings),
    )
