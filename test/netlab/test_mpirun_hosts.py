"""Ranks that mpirun starts on several hosts, with data by TCP and by MPI, checking every value."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import mpirun
import pytest
from hosts import REMOTE_SHELL, Hosts, missing, remote_shell_environment

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build/release/tools/fasthorovod-bench"
BENCH = os.environ.get("FASTHOROVOD_BENCH") or (
    str(BUILT) if BUILT.exists() else shutil.which("fasthorovod-bench")
)


def why_not() -> str:
    """Why these tests can not run; "" if they can."""
    if missing() or BENCH is None:
        return missing() or "fasthorovod-bench is not built"
    if mpirun.why_not(Path(BENCH).parent):
        return mpirun.why_not(Path(BENCH).parent)
    ask = [mpirun.MPIRUN, "--version"]
    version = subprocess.run(ask, check=True, capture_output=True, text=True).stdout
    # MPICH 4.0 over UCX's tcp often hangs in MPI_Finalize, whatever the program.
    return "" if "Open MPI" in version else "only Open MPI's options are known here"


WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)

RANKS = [2, 1, 1]  # of each host
LIMIT_S = 60
BENCH_WORDS = [
    BENCH,
    "allreduce",
    "-b",
    "4",
    "-e",
    "3M",
    "-f",
    "60",
    "-n",
    "3",
    "-w",
    "1",
    "--json",
]


@pytest.fixture(scope="module", name="hosts")
def make_hosts():
    with Hosts(len(RANKS)) as hosts:
        yield hosts


def spread_over(hosts) -> list[str]:
    """mpirun's words that put ranks on the hosts."""
    places = ",".join(f"{host.ipv4}:{count}" for host, count in zip(hosts, RANKS, strict=True))
    settings = {
        "plm": "rsh",
        "plm_rsh_agent": str(REMOTE_SHELL),
        "oob_tcp_if_include": "eth0",
        "btl_tcp_if_include": "eth0",
        "pml": "ob1",
        "btl": "tcp,vader,self",
    }
    options = [word for key, value in settings.items() for word in ("--mca", key, value)]
    return ["--host", places, *options]


@pytest.mark.parametrize("plane", ["tcp", "mpi"])
def test_ranks_of_uneven_hosts_sum_up(hosts, plane):
    command = [mpirun.MPIRUN, "-np", str(sum(RANKS)), *spread_over(hosts), *BENCH_WORDS]
    done = subprocess.run(
        hosts[0].command(*command),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        stdin=subprocess.DEVNULL,
        env=mpirun.environment(
            FASTHOROVOD_DATA_PLANE=plane,
            FASTHOROVOD_FLOWS="2",
            **remote_shell_environment(hosts),
        ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines and all(line["wrong"] == 0 for line in lines), lines
    assert {(line["ranks"], line["hosts"]) for line in lines} == {(sum(RANKS), len(RANKS))}
    assert (plane == "mpi") == ("FASTHOROVOD_FLOWS means nothing" in done.stderr), done.stderr
