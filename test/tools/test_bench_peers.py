"""tools/bench_peers.sh: what it concludes from figures, and that a small comparison runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/peers"), str(ROOT / "test/netlab")]

from cases import CASES, KIB, MIB, case_named  # noqa: E402
from contest import Contest, Plan  # noqa: E402
from contestants import Programs, Task, contestants_of, processes_of, variant  # noqa: E402
from cut import busiest_flow, times_of  # noqa: E402
from hosts import missing  # noqa: E402
from limits import bus_factor, limit_s  # noqa: E402
from others import Others  # noqa: E402
from plot import plot  # noqa: E402
from process_set import ProcessSet, adopt_orphans, start_programs  # noqa: E402
from results import Results  # noqa: E402
from table import markdown, number, rows, size_text, summary_rows  # noqa: E402

LIMIT_S = 120


def compare(*words):
    """The comparison, run with these words."""
    return subprocess.run(
        [sys.executable, ROOT / "bench/peers/main.py", *words],
        text=True,
        capture_output=True,
        check=False,
        timeout=LIMIT_S,
    )


def add(results, peer, size, *milliseconds):
    """Repetitions of a peer at a size."""
    for repetition, time_ms in enumerate(milliseconds, 1):
        results.add(
            peer,
            {
                "bytes": size,
                "repetition": repetition,
                "time_us": time_ms * 1000,
                "cpu_us": 100.0,
                "wrong": 0,
            },
        )


def test_limits_of_links():
    assert limit_s(case_named("link-2"), 64 * MIB) == pytest.approx(0.562, abs=0.001)
    assert limit_s(case_named("link-4"), 64 * MIB) == pytest.approx(0.843, abs=0.001)
    # Two ranks of a host need no more of its link than one.
    assert limit_s(case_named("link-2x2"), 64 * MIB) == pytest.approx(0.562, abs=0.001)
    assert limit_s(case_named("flows-2"), MIB) == pytest.approx(0.00878, abs=0.00001)
    # 3 x 250 + 60 Mbit/s are left.
    assert limit_s(case_named("cut-2"), 64 * MIB) == pytest.approx(0.694, abs=0.001)
    assert limit_s(case_named("hosts-2"), 64 * MIB) == 0
    assert bus_factor(case_named("one-host-2")) == 1
    assert bus_factor(case_named("hosts-4")) == 1.5


def test_cases_have_names_of_their_own():
    assert len({case.name for case in CASES}) == len(CASES)
    with pytest.raises(ValueError, match="none of the cases: one-host-2"):
        case_named("two-hosts")


def test_a_peer_far_behind_skips_large_sizes():
    results = Results()
    add(results, "best", 16 * MIB, 10, 11, 12)
    add(results, "near", 16 * MIB, 33, 33, 33)
    add(results, "far", 16 * MIB, 34)
    sizes = (MIB, 16 * MIB, 64 * MIB, 256 * MIB)
    assert results.sizes_worth("far", sizes) == (MIB, 16 * MIB)
    assert 64 * MIB in results.sizes_worth("near", sizes)
    # Small sizes are measured however slow they are.
    add(results, "far", MIB, 1000)
    assert results.is_worth("far", 16 * MIB, MIB)


def test_the_best_peer_skips_nothing_however_far_ahead_ours_is():
    results = Results()
    add(results, "ours", 16 * MIB, 1, 1)
    add(results, "ours-arena", 16 * MIB, 1, 1)
    add(results, "openmpi", 16 * MIB, 10, 10)
    add(results, "gloo", 16 * MIB, 31, 31)
    sizes = (16 * MIB, 64 * MIB)
    assert results.sizes_worth("openmpi", sizes) == sizes
    assert results.sizes_worth("gloo", sizes) == ()


def test_a_peer_far_behind_is_not_measured_over_and_over():
    results = Results()
    add(results, "best", 16 * MIB, 10, 10, 10)
    add(results, "far", 16 * MIB, 40)
    assert results.is_worth("far", 16 * MIB, MIB)
    add(results, "far", 16 * MIB, 40)
    assert not results.is_worth("far", 16 * MIB, MIB)
    assert results.is_worth("best", 16 * MIB, MIB)


def test_a_size_that_failed_is_not_tried_again():
    results = Results()
    results.fail("mpich", 16 * MIB)
    results.fail("mpich", 64 * MIB)
    assert results.sizes_worth("mpich", (MIB, 16 * MIB, 64 * MIB)) == (MIB,)
    assert results.sizes_worth("ours", (MIB, 16 * MIB)) == (MIB, 16 * MIB)


def test_ratios_are_of_the_same_repetition():
    results = Results()
    add(results, "ours", MIB, 10, 100, 12)
    add(results, "gloo", MIB, 20, 200, 6)
    assert results.ratio("ours", "gloo", MIB) == 0.5


def test_the_table_has_every_figure():
    results = Results()
    add(results, "ours", 64 * MIB, 570, 560, 580)
    case = case_named("link-2")
    [row] = rows(case, "cubic", results)
    assert row[:5] == ("link-2 cubic", "64 MiB", "ours", "570", "560 to 580")
    assert float(row[5]) == pytest.approx(64 * MIB / 0.570 / 1e9, rel=0.01)
    assert float(row[7]) == pytest.approx(100 / 64, rel=0.01)
    assert row[8] == "98.6 %"
    text = markdown(("a", "b"), [("1", "22")])
    assert text.splitlines() == ["| a | b  |", "|---|----|", "| 1 | 22 |"]


def test_the_summary_names_the_best_peer_and_not_a_variant_of_ours():
    results = Results()
    add(results, "ours", MIB, 10)
    add(results, "ours-aux", MIB, 5)
    add(results, "gloo", MIB, 30)
    add(results, "openmpi", MIB, 20)
    [row] = summary_rows(case_named("hosts-2"), "bbr", results)
    assert row[1:6] == ("1 MiB", "10", "openmpi", "20", "0.50")


def test_numbers_and_sizes_are_short():
    assert [number(x) for x in (0.0012345, 1.234, 56.78, 2345.6)] == [
        "0.00123",
        "1.23",
        "56.8",
        "2346",
    ]
    assert [size_text(x) for x in (4 * KIB, MIB, 256 * MIB)] == ["4 KiB", "1 MiB", "256 MiB"]


LISTED = """ESTAB 0 0 10.77.0.1:29500 10.77.0.2:41000
\t cubic wscale:10,10 bytes_sent:5000 bytes_acked:1
ESTAB 0 0 10.77.0.1:40002 10.77.0.3:29500
\t cubic wscale:10,10 bytes_sent:900000 bytes_acked:1
ESTAB 0 0 10.77.0.1:40004 10.77.0.3:29500
\t cubic rto:200 bytes_received:99999999
"""


def test_the_busiest_flow_is_cut():
    assert busiest_flow(LISTED, "10.77.0.1") == ("10.77.0.3", 40002, 29500)
    with pytest.raises(ValueError, match="has sent anything"):
        busiest_flow(LISTED, "10.77.0.9")


def test_times_round_the_cut_leave_out_what_it_hit():
    assert times_of([9, 1, 2, 3, 99, 5, 6, 7]) == (2, 6)
    with pytest.raises(ValueError, match="2 iterations"):
        times_of([1, 2])


def commands(name, peer, **more):
    """The command lines of a peer in a case."""
    case = case_named(name)
    [contestant] = [each for each in contestants_of(case, [peer]) if each.name == peer]
    programs = Programs("bench", Path("/built"), Path("/secret"), Path("/folder"))
    places = [f"10.77.0.{host + 1}" for host in range(case.hosts)]
    task = Task((KIB, MIB), **more)
    return processes_of(case, contestant, task, programs, places)


def test_ours_runs_on_every_host():
    processes = commands("link-2x2", "ours")
    assert [process.host for process in processes] == [0, 0, 1, 1]
    assert [process.environment["FASTHOROVOD_RANK"] for process in processes] == list("0123")
    assert "1024,1048576" in processes[0].command
    through_aux = commands("hosts-2", "ours-aux-arena")[0]
    assert through_aux.environment["FASTHOROVOD_AUX"] == "2"
    assert through_aux.command[-2:] == ["--memory", "arena"]


def test_mpi_does_not_take_the_machines_memory_for_a_network():
    [mpich] = commands("hosts-2", "mpich")
    assert mpich.environment["UCX_TLS"] == "tcp,self"
    [openmpi] = commands("hosts-4", "openmpi-x4")
    assert openmpi.command[openmpi.command.index("btl") + 1] == "tcp,self"
    assert openmpi.command[openmpi.command.index("btl_tcp_links") + 1] == "4"
    [alone] = commands("one-host-2", "openmpi")
    assert "btl" not in alone.command


def test_peers_are_chosen():
    def names(case, *chosen):
        return [each.name for each in contestants_of(case_named(case), list(chosen))]

    assert names("one-host-2") == ["ours", "ours-arena", "gloo", "gloo-x4", "openmpi", "mpich"]
    ours = [name for name in names("hosts-2") if name.startswith("ours")]
    assert ours == ["ours", "ours-arena", "ours-aux", "ours-aux-arena"]
    assert names("link-2") == ["ours", "gloo", "gloo-x4", "openmpi", "openmpi-x4", "mpich"]
    assert names("cut-2") == ["ours", "gloo-x4"]
    assert names("cut-2", "ours-aux", "openmpi-x4") == ["ours-aux", "openmpi-x4"]
    assert names("one-host-4", "openmpi-x4") == []
    with pytest.raises(ValueError, match="none of the peers"):
        contestants_of(CASES[0], ["nccl"])


def test_a_variant_has_its_own_program_and_settings():
    other = variant(["two", "FASTHOROVOD_LANES=2", "BENCH=/other", "ARGUMENTS=--door named"])
    assert (other.name, other.program) == ("ours-two", "/other")
    assert (other.settings, other.arguments) == (
        {"FASTHOROVOD_LANES": "2"},
        ("--door", "named"),
    )
    with pytest.raises(ValueError, match="not KEY=VALUE"):
        variant(["two", "lanes"])


class Here:
    """A host that is this one."""

    def command(self, *words):
        return list(words)


def start_shells(*scripts):
    """What starts a set of shells."""

    class Process:
        def __init__(self, script):
            self.host, self.command, self.environment = 0, ["sh", "-c", script], {}

    processes = [Process(script) for script in scripts]
    return start_programs(processes, [Here()], dict(os.environ))


def process_set(*scripts):
    """A set of shells."""
    return ProcessSet(start_shells(*scripts))


def test_only_the_first_process_is_heard():
    with process_set("echo one; echo two", "echo three") as running:
        lines = [running.line(), running.line(), running.line()]
        running.finish()
    assert lines == ["one", "two", None]


def test_a_failure_is_told_with_its_words():
    with process_set("exit 0", "echo no such device >&2; exit 3") as running:
        assert running.line() is None
        with pytest.raises(RuntimeError, match=r"\[0, 3\]: no such device"):
            running.finish()


@pytest.fixture(name="adopting")
def adopt():
    """This process takes in orphans during a test."""
    adopt_orphans(True)
    yield
    adopt_orphans(False)


@pytest.mark.usefixtures("adopting")
def test_a_silent_set_is_ended_with_what_it_left_behind():
    script = "(setsid sleep 60 & echo $!); exec sleep 60"
    with process_set(script) as running, pytest.raises(TimeoutError, match="nothing for"):
        orphan = int(running.line())
        assert Path(f"/proc/{orphan}").exists()
        running.line(silence_s=0.1)
    assert not Path(f"/proc/{orphan}").exists()


def test_who_has_given_all_results_has_only_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr("contest.ENDING_S", 0.2)
    monkeypatch.setattr("contest.SILENCE_S", 60)

    class Place:
        def start(self, _contestant, _task):
            script = "sleep 0.5; echo first; sleep 0.5; echo last; exec sleep 60"
            return start_shells(script)

    lines = []
    contest = Contest(Place(), Plan(1, 0.1, 4096), tmp_path / "log", {})
    failure = contest.listen(None, Task((1024, 4096)), lines.append)
    assert lines == ["first", "last"]
    assert failure.startswith("nothing for 0.2 s")


def test_the_share_of_others_is_a_share():
    assert 0 <= Others().share() <= 1


def test_a_case_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    results = Results()
    add(results, "ours", MIB, 10)
    add(results, "gloo", 64 * MIB, 700)
    assert plot(tmp_path, case_named("link-2"), {"cubic": results, "bbr": Results()})
    assert (tmp_path / "link-2.png").stat().st_size > 1000
    assert not plot(tmp_path, case_named("link-4"), {"cubic": Results()})


BUILT = ROOT / "build/release/tools/fasthorovod-bench"
BENCH = os.environ.get("FASTHOROVOD_BENCH") or (str(BUILT) if BUILT.exists() else None)


@pytest.mark.skipif(bool(missing()), reason=missing() or "-")
@pytest.mark.skipif(BENCH is None, reason="fasthorovod-bench is not built")
def test_a_small_comparison_runs(tmp_path):
    """Without MPICH, whose ranks wait for each other's turns where others keep processors busy."""
    pytest.importorskip("torch")
    peers = ["ours", "gloo-x4"]
    if shutil.which("mpicxx.openmpi") and shutil.which("mpicxx.mpich"):
        build = [ROOT / "bench/peers/mpi_build.sh", tmp_path]
        subprocess.run(build, check=True, capture_output=True, timeout=LIMIT_S)
        peers += ["openmpi"]
    words = ["--quick", "--case", "flows-2", "--congestion", "reno", "--largest", "4096"]
    words += [word for peer in peers for word in ("--peer", peer)]
    words += ["--bench", BENCH, "--programs", str(tmp_path), "--out", str(tmp_path / "out")]
    done = compare(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout, done.stdout
    lines = [json.loads(line) for line in (tmp_path / "out/results.jsonl").open()]
    assert sorted((line["peer"], line["bytes"]) for line in lines) == [
        (peer, 4 * KIB) for peer in sorted(peers)
    ]
    assert all(line["wrong"] == 0 and line["cpu_us"] > 0 for line in lines)
    assert "| flows-2 reno | 4 KiB | ours" in (tmp_path / "out/table.md").read_text()


def test_wrong_words_are_refused():
    def refusal(*words):
        done = compare(*words)
        assert done.returncode != 0
        return done.stderr

    assert "none of the cases" in refusal("--case", "moon")
    assert "this kernel knows" in refusal("--congestion", "moon")
