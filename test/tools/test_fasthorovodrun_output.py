"""What workers print, through the launcher: whole lines, whole characters, at once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

import pytest
from launcher import (
    LIMIT_S,
    PROGRAM,
    needs_launcher,
    python,
    run,
    run_in_bash,
    shell,
    started,
)

pytestmark = needs_launcher


def test_lines_are_prefixed_by_stream():
    result = run("-np", "2", *shell("echo out $HOROVOD_RANK; echo err $HOROVOD_RANK >&2"))
    assert sorted(result.stdout.splitlines()) == ["[0]<stdout>:out 0", "[1]<stdout>:out 1"]
    assert sorted(result.stderr.splitlines()) == ["[0]<stderr>:err 0", "[1]<stderr>:err 1"]


def test_lines_stay_whole_when_both_streams_share_a_pipe():
    code = (
        "import os,sys\nr=os.environ['HOROVOD_RANK']\n"
        "for i in range(2000):\n"
        " print(r*100,flush=False);print(r*100,file=sys.stderr)\n"
    )
    command = [PROGRAM, "-np", "4", *python(code)]
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False
    )
    lines = result.stdout.decode().splitlines()
    assert len(lines) == 16_000
    assert all(re.fullmatch(r"\[(\d)\]<std(out|err)>:\1{100}", line) for line in lines)


def test_characters_of_several_bytes_stay_whole():
    text = "\u20ac" * 50_000  # 150 000 bytes: over every buffer's border
    code = f"import sys;sys.stdout.buffer.write(('x'+'\\u20ac'*{len(text)}).encode())"
    result = run("-np", "2", *python(code), text=False)
    for rank in range(2):
        prefix = f"[{rank}]<stdout>:".encode()
        pieces = [
            line.removeprefix(prefix)
            for line in result.stdout.split(b"\n")
            if line.startswith(prefix)
        ]
        assert b"".join(pieces).decode() == "x" + text
        assert all(piece.decode() and len(piece) <= 65_536 for piece in pieces)


def test_a_character_in_two_writes_stays_whole():
    code = (
        "import sys,time;w=sys.stdout.buffer;w.write(b'\\xe2\\x82');w.flush();"
        "time.sleep(0.1);w.write(b'\\xac\\n')"
    )
    assert run("-np", "1", *python(code)).stdout == "[0]<stdout>:\u20ac\n"


def test_bytes_that_are_no_text_pass_through():
    result = run("-np", "1", *shell(r"printf '\xff\x00\xfe\n'"), text=False)
    assert result.stdout == b"[0]<stdout>:\xff\x00\xfe\n"


def test_the_last_line_needs_no_end():
    result = run("-np", "1", *shell("echo one; printf two"))
    assert result.stdout == "[0]<stdout>:one\n[0]<stdout>:two\n"


def test_progress_bars_are_seen_while_they_run():
    with started("-np", "1", *shell(r"printf '10%%\r'; sleep 60")) as launcher:
        assert os.read(launcher.stdout.fileno(), 100) == b"[0]<stdout>:10%\r"


def test_python_output_is_not_held_back():
    with started(
        "-np", "1", *python("print('x',end='\\n');import time;time.sleep(60)")
    ) as launcher:
        assert os.read(launcher.stdout.fileno(), 100) == b"[0]<stdout>:x\n"


def test_a_slow_reader_loses_nothing():
    count = 200_000
    with started("-np", "2", "seq", str(count)) as launcher:
        time.sleep(0.5)
        output = launcher.stdout.read().decode().splitlines()
        assert launcher.wait(LIMIT_S) == 0
    for rank in range(2):
        prefix = f"[{rank}]<stdout>:"
        mine = [line.removeprefix(prefix) for line in output if line.startswith(prefix)]
        assert mine == [str(i) for i in range(1, count + 1)]


def test_a_reader_that_leaves_ends_the_job():
    command = f"{PROGRAM} -np 2 yes | head -1"
    result = run_in_bash("set -o pipefail;" + command)
    assert re.fullmatch(r"\[[01]\]<stdout>:y\n", result.stdout)
    assert result.returncode == 128 + signal.SIGPIPE
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full"])
def test_closed_outputs_harm_nobody(closed, tmp_path):
    command = f"{PROGRAM} -np 2 --output-filename {tmp_path} sh -c 'echo x; echo y >&2' {closed}"
    result = subprocess.run(["bash", "-c", command], timeout=LIMIT_S, check=False)
    assert result.returncode == 0
    assert (tmp_path / "rank.1/stdout").read_text() == "x\n"


def test_output_goes_into_files_too(tmp_path):
    folder = tmp_path / "new" / "logs"
    result = run("-np", "11", "--output-filename", str(folder),
                 *shell("echo o$HOROVOD_RANK; printf e >&2"))  # fmt: skip
    assert result.returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == [f"rank.{i:02}" for i in range(11)]
    assert (folder / "rank.03/stdout").read_text() == "o3\n"
    assert (folder / "rank.10/stderr").read_text() == "e"
    assert "[3]<stdout>:o3" in result.stdout.splitlines()


def test_one_rank_has_a_file_of_its_own(tmp_path):
    assert run("-np", "1", "--output-filename", str(tmp_path), "echo", "x").returncode == 0
    assert (tmp_path / "rank.0/stdout").read_text() == "x\n"


def test_verbose_says_where_everything_comes_from():
    environment = {**os.environ, "HOROVOD_START_TIMEOUT": "11"}
    result = run("-np", "1", "-v", "--virtual-rate", "1gbit", "echo", "a b", env=environment)
    assert "fasthorovodrun: command: echo 'a b'" in result.stderr
    assert "FASTHOROVOD_START_TIMEOUT=11 (from HOROVOD_START_TIMEOUT)" in result.stderr
    assert "FASTHOROVOD_FLOW_RATE=1gbit (from the command line)" in result.stderr
    assert "rank 0 on host localhost: local 0 of 1, cross 0 of 1" in result.stderr
