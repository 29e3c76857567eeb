"""fasthorovod-bench plan as its users start it."""

from __future__ import annotations

import json

import pytest
from launcher import needs_launcher
from test_bench import BENCH, alone, by_hand, free_port, launch

pytestmark = pytest.mark.skipif(BENCH is None, reason="fasthorovod-bench is not built")
SHORT = ["plan", "--seconds", "0.2"]


@pytest.fixture(name="apart")
def make_apart(secret):
    """Runs ranks of two hosts, so that they have flows, and gives rank 0's plan."""

    def run(*arguments, **settings):
        port = free_port()
        return by_hand(
            2,
            lambda rank: {
                "FASTHOROVOD_RANK": str(rank),
                "FASTHOROVOD_SIZE": "2",
                "FASTHOROVOD_RENDEZVOUS": f"127.0.0.1:{port}",
                "FASTHOROVOD_HOST_IDENTITY": f"host-{rank}",
            },
            [*SHORT, *arguments],
            secret,
            **settings,
        )[0]

    return run


def plan_of(text):
    """The JSON object, which follows lines of progress."""
    return json.loads(text.splitlines()[-1])


def choice(plan, what, rank=0):
    """The value of a choice, and what it is."""
    choices = plan["choices"] + plan["lanes"][rank]["choices"]
    [found] = [one for one in choices if one["choice"] == what]
    return found["value"], found["is"]


def test_flows_are_measured_unless_they_are_forced(apart):
    plan = plan_of(apart("--json"))
    assert (plan["ranks"], plan["hosts"]) == (2, 2)
    assert choice(plan, "flows of a lane") == ("up to 8 to a peer", "measured")
    assert [(flows["from"], flows["to"]) for flows in plan["flows"]] == [(0, 1), (1, 0)]
    for flows in plan["flows"]:
        assert flows["opened"] == 8
        assert 1 <= flows["in_use"] <= 8
        assert flows["is"] in ("measured", "default")
        assert bool(flows["tried"]) == (flows["is"] == "measured")


def test_what_is_forced_says_by_what(apart):
    plan = plan_of(
        apart(
            "--json",
            FASTHOROVOD_FLOWS="3",
            FASTHOROVOD_LANES="2",
            FASTHOROVOD_AUX="0",
            FASTHOROVOD_TCP_CONGESTION="reno",
        )
    )
    assert choice(plan, "lanes")[1] == "forced by FASTHOROVOD_LANES"
    assert choice(plan, "auxiliaries") == ("0", "forced by FASTHOROVOD_AUX")
    assert choice(plan, "flows of a lane") == ("3 to a peer", "forced by FASTHOROVOD_FLOWS")
    assert choice(plan, "congestion control") == ("reno", "forced by FASTHOROVOD_TCP_CONGESTION")
    for flows in plan["flows"]:
        assert (flows["opened"], flows["in_use"]) == (6, 6)
        assert flows["is"] == "forced by FASTHOROVOD_FLOWS"


def test_algorithms_are_predicted_and_measured_unless_forced(apart):
    measured = plan_of(apart("--json"))["allreduces"]
    assert [one["bytes"] for one in measured] == [1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26]
    assert {one["is"] for one in measured} == {"measured"}
    assert measured[-1]["used"] == "ring-allreduce"
    assert all(time > 0 for one in measured for time in one["predicted_ms"].values())
    forced = plan_of(apart("--json", FASTHOROVOD_ALLREDUCE="two-hop-allreduce"))["allreduces"]
    assert {one["used"] for one in forced} == {"two-hop-allreduce"}
    assert {one["is"] for one in forced} == {"forced by FASTHOROVOD_ALLREDUCE"}
    stated = plan_of(apart("--json", FASTHOROVOD_DETERMINISTIC="1"))["allreduces"]
    assert {one["is"] for one in stated} == {"default"}


def test_each_rank_tells_its_own(apart):
    text = apart(FASTHOROVOD_FLOWS="2")
    table = [line.split() for line in text.splitlines() if line.startswith(" ")]
    assert ["0", "1", "2", "2"] in [row[:4] for row in table]
    assert ["1", "0", "2", "2"] in [row[:4] for row in table]
    assert [row[0] for row in table[-4:]] == ["4096", "65536", "1048576", "16777216"]
    assert "calibrating" in text


@needs_launcher
def test_ranks_of_one_host_have_no_flows():
    done = launch(2, *SHORT, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout.removeprefix("[0]<stdout>:"))
    assert plan["flows"] == []
    assert [lane["rank"] for lane in plan["lanes"]] == [0, 1]
    assert "calibrating" in done.stderr


def test_a_world_of_one_has_a_plan():
    done = alone(*SHORT)
    assert done.returncode == 0, done.stderr
    assert "ranks 1, hosts 1" in done.stdout


def test_options_of_others_are_refused():
    assert alone("plan", "--sizes", "4K").returncode == 2
