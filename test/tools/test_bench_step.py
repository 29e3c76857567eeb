"""fasthorovod-bench step as its users start it."""

from __future__ import annotations

import json
import sys

import pytest
from launcher import needs_launcher
from test_bench import BENCH, alone, launched, needs_torch, rows

pytestmark = pytest.mark.skipif(BENCH is None, reason="fasthorovod-bench is not built")
SMALL = ["step", "--model", "resnet50", "--scale", "1000", "-n", "3", "-w", "1"]


@needs_launcher
def test_a_step_takes_its_computation_and_what_is_exposed():
    lines = launched(3, *SMALL, "--compute", "0,20", "--repetitions", "2", "--backend", "one-flow")
    assert "161 gradients" in lines[0]
    table = rows(lines)
    assert [(row[0], row[1]) for row in table] == [
        (compute, backend)
        for compute in ("0.00", "20.00")
        for backend in ("fasthorovod", "one-flow")
    ]
    for row in table:
        compute, step, exposed = (float(row[at]) for at in (0, 2, 3))
        assert step >= compute
        assert exposed == pytest.approx(step - compute, abs=0.011)
        assert row[-1] == "0"
    assert all(float(row[5]) > 0 for row in table if row[1] == "one-flow")


@needs_launcher
@needs_torch
@pytest.mark.parametrize("model", ["alexnet", "vgg16", "gpt2-small"])
def test_gloo_gets_the_same_gradients(model):
    arguments = ["--backend", "gloo", "--python", sys.executable, "--repetitions", "1", "--json"]
    lines = launched(
        2, "step", "--model", model, "--scale", "300", "-n", "2", "-w", "1", *arguments
    )
    ours, gloo = (json.loads(line) for line in lines)
    assert (ours["backend"], gloo["backend"]) == ("fasthorovod", "gloo")
    for row in (ours, gloo):
        assert (row["model"], row["scale"], row["ranks"], row["wrong"]) == (model, 300, 2, 0)
    assert gloo["time_by_ours"] > 0


@needs_launcher
def test_the_computation_is_found_that_leaves_so_much_exposed():
    arguments = ["--exposed", "50", "--backend", "one-flow", "--repetitions", "1"]
    ours, one_flow = rows(launched(2, *SMALL, *arguments))
    assert float(ours[0]) > 0
    assert ours[0] == one_flow[0]


def test_a_model_that_is_not_there_is_named():
    done = alone("step", "--model", "resnet51")
    assert done.returncode == 2
    assert "'resnet51' is none of alexnet, vgg16, resnet50, gpt2-small" in done.stderr
