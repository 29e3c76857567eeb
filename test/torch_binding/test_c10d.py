"""Every check of the torch.distributed door in worlds of one, two and three ranks."""

import importlib.metadata
import sys
import textwrap

import pytest
from world import (
    HERE,
    asker,
    cases_of,
    describe,
    expect_passed,
    run_c10d_checks,
    run_ranks,
    torch_environment,
)

MODULES = [
    "checks_c10d_collectives",
    "checks_c10d_sparse",
    "checks_c10d_errors",
    "checks_c10d_groups",
    "checks_c10d_life",
]
TIME_LIMIT = 400  # seconds for one world; less than a minute on two idle cores

CASES, NAMES = cases_of(MODULES)


@pytest.fixture(scope="module")
def world_of():
    """A world's reports, by size."""
    return asker(run_c10d_checks, MODULES, TIME_LIMIT)


@pytest.mark.parametrize(("size", "name"), CASES, ids=NAMES)
def test_check(world_of, size, name):
    expect_passed(world_of(size), name)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ends_well(world_of, size):
    reports = world_of(size)
    assert [report.status for report in reports] == [0] * size, describe(reports)


def torchrun(ranks, script, *arguments, timeout=200, **settings):
    """The one report of a torchrun job."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--local-addr=127.0.0.1",  # else workers look up this host's name, which may be unknown
        f"--nproc-per-node={ranks}",
        str(HERE / script),
        *arguments,
    ]
    [report] = run_ranks(1, command, timeout, environment_of=torch_environment, **settings)
    return report


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_ddp_under_torchrun(ranks):
    """Parity with one process, replicas equal to the bit, and a second life in one process."""
    report = torchrun(ranks, "train_ddp.py")
    assert report.status == 0, report.output
    assert report.output.count("replicas are equal") == ranks, report.output


@pytest.mark.slow
@pytest.mark.parametrize("what", ["fsdp", "compile", "horovod_first", "file_store"])
def test_under_torchrun(what):
    report = torchrun(2, "train_more.py", what)
    assert report.status == 0, report.output
    assert report.output.count("done") == 2, report.output


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_meeting_again_after_failures(absent):
    command = [sys.executable, str(HERE / "meet_again.py"), str(absent)]
    reports = run_ranks(3, command, 90, environment_of=torch_environment)
    assert [report.status for report in reports] == [0, 0, 0], describe(reports)


def on_two_hosts(rank, *rest):
    """Ranks that share memory with every second one and meet the others over TCP."""
    return {**torch_environment(rank, *rest), "FASTHOROVOD_HOST_IDENTITY": str(rank % 2)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "environment_of", "settings"),
    [
        (2, torch_environment, {"FASTHOROVOD_LANES": "2", "FASTHOROVOD_AUX": "1"}),
        (3, on_two_hosts, {}),
    ],
    ids=["auxiliaries", "two_hosts"],
)
def test_a_hundred_worlds_leave_nothing(size, environment_of, settings):
    command = [sys.executable, str(HERE / "many_worlds.py"), "100"]
    settings = {**settings, "TORCH_FR_BUFFER_SIZE": "0"}
    reports = run_ranks(size, command, 300, environment_of=environment_of, **settings)
    assert [report.status for report in reports] == [0] * size, describe(reports)


def in_world_of_two(text, **settings):
    command = [sys.executable, "-c", textwrap.dedent(text)]
    return run_ranks(2, command, 60, environment_of=torch_environment, **settings)


START = """
    import os
    import torch
    import torch.distributed as dist
    import fasthorovod.distributed
    dist.init_process_group("fasthorovod")
"""


def test_no_import_is_needed():
    points = importlib.metadata.entry_points(group="torch.distributed.backends")
    if "fasthorovod" not in {point.name for point in points}:
        pytest.skip("the package is not installed, only found")
    reports = in_world_of_two(START.replace("    import fasthorovod.distributed\n", ""))
    assert [report.status for report in reports] == [0, 0], describe(reports)


def test_a_secret_can_be_required():
    reports = in_world_of_two(START, FASTHOROVOD_REQUIRE_SECRET="1")
    assert all(report.status != 0 for report in reports)
    assert "FASTHOROVOD_SECRET_FILE" in reports[0].output


def test_a_made_secret_is_told():
    reports = in_world_of_two(START, FASTHOROVOD_LOG_LEVEL="info")
    assert [report.status for report in reports] == [0, 0], describe(reports)
    assert "rank 0 made a secret" in reports[0].output


def test_exit_without_destroy():
    text = START + "    work = dist.all_reduce(torch.ones(3), async_op=True)\n"
    reports = in_world_of_two(text + "    work.wait()\n")
    assert [report.status for report in reports] == [0, 0], describe(reports)


def test_a_lost_rank_is_named():
    text = START + (
        "    dist.barrier()\n"
        "    if dist.get_rank() == 1: os._exit(3)\n"
        "    try: dist.all_reduce(torch.ones(3))\n"
        "    except dist.DistBackendError as error: print('told:', error)\n"
    )
    reports = in_world_of_two(text)
    assert "told: peer lost" in reports[0].output and "rank 1" in reports[0].output, describe(
        reports
    )
