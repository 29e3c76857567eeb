"""Ranks that mpirun starts: how they meet, and MPI as what carries their data."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path

import mpirun
import pytest

BUILT = Path(__file__).resolve().parents[2] / "build/release/tools/fasthorovod-bench"
BENCH = os.environ.get("FASTHOROVOD_BENCH") or (
    str(BUILT) if BUILT.exists() else shutil.which("fasthorovod-bench")
)
WHY_NOT = (
    mpirun.why_not(Path(BENCH).parent) if BENCH is not None else "fasthorovod-bench is not built"
)
pytestmark = pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)

SMALL = ["allreduce", "-b", "4K", "-e", "64K", "-n", "3", "-w", "1"]
MIXED = ["allreduce", "-b", "4", "-e", "9M", "-f", "7", "-n", "2", "-w", "1"]
MPI = {"FASTHOROVOD_DATA_PLANE": "mpi"}


def bench(size, *arguments, **settings):
    return mpirun.run(size, BENCH, *arguments, **settings)


def results(done):
    """The JSON lines of a run that ended well, all of them right."""
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines and all(line["wrong"] == 0 for line in lines), lines
    return lines


def on_one_rank(rank, assignment):
    """A shell command that sets a variable on one rank only, and runs what follows."""
    ours = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    return ["sh", "-c", f'[ "{ours}" != {rank} ] || export {assignment}; exec "$@"', "sh"]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_ranks_of_mpirun_meet(size):
    assert {line["ranks"] for line in results(bench(size, *SMALL, "--json"))} == {size}


def test_settings_of_ours_win():
    done = bench(2, *SMALL, FASTHOROVOD_RANK="0", FASTHOROVOD_SIZE="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ranks 1, hosts 1") == 2


def test_a_secret_file_on_all_ranks_is_used(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(secrets.token_hex(32))
    results(bench(2, *SMALL, "--json", FASTHOROVOD_SECRET_FILE=str(secret)))


def test_a_secret_file_on_some_ranks_is_refused():
    command = on_one_rank(1, "FASTHOROVOD_SECRET_FILE=/some/file")
    done = mpirun.run(3, *command, BENCH, *SMALL)
    assert done.returncode != 0
    assert "set on rank 1 and not on ranks 0, 2" in done.stderr


def test_a_secret_can_be_required():
    done = bench(2, *SMALL, FASTHOROVOD_REQUIRE_SECRET="1")
    assert done.returncode != 0
    assert "FASTHOROVOD_REQUIRE_SECRET is 1 on ranks 0, 1" in done.stderr


def test_without_the_plugin_it_says_what_to_do(tmp_path):
    alone = tmp_path / "fasthorovod-bench"
    shutil.copy(BENCH, alone)
    done = mpirun.run(2, str(alone), *SMALL)
    assert done.returncode != 0
    for words in ("fasthorovod-mpi.so is not in", "libopenmpi-dev", "fasthorovodrun"):
        assert words in done.stderr


@pytest.mark.parametrize("plane", ["tcp", "mpi"])
def test_a_killed_rank_ends_the_job(plane):
    """Rank 1 kills itself while the others go on for minutes."""
    kill = on_one_rank(1, "DOOMED=1")
    doomed = ["sh", "-c", '[ -z "$DOOMED" ] || (sleep 1; kill -9 $$) & exec "$@"', "sh"]
    long = ["allreduce", "-b", "1M", "-e", "1M", "-n", "1000000"]
    done = mpirun.run(3, *kill, *doomed, BENCH, *long, FASTHOROVOD_DATA_PLANE=plane)
    assert done.returncode != 0


@pytest.mark.parametrize("plane", ["tcp", "mpi"])
def test_ranks_that_disagree_end_the_job(plane):
    larger = ["sh", "-c", '[ -z "$LARGER" ] || set -- "$@" -b 8K; exec "$@"', "sh"]
    command = [*on_one_rank(1, "LARGER=1"), *larger, BENCH, "allreduce", "-e", "8K"]
    done = mpirun.run(3, *command, FASTHOROVOD_DATA_PLANE=plane)
    assert done.returncode != 0
    assert "rank 1" in done.stderr


def test_a_rank_that_never_starts_is_not_waited_for_longer_than_allowed():
    idle = ["sh", "-c", '[ -z "$IDLE" ] || exec sleep 20; exec "$@"', "sh"]
    command = [*on_one_rank(1, "IDLE=1"), *idle, BENCH, *SMALL]
    done = mpirun.run(2, *command, FASTHOROVOD_START_TIMEOUT="1")
    assert done.returncode != 0
    assert "was not initialised before the time limit" in done.stderr


@pytest.mark.parametrize("apart", [False, True], ids=["one-host", "apart"])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_mpi_carries_sizes_of_all_kinds(size, apart):
    results(bench(size, *MIXED, "--json", apart=apart, **MPI))


@pytest.mark.parametrize("kind", ["bool", "int8", "uint64", "bfloat16", "float16", "float64"])
def test_mpi_carries_every_type_and_reduction(kind):
    size = ["allreduce", "-b", "40000", "-e", "40000", "-n", "2", "-w", "1", "--json"]
    for operation in ("sum", "prod", "min", "max", "avg"):
        results(bench(3, *size, "-t", kind, "-o", operation, apart=True, **MPI))


@pytest.mark.parametrize("codec", ["fp16", "bf16", "twobit:0.25"])
def test_mpi_carries_every_codec(codec):
    results(bench(3, *SMALL, "--codec", codec, "--json", apart=True, **MPI))


def test_mpi_carries_the_named_door():
    arguments = [*MIXED, "--door", "named", "-t", "bfloat16", "-o", "avg", "--json"]
    results(bench(4, *arguments, apart=True, **MPI))


def test_worlds_follow_each_other_over_mpi():
    arguments = ["step", "--model", "resnet50", "--scale", "1000", "-n", "3", "--repetitions", "2"]
    done = bench(2, *arguments, apart=True, **MPI)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ranks_that_disagree_on_the_plane_do_not_start():
    command = on_one_rank(1, "FASTHOROVOD_DATA_PLANE=mpi")
    done = mpirun.run(3, *command, BENCH, *SMALL)
    assert done.returncode != 0
    assert "FASTHOROVOD_DATA_PLANE is tcp on ranks 0, 2 and mpi on rank 1" in done.stderr


def test_mpi_needs_an_mpi_launcher(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(secrets.token_hex(32))
    done = bench(
        2,
        *SMALL,
        FASTHOROVOD_RANK="0",
        FASTHOROVOD_SIZE="2",
        FASTHOROVOD_RENDEZVOUS="127.0.0.1:9",
        FASTHOROVOD_SECRET_FILE=str(secret),
        **MPI,
    )
    assert done.returncode != 0
    assert "needs ranks that an MPI launcher such as mpirun started" in done.stderr


def test_what_means_nothing_to_mpi_is_said():
    done = bench(2, *SMALL, "--json", FASTHOROVOD_AUX="1", FASTHOROVOD_FLOWS="8", **MPI)
    results(done)
    for name in ("FASTHOROVOD_AUX", "FASTHOROVOD_FLOWS"):
        assert f"{name} means nothing where FASTHOROVOD_DATA_PLANE is mpi" in done.stderr
