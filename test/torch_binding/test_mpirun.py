"""The same checks on ranks that mpirun starts, on one host, and as hosts with data by MPI."""

import functools
import importlib.util
import json
import sys
from pathlib import Path

import mpirun
import pytest
from world import HERE, RankReport, checks_of, describe, expect_passed, free_port

SIZE = 3
TIME_LIMIT = 300  # seconds for one world

HOROVOD = {
    "tcp": ["checks_life"],
    "mpi": ["checks_collectives", "checks_errors", "checks_life", "checks_process_sets"],
}
OF_ONE_HOST = "check_where_this_process_stands"
CASES = [
    (plane, name)
    for plane, modules in HOROVOD.items()
    for name in checks_of(modules, SIZE)
    if (plane, name) != ("mpi", OF_ONE_HOST)
]
C10D = ["checks_c10d_collectives", "checks_c10d_groups"]


def package_folder():
    spec = importlib.util.find_spec("fasthorovod")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


WHY_NOT = mpirun.why_not(package_folder())
pytestmark = pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)

# Each rank writes its output and its checks into files of its own; $0 is the folder.
PER_RANK = """
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
exec "$1" "$2" "$0/report.$rank" $3 >"$0/output.$rank" 2>&1
"""
# What programs set that use torch's own rendezvous under mpirun.
AS_TORCHRUN = """
export RANK=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} WORLD_SIZE=${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE}
"""


def text(path):
    return path.read_text(errors="replace") if path.exists() else ""


def run_world(runner, modules, folder, before="", apart=True, **settings):
    """The reports of the ranks that ran some modules' checks under mpirun."""
    command = ["sh", "-c", before + PER_RANK, str(folder), sys.executable]
    done = mpirun.run(
        SIZE,
        *command,
        str(HERE / runner),
        " ".join(modules),
        apart=apart,
        limit=TIME_LIMIT,
        FASTHOROVOD_START_TIMEOUT="30",
        **settings,
    )
    reports = []
    for rank in range(SIZE):
        lines = map(json.loads, text(folder / f"report.{rank}").splitlines())
        checks = {entry["check"]: entry["failure"] for entry in lines}
        output = text(folder / f"output.{rank}") + done.stderr
        reports.append(RankReport(done.returncode, output, checks))
    return reports


@pytest.fixture(scope="module")
def horovod_world(tmp_path_factory):
    """Reports at the door of Horovod, by what carries the data."""

    @functools.cache
    def run(plane):
        folder = tmp_path_factory.mktemp("horovod")
        return run_world(
            "run_checks.py",
            HOROVOD[plane],
            folder,
            apart=plane == "mpi",
            FASTHOROVOD_DATA_PLANE=plane,
            FASTHOROVOD_LOG_LEVEL="info",
        )

    return run


@pytest.fixture(scope="module")
def c10d_world(tmp_path_factory):
    """Reports at the door of torch.distributed."""

    @functools.cache
    def run():
        folder = tmp_path_factory.mktemp("c10d")
        return run_world(
            "run_c10d_checks.py",
            C10D,
            folder,
            before=AS_TORCHRUN,
            FASTHOROVOD_DATA_PLANE="mpi",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(free_port()),
        )

    return run


@pytest.mark.parametrize(("plane", "name"), CASES)
def test_check(horovod_world, plane, name):
    expect_passed(horovod_world(plane), name)


def test_rank_0_says_what_its_secret_is_worth(horovod_world):
    first, *others = horovod_world("tcp")
    words = "it keeps out who cannot read MPI's messages, and nobody else"
    assert words in first.output
    assert not any(words in report.output for report in others)


@pytest.mark.parametrize("plane", HOROVOD)
def test_ends_well(horovod_world, plane):
    reports = horovod_world(plane)
    assert [report.status for report in reports] == [0] * SIZE, describe(reports)


@pytest.mark.parametrize("name", checks_of(C10D, SIZE))
def test_check_of_torch_distributed(c10d_world, name):
    expect_passed(c10d_world(), name)


def test_torch_distributed_ends_well(c10d_world):
    reports = c10d_world()
    assert [report.status for report in reports] == [0] * SIZE, describe(reports)


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
@pytest.mark.parametrize("plane", HOROVOD)
def test_a_program_of_mpi4py(plane):
    program = [sys.executable, str(HERE / "beside_mpi4py.py")]
    done = mpirun.run(SIZE, *program, apart=plane == "mpi", FASTHOROVOD_DATA_PLANE=plane)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("beside mpi4py: ok") == SIZE
