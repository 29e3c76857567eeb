"""Every check in worlds of one, two and three ranks; a world runs all of them in one go."""

import functools

import pytest
from world import asker, cases_of, checks_of, describe, expect_passed, run_checks

MODULES = [
    "checks_collectives",
    "checks_gradients",
    "checks_errors",
    "checks_life",
    "checks_state",
    "checks_optimizer",
    "checks_compression",
    "checks_delayed",
    "checks_process_sets",
    "checks_shared_memory",
]
TIME_LIMIT = 300  # seconds for one world; half a minute on two idle cores

CASES, NAMES = cases_of(MODULES)


@pytest.fixture(scope="module")
def world_of():
    """A world's reports, by size."""
    return asker(run_checks, MODULES, TIME_LIMIT)


@pytest.mark.parametrize(("size", "name"), CASES, ids=NAMES)
def test_check(world_of, size, name):
    expect_passed(world_of(size), name)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ends_well(world_of, size):
    reports = world_of(size)
    assert [report.status for report in reports] == [0] * size, describe(reports)


# The same in a world of three whose lanes all run in auxiliary processes.
WITH_AUXILIARIES = {"FASTHOROVOD_LANES": "2", "FASTHOROVOD_AUX": "2", "FASTHOROVOD_ARENA_MB": "128"}


@pytest.fixture(scope="module")
def world_with_auxiliaries():
    """Its reports."""
    run = functools.partial(run_checks, **WITH_AUXILIARIES)
    return functools.partial(asker(run, MODULES, TIME_LIMIT), 3)


@pytest.mark.parametrize("name", checks_of(MODULES, 3))
def test_check_with_auxiliaries(world_with_auxiliaries, name):
    expect_passed(world_with_auxiliaries(), name)


def test_ends_well_with_auxiliaries(world_with_auxiliaries):
    reports = world_with_auxiliaries()
    assert [report.status for report in reports] == [0] * 3, describe(reports)
