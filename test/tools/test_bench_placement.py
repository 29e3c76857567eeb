"""fasthorovod-bench placement as its users start it. No figure decides: the machine may be busy."""

from __future__ import annotations

import json

import pytest
from test_bench import BENCH, alone

pytestmark = pytest.mark.skipif(BENCH is None, reason="fasthorovod-bench is not built")
VOID = 3


def placement(cache, *arguments):
    """The objects it prints, and what it says on standard error."""
    done = alone("placement", "--json", *arguments, XDG_CACHE_HOME=str(cache))
    assert done.returncode in (0, VOID), done.stderr
    assert (done.returncode == VOID) == ("void" in done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.slow
def test_predicts_and_measures_every_placement_and_the_gain_of_an_auxiliary(tmp_path):
    lines, _ = placement(tmp_path, "--rounds", "2", "--time", "20", "--auxiliaries", "1")
    figures = [line for line in lines if "measured_gb_s" in line and "setting" in line]
    settings = {line["setting"] for line in figures}
    assert {"alone on a core", "sharing a core"} <= settings
    assert len(figures) == 2 * len(settings)
    assert all(line["predicted_gb_s"] > 0 and line["measured_gb_s"] > 0 for line in figures)
    (result,) = (line for line in lines if "median_error" in line)
    assert result["figures"] == len(figures)
    gains = [line for line in lines if "auxiliaries" in line]
    assert [(line["tensors"], line["auxiliaries"]) for line in gains] == [
        ("arena", 0),
        ("arena", 1),
        ("ordinary", 0),
        ("ordinary", 1),
    ]
    assert all(line["measured_gb_s"] > 0 for line in gains)


@pytest.mark.slow
def test_keeps_what_it_measured_unless_others_disturbed_it(tmp_path):
    first, words = placement(tmp_path, "--model")
    assert first[0]["from"].startswith("measured now")
    kept = list((tmp_path / "fasthorovod").glob("*")) if "calibration is void" not in words else []
    assert [path.name.startswith("costs-") for path in kept] == ([True] if kept else [])
    if kept:
        second, _ = placement(tmp_path, "--model")
        assert second[0]["from"] == "measured before"
        assert second[0]["costs"] == first[0]["costs"]
        assert second[1]["model"] == first[1]["model"]


def test_bad_options_are_named():
    done = alone("placement", "--rounds", "0")
    assert done.returncode == 2
    assert "--rounds" in done.stderr
