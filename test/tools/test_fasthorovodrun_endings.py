"""How jobs end: exit codes, signals, and nothing that stays behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from launcher import (
    LIMIT_S,
    PROGRAM,
    all_gone,
    is_alive,
    needs_launcher,
    python,
    read_pids,
    run,
    shell,
    started,
    write_pids,
)

pytestmark = needs_launcher


@pytest.mark.parametrize(
    ("worker", "code"),
    [
        (python("raise ValueError"), 1),
        (shell("exit 3"), 3),
        (shell("exit 255"), 255),
        (shell("kill -SEGV $$"), 128 + signal.SIGSEGV),
        (shell("kill -KILL $$"), 128 + signal.SIGKILL),
    ],
)
@pytest.mark.parametrize("ranks", [1, 4])
def test_the_exit_code_is_the_workers(worker, code, ranks):
    result = run("-np", str(ranks), *worker)
    assert result.returncode == code
    (line,) = [text for text in result.stderr.splitlines() if text.startswith("fasthorovodrun")]
    assert re.match(r"fasthorovodrun: rank \d \(host localhost, pid \d+\) ", line)
    assert ("memory" in line) == (code == 128 + signal.SIGKILL)


def test_the_first_to_end_counts():
    code = "read -r < <(sleep 0.$((5 - HOROVOD_RANK))); exit $((10 + HOROVOD_RANK))"
    for _ in range(3):
        result = run("-np", "4", *shell(f"trap '' TERM; {code}"))
        assert result.returncode == 13
        assert "rank 3" in result.stderr


def test_a_killed_worker_comes_before_those_who_only_notice(tmp_path):
    """It has so many files that it counts as ended long after the others can see it go."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    code = (
        "import os,resource,signal,sys\n"
        "if os.environ['HOROVOD_RANK']=='0':\n"
        " most=min(resource.getrlimit(resource.RLIMIT_NOFILE)[1],200_000)\n"
        " resource.setrlimit(resource.RLIMIT_NOFILE,(most,most))\n"
        " os.open(sys.argv[1],os.O_WRONLY)\n"
        " for _ in range(most-20): os.dup(0)\n"
        " os.kill(os.getpid(),signal.SIGKILL)\n"
        "os.read(os.open(sys.argv[1],os.O_RDONLY),1)\n"
        "os._exit(1)\n"
    )
    for _ in range(5):
        result = run("-np", "2", *python(code), str(fifo))
        assert result.returncode == 128 + signal.SIGKILL, result.stderr
        assert result.stderr.startswith("fasthorovodrun: rank 0 "), result.stderr


def test_a_worker_may_leave_early():
    result = run("-np", "2", *shell("[ $HOROVOD_RANK = 0 ] || { sleep 0.3; echo late; }"))
    assert result.returncode == 0
    assert result.stdout == "[1]<stdout>:late\n"


def test_a_command_that_does_not_exist_is_127(tmp_path):
    result = run("-np", "2", "--output-filename", str(tmp_path / "x"), "no-such-command")
    assert result.returncode == 127
    assert result.stderr == "fasthorovodrun: command 'no-such-command' was not found\n"
    assert not (tmp_path / "x").exists()


def test_a_command_that_cannot_run_is_126(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    for command in (str(script), str(tmp_path)):
        result = run("-np", "2", command)
        assert result.returncode == 126
        assert len(result.stderr.splitlines()) == 1


def test_a_script_without_interpreter_is_told_by_name(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    result = run("-np", "2", str(script))
    assert result.returncode == 127
    assert f"cannot run '{script}'" in result.stderr


def test_the_others_and_their_children_end_with_the_first_failure(tmp_path):
    begin = time.monotonic()
    fail = f"if [ $HOROVOD_RANK = 2 ]; then sleep 0.2; exit 5; fi; {write_pids(tmp_path)} wait"
    result = run("-np", "4", *shell(fail))
    assert result.returncode == 5
    assert "rank 2" in result.stderr
    assert time.monotonic() - begin < 4
    assert all_gone(read_pids(tmp_path, 9), 0)


def test_what_ignores_sigterm_is_killed(tmp_path):
    begin = time.monotonic()
    # Rank 1 fails only when rank 0 has set its trap.
    until_ready = f"until [ -s {tmp_path}/pid.0 ]; do sleep 0.05; done"
    fail = (
        f"if [ $HOROVOD_RANK = 1 ]; then {until_ready}; exit 5; fi;"
        f"trap '' TERM; {write_pids(tmp_path)} wait"
    )
    result = run("-np", "2", *shell(fail))
    assert result.returncode == 5
    assert 4.5 < time.monotonic() - begin < 9
    assert all_gone(read_pids(tmp_path, 3), 0)


def test_children_end_with_a_good_job(tmp_path):
    result = run("-np", "2", *shell(write_pids(tmp_path)))
    assert result.returncode == 0
    assert all_gone(read_pids(tmp_path, 6), 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_everything(number, tmp_path):
    with started("-np", "2", *shell(write_pids(tmp_path) + "wait")) as launcher:
        pids = read_pids(tmp_path, 6)
        launcher.send_signal(number)
        assert launcher.wait(LIMIT_S) == 128 + number
        assert all_gone(pids, 0)


def test_a_second_signal_kills_at_once(tmp_path):
    begin = time.monotonic()
    with started("-np", "2", *shell("trap '' TERM;" + write_pids(tmp_path) + "wait")) as launcher:
        pids = read_pids(tmp_path, 6)
        launcher.send_signal(signal.SIGINT)
        time.sleep(0.3)
        launcher.send_signal(signal.SIGINT)
        assert launcher.wait(LIMIT_S) == 130
        assert all_gone(pids, 0)
    assert time.monotonic() - begin < 4


def test_a_killed_launcher_leaves_nothing(tmp_path):
    with started("-np", "2", *shell("trap '' TERM;" + write_pids(tmp_path) + "wait")) as launcher:
        pids = read_pids(tmp_path, 6)
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
        launcher.kill()
        assert all_gone([*pids, *map(int, children)], 5)


def test_a_stopped_worker_ends_too(tmp_path):
    begin = time.monotonic()
    with started("-np", "2", *shell(write_pids(tmp_path) + "kill -STOP $$")) as launcher:
        pids = read_pids(tmp_path, 6)
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(LIMIT_S) == 143
        assert all_gone(pids, 0)
    assert time.monotonic() - begin < 4.5


def test_children_of_the_shell_before_are_left_alone(tmp_path):
    code = f"sleep 20 & echo $! > {tmp_path}/pid.0; exec {PROGRAM} -np 1 true"
    subprocess.run(["bash", "-c", code], timeout=LIMIT_S, check=True)
    (pid,) = read_pids(tmp_path, 1)
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
