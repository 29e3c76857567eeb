"""fasthorovod-bench as its users start it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from launcher import PROGRAM as LAUNCHER
from launcher import needs_launcher

BUILT = Path(__file__).resolve().parents[2] / "build/release/tools/fasthorovod-bench"
BENCH = os.environ.get("FASTHOROVOD_BENCH") or (
    str(BUILT) if BUILT.exists() else shutil.which("fasthorovod-bench")
)
pytestmark = pytest.mark.skipif(BENCH is None, reason="fasthorovod-bench is not built")
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)
LIMIT_S = 60
SMALL = ["allreduce", "-b", "4K", "-e", "64K", "-n", "3", "-w", "1"]
# Sizes of SMALL, which steps by a factor of 4.
SIZES = [4096, 16384, 65536]


def clean_environment(**settings):
    """This environment without anybody's job in it."""
    names = ("FASTHOROVOD_", "HOROVOD_", "TORCHELASTIC_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(names)}
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        kept.pop(name, None)
    return {**kept, "OMP_NUM_THREADS": "1", **settings}


def alone(*arguments, **settings):
    """A world of one."""
    return subprocess.run(
        [BENCH, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=clean_environment(**settings),
    )


def launch(size, *arguments):
    """The benchmark under the launcher, ended."""
    return subprocess.run(
        [LAUNCHER, "-np", str(size), BENCH, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=clean_environment(),
    )


def launched(size, *arguments):
    """Standard output of rank 0 under the launcher."""
    done = launch(size, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    prefix = "[0]<stdout>:"
    assert all(line.startswith(prefix) for line in done.stdout.splitlines()), done.stdout
    return [line[len(prefix) :] for line in done.stdout.splitlines()]


def rows(lines):
    """The table without comments, as words."""
    return [line.split() for line in lines if not line.startswith("#")]


def by_hand(size, place, arguments, secret, **settings):
    """Outputs of all ranks, each of which ended well."""
    ranks = [
        subprocess.Popen(
            [BENCH, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean_environment(**place(rank), FASTHOROVOD_SECRET_FILE=secret, **settings),
        )
        for rank in range(size)
    ]
    try:
        outputs = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * size, outputs
    return outputs


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@needs_launcher
def test_the_table_has_the_columns_of_nccl_tests():
    lines = launched(2, *SMALL)
    heading = lines[1].lstrip("#").split()
    assert heading == ["size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong"]
    table = rows(lines)
    assert [row[:4] for row in table] == [[str(s), str(s // 4), "float32", "sum"] for s in SIZES]
    for row in table:
        size, time_us, algbw, busbw = (float(row[at]) for at in (0, 4, 5, 6))
        rounding = 0.005 / time_us  # of the time that is printed, relative
        assert algbw == pytest.approx(size / time_us / 1000, rel=rounding, abs=0.001)
        assert busbw == pytest.approx(algbw, abs=0.002)  # of two ranks
        assert row[7] == "0"
    assert any("Wrong values" in line and line.endswith("0 OK") for line in lines)


@needs_launcher
@pytest.mark.parametrize("kind", ["bool", "int8", "uint64", "bfloat16", "float16", "float64"])
def test_every_reduction_of_a_type_comes_out_right(kind):
    size = ["allreduce", "-b", "40000", "-e", "40000", "-n", "2", "-w", "1"]
    for operation in ("sum", "prod", "min", "max", "avg"):
        [row] = rows(launched(3, *size, "-t", kind, "-o", operation))
        assert row[2:4] == [kind, operation]
        assert row[7] == "0"


@needs_launcher
@pytest.mark.parametrize("codec", ["fp16", "bf16", "twobit:0.25"])
@pytest.mark.parametrize("reduction", ["sum", "avg"])
def test_every_codec_brings_what_it_can(codec, reduction):
    table = rows(launched(3, *SMALL, "--codec", codec, "-o", reduction))
    assert [(int(row[0]), row[7]) for row in table] == [(size, "0") for size in SIZES]


@needs_launcher
def test_the_named_door_works_as_well():
    table = rows(launched(3, *SMALL, "-t", "bfloat16", "-o", "avg", "--door", "named"))
    assert [row[7] for row in table] == ["0"] * len(SIZES)


@needs_launcher
@pytest.mark.parametrize("memory", ["ordinary", "arena"])
def test_json_lines_say_what_was_run(memory):
    lines = [json.loads(line) for line in launched(3, *SMALL, "--json", "--memory", memory)]
    assert [line["bytes"] for line in lines] == SIZES
    for line in lines:
        assert (line["ranks"], line["hosts"], line["wrong"]) == (3, 1, 0)
        assert (line["iterations"], line["repetitions"]) == (3, 1)
        assert line["memory"] == memory
        assert 0 < line["min_us"] <= line["time_us"]
        assert line["busbw"] == pytest.approx(line["algbw"] * 4 / 3)


@needs_launcher
def test_iterations_run_back_to_back(tmp_path):
    trace = tmp_path / "trace"
    words = ["allreduce", "--sizes", "4K,1M", "--back-to-back", "--trace", str(trace), "--json"]
    for pace in (["-n", "3"], ["--budget", "0.05"]):
        lines = [json.loads(line) for line in launched(2, *words, *pace)]
        assert [(line["bytes"], line["wrong"]) for line in lines] == [(4096, 0), (1 << 20, 0)]
        for line in lines:
            assert 0 < line["min_us"] <= line["time_us"] <= line["max_us"]
            assert line["cpu_us"] > 0
            assert line["iterations"] == 3 if "-n" in pace else line["iterations"] >= 2
        traced = len(trace.read_text().splitlines())
        assert traced == sum(line["iterations"] for line in lines)


@needs_launcher
def test_the_trace_has_a_line_for_each_iteration(tmp_path):
    trace = tmp_path / "trace"
    table = rows(launched(2, *SMALL, "--repetitions", "2", "--trace", str(trace)))
    lines = [line.split() for line in trace.read_text().splitlines()]
    assert [(int(size), int(number)) for size, number, _time in lines] == [
        (size, number) for size in SIZES for number in range(6)
    ]
    for row in table:
        times = sorted(float(time_us) for size, _, time_us in lines if size == row[0])
        assert times[0] - 0.005 <= float(row[4]) <= times[-1] + 0.005


def test_a_trace_goes_to_standard_output_or_nowhere():
    done = alone("allreduce", "-e", "4K", "-n", "2", "--trace", "-")
    assert [line.split()[:2] for line in done.stdout.splitlines()[3:5]] == [
        ["4096", "0"],
        ["4096", "1"],
    ]
    done = alone("allreduce", "--trace", "/nowhere/to/be/found")
    assert done.returncode == 1
    assert "/nowhere/to/be/found: No such file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["allreduce", "-b", "2"], "one float32 has 4 bytes"),
        (["allreduce", "-o", "xor"], "sum, prod, min, max, avg"),
        ([], "allreduce"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(arguments, words):
    done = alone(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr


def test_ranks_started_by_hand_meet(secret):
    port = free_port()

    def place(rank):
        return {
            "FASTHOROVOD_RANK": str(rank),
            "FASTHOROVOD_SIZE": "2",
            "FASTHOROVOD_RENDEZVOUS": f"127.0.0.1:{port}",
        }

    first, second = by_hand(2, place, SMALL, secret)
    assert len(rows(first.splitlines())) == len(SIZES)
    assert second == ""


def test_ranks_meet_by_the_variables_of_torchrun(secret):
    port = free_port()

    def place(rank):
        return {
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }

    first, second = by_hand(2, place, SMALL, secret)
    assert len(rows(first.splitlines())) == len(SIZES)
    assert second == ""


def test_several_ranks_of_torchrun_need_a_secret():
    done = alone("allreduce", RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    assert done.returncode == 1
    assert "FASTHOROVOD_SECRET_FILE is not set" in done.stderr


@needs_torch
def test_torchrun_starts_it_beside_gloo(secret, tmp_path):
    trace = tmp_path / "trace"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    arguments = ["--backend", "gloo", "--repetitions", "2", "--python", sys.executable]
    done = subprocess.run(
        [*command, "--no-python", BENCH, *SMALL, *arguments, "--trace", str(trace)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=clean_environment(FASTHOROVOD_SECRET_FILE=secret),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].split()[-2:] == ["backend", "ours/it"]
    table = rows(lines)
    assert [(row[0], row[8]) for row in table] == [
        (str(size), backend) for size in SIZES for backend in ("fasthorovod", "gloo")
    ]
    assert all(row[7] == "0" for row in table)
    assert all(float(row[9]) > 0 for row in table if row[8] == "gloo")
    # They take turns, one repetition each.
    turns = [line.split()[3] for line in trace.read_text().splitlines()[:12]]
    assert turns == (["fasthorovod"] * 3 + ["gloo"] * 3) * 2


@needs_launcher
@needs_torch
def test_gloo_averages_beside_it():
    operation = ["-e", "4K", "-n", "2", "-t", "float64", "-o", "avg", "--repetitions", "1"]
    lines = launched(3, "allreduce", *operation, "--backend", "gloo", "--python", sys.executable)
    assert [row[7] for row in rows(lines)] == ["0", "0"], lines


needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None
    or BENCH is None
    or not Path(BENCH).with_name("fasthorovod-bench-mpi").exists(),
    reason="mpirun, or fasthorovod-bench-mpi (built where MPI is found), is missing",
)


@needs_launcher
@needs_mpi
@pytest.mark.parametrize("operation", ["sum", "max"])
def test_mpi_runs_beside_it(operation):
    once = ["--repetitions", "1"]
    lines = launched(3, *SMALL, *once, "-t", "int32", "-o", operation, "--backend", "mpi")
    table = rows(lines)
    assert [(int(row[0]), row[7], row[8]) for row in table] == [
        (size, "0", name) for size in SIZES for name in ("fasthorovod", "mpi")
    ], lines


@needs_launcher
@needs_mpi
def test_an_mpirun_that_is_not_there_is_named():
    done = launch(2, *SMALL, "--backend", "mpi", "--mpirun", "no-such-mpirun")
    assert done.returncode != 0
    assert "cannot start no-such-mpirun" in done.stderr + done.stdout


def knows_torch(python):
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


@needs_launcher
def test_without_torch_it_says_what_to_install():
    bare = shutil.which("python3", path="/usr/bin:/bin")
    if bare is None or knows_torch(bare):
        pytest.skip("no Python without torch here")
    done = subprocess.run(
        [LAUNCHER, "-np", "2", BENCH, *SMALL, "--backend", "gloo", "--python", bare],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=clean_environment(),
    )
    assert done.returncode == 1
    assert f"{bare} -m pip install torch" in done.stderr


def test_a_python_that_is_not_there_is_named():
    done = alone("allreduce", "--backend", "gloo", "--python", "no-such-python")
    assert done.returncode == 1
    assert "no-such-python" in done.stderr and "--python" in done.stderr
