"""The parts of the demo that need neither ranks nor torch: data, progress, measuring, report."""

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DEMO = Path(__file__).resolve().parents[2] / "tools" / "demo"
sys.path.insert(0, str(DEMO))

import data  # noqa: E402
import measure  # noqa: E402
import progress  # noqa: E402
import report  # noqa: E402


def write_idx(path, values, magic):
    """An idx file as the data set's package holds them."""
    header = np.array([magic, *values.shape], dtype=">i4").tobytes()
    path.write_bytes(gzip.compress(header + values.astype(np.uint8).tobytes()))


def write_split(folder, images=6, labels=6):
    write_idx(folder / "t10k-images-idx3-ubyte.gz", np.full((images, 28, 28), 255), 2051)
    write_idx(folder / "t10k-labels-idx1-ubyte.gz", np.arange(labels), 2049)


def test_split_reads_images_and_labels(tmp_path):
    write_split(tmp_path)
    images, labels = data.Split("t10k", tmp_path).batch(np.array([4, 1]))
    assert images.shape == (2, 1, 28, 28)
    assert images.dtype == np.float32
    assert images[0, 0, 0, 0] == pytest.approx((1 - 0.2860) / 0.3530)
    assert labels.tolist() == [4, 1]


def test_missing_data_set_says_what_to_type(tmp_path):
    with pytest.raises(data.DataError, match="apt install dataset-fashion-mnist"):
        data.Split("t10k", tmp_path)


def test_truncated_file_is_refused(tmp_path):
    write_split(tmp_path)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b nothing")
    with pytest.raises(data.DataError, match="cannot be read"):
        data.Split("t10k", tmp_path)


def test_wrong_magic_is_refused(tmp_path):
    write_split(tmp_path)
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", np.arange(6), 2050)
    with pytest.raises(data.DataError, match="not the idx file"):
        data.Split("t10k", tmp_path)


def test_images_without_labels_are_refused(tmp_path):
    write_split(tmp_path, images=6, labels=5)
    with pytest.raises(data.DataError, match="6 images for 5 labels"):
        data.Split("t10k", tmp_path)


def test_shards_of_an_epoch_do_not_overlap_and_epochs_differ():
    shards = [data.Shard(length=103, rank=rank, size=4, batch=5, seed=1) for rank in range(4)]
    steps = shards[0].steps_per_epoch
    assert steps == 5
    epoch = [shard.rows(step) for step in range(steps) for shard in shards]
    seen = np.concatenate(epoch)
    assert len(seen) == len(set(seen.tolist())) == 100
    again = [shard.rows(steps + step) for step in range(steps) for shard in shards]
    assert not np.array_equal(seen, np.concatenate(again))


def test_progress_prints_lines_where_there_is_no_terminal():
    out = io.StringIO()
    shown = progress.Progress(total=10, shown=True, out=out)
    shown.update(3, "too early")
    shown.update(10, "loss 0.5")
    shown.say("epoch 1 done")
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("[########################] 10/10  loss 0.5")
    assert "\r" not in out.getvalue()


def test_progress_of_other_ranks_is_silent():
    out = io.StringIO()
    hidden = progress.Progress(total=1, shown=False, out=out)
    hidden.update(1, "x")
    hidden.say("y")
    assert out.getvalue() == ""


def test_clock_and_bar():
    assert progress.clock(65.2) == "1:05"
    assert progress.bar(1, 2) == "[############............]"


def test_loopback_counter_reads_the_received_bytes():
    table = "Inter-| Receive\n face |bytes\n  eth0: 7 1\n    lo: 1234 5 0\n"
    assert measure.received_bytes("lo", table) == 1234
    assert measure.received_bytes("lo", "no such device\n") == 0


def fake_run(name, seconds, wire_bytes, accuracy=0.9):
    return {
        "name": name,
        "accuracy": accuracy,
        "global_batch": 256,
        "block_steps": [10, 10, 5],
        "block_seconds": [10 * seconds, 10 * seconds, 50 * seconds],
        "block_wire_bytes": [wire_bytes * 10, wire_bytes * 10, wire_bytes * 5],
        "losses": [1.0] * 25,
        "replicas_differ_by": 0.0,
        "differs_by": 1e-7,
    }


def write_results(folder, accuracy, delayed=0.905):
    idle = fake_run("no communication", 0.010, 0)
    ours = fake_run("fasthorovod", 0.016, 5_000_000, accuracy)
    late = fake_run("fasthorovod, OD-SGD", 0.012, 5_000_000, delayed)
    gloo = fake_run("gloo", 0.020, 5_000_000)
    other = fake_run("fasthorovod, 2 auxiliaries a rank", 0.014, 5_000_000)
    own_idle = fake_run("no communication", 0.011, 0)
    jobs = {
        "train": [ours, idle],
        "train-odsgd": [late, idle],
        "compare": [ours, gloo, idle],
        "auxiliaries": [other, own_idle],
        "link": [ours, gloo, idle],
    }
    for name, runs in jobs.items():
        kind = "train" if name.startswith("train") else "compare"
        content = {"job": kind, "ranks": 4, "seed": 1, "runs": runs}
        if name == "link":
            content["link"] = "200mbit"
        (folder / f"{name}.json").write_text(json.dumps(content))


def read_results(folder):
    """All jobs, and the comparison among them."""
    jobs = report.read_jobs(folder)
    return jobs, next(job for job in jobs if job["file"] == "compare")


def run_report(folder):
    command = [sys.executable, str(DEMO / "report.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_rows_hold_medians_bytes_and_exposed_time(tmp_path):
    write_results(tmp_path, 0.91)
    figures = report.rows(*read_results(tmp_path))
    full, delayed, ours, gloo, other, linked, _gloo, _alone = figures
    assert full["accuracy"] == 0.91
    assert delayed["run"] == "fasthorovod, OD-SGD, full (25 steps)"
    assert ours["exposed_seconds_per_step"] == pytest.approx(0.006)
    assert gloo["images_per_second"] == pytest.approx(256 / 0.020)
    assert gloo["wire_bytes_per_step"] == 5_000_000
    assert other["run"] == "fasthorovod, 2 auxiliaries a rank, 25 steps"
    assert other["exposed_seconds_per_step"] == pytest.approx(0.003)
    assert linked["run"] == "fasthorovod, 25 steps over 200mbit"


@pytest.mark.parametrize(("accuracy", "status"), [(0.91, 0), (0.85, 1)])
def test_report_judges_the_accuracy(tmp_path, accuracy, status):
    write_results(tmp_path, accuracy)
    done = run_report(tmp_path)
    assert done.returncode == status, done.stderr
    assert "| fasthorovod, full (25 steps) " in done.stdout
    assert ("of fasthorovod reached 85.00 %, but 89.00 %" in done.stderr) == bool(status)
    assert len(json.loads((tmp_path / "results.json").read_text())["rows"]) == 8


@pytest.mark.parametrize(("delayed", "status"), [(0.901, 0), (0.899, 1)])
def test_a_delayed_rule_may_lose_a_point(tmp_path, delayed, status):
    write_results(tmp_path, 0.91, delayed)
    done = run_report(tmp_path)
    assert done.returncode == status, done.stderr
    assert ("OD-SGD reached 89.90 %, but 90.00 %" in done.stderr) == bool(status)


def test_a_comparison_alone_is_reported(tmp_path):
    write_results(tmp_path, 0.91)
    for name in ("train", "train-odsgd", "auxiliaries", "link"):
        (tmp_path / f"{name}.json").unlink()
    done = run_report(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "full" not in done.stdout
    assert "no weight of gloo differs from fasthorovod by more than 1.0e-07" in done.stdout
    assert "equal to the bit" in done.stdout


def test_replicas_that_differ_are_a_problem(tmp_path):
    write_results(tmp_path, 0.91)
    jobs, comparison = read_results(tmp_path)
    comparison["runs"][0]["replicas_differ_by"] = 0.5
    found = report.problems(report.rows(jobs, comparison), jobs, 89)
    assert found == ["fasthorovod: the ranks' weights differ by up to 5.0e-01"]
    assert not any("bit" in sentence for sentence in report.parity(comparison))


def test_a_run_that_moved_nothing_is_a_problem(tmp_path):
    write_results(tmp_path, 0.91)
    jobs, comparison = read_results(tmp_path)
    comparison["runs"][1]["block_wire_bytes"] = [0, 0, 0]
    found = report.problems(report.rows(jobs, comparison), jobs, 89)
    assert found == ["gloo, 25 steps: no bytes were counted on the network device"]
