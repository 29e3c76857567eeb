"""What the launcher gives its workers, what it keeps secret, what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from launcher import (
    LIMIT_S,
    PROGRAM,
    is_alive,
    needs_launcher,
    python,
    read_pids,
    run,
    run_in_bash,
    shell,
    started,
    wait_until,
)

pytestmark = needs_launcher

SEVEN_NAMES = [
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",
    "HOROVOD_CROSS_RANK",
    "HOROVOD_CROSS_SIZE",
    "HOROVOD_HOSTNAME",
]
NASTY = [
    "a b",
    "it's",
    '"',
    "\\",
    "$HOME",
    "`id`",
    ";",
    "&",
    "*",
    "!x",
    "^",
    "a\nb",
    "\t",
    "",
    "\U0001f600",
    "-np",
    "--",
]


def environments(result):
    """What `env`-like workers printed as JSON, by rank."""
    found = {}
    for line in result.stdout.splitlines():
        rank, text = re.fullmatch(r"\[(\d+)\]<stdout>:(.*)", line).groups()
        found[int(rank)] = json.loads(text)
    return [found[rank] for rank in sorted(found)]


PRINT_ENVIRONMENT = python("import json,os;print(json.dumps(dict(os.environ)))")


def test_ranks_get_horovods_seven_names():
    result = run("-np", "3", *PRINT_ENVIRONMENT)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    values = [[e[name] for name in SEVEN_NAMES] for e in environments(result)]
    assert values == [[str(r), "3", str(r), "3", "0", "1", "localhost"] for r in range(3)]


def test_ranks_get_what_they_need_to_meet():
    found = environments(run("-np", "2", "--gloo", *PRINT_ENVIRONMENT))
    assert [e["FASTHOROVOD_RANK"] for e in found] == ["0", "1"]
    for environment in found:
        assert environment["FASTHOROVOD_SIZE"] == "2"
        assert re.fullmatch(r"127\.0\.0\.1:\d+", environment["FASTHOROVOD_STORE"])
        assert re.fullmatch(r"/proc/\d+/fd/\d+", environment["FASTHOROVOD_SECRET_FILE"])
        assert re.fullmatch(r"[0-9a-f]{32}", environment["FASTHOROVOD_JOB"])
        assert environment["PYTHONUNBUFFERED"] == "1"
    assert found[0]["FASTHOROVOD_JOB"] == found[1]["FASTHOROVOD_JOB"]


def test_virtual_hosts_take_blocks_of_ranks():
    options = ["--virtual-rate", "200mbit", "--start-timeout", "7", "--network-interface", "lo"]
    result = run("-np", "4", "--virtual-hosts", "2", *options, *PRINT_ENVIRONMENT)
    found = environments(result)
    assert [e["HOROVOD_LOCAL_RANK"] for e in found] == ["0", "1", "0", "1"]
    assert [e["HOROVOD_CROSS_RANK"] for e in found] == ["0", "0", "1", "1"]
    hosts = ["virtual-0", "virtual-0", "virtual-1", "virtual-1"]
    assert [e["FASTHOROVOD_HOST_IDENTITY"] for e in found] == hosts
    assert {e["FASTHOROVOD_FLOW_RATE"] for e in found} == {"200mbit"}
    assert {e["FASTHOROVOD_START_TIMEOUT"] for e in found} == {"7"}
    assert {e["FASTHOROVOD_NETWORK_INTERFACE"] for e in found} == {"lo"}


@pytest.mark.parametrize(
    "hosts", ["localhost:2", "127.0.0.1:1,localhost:1", "[::1]:2", socket.gethostname() + ":9"]
)
def test_names_of_this_machine_are_one_host(hosts):
    found = environments(run("-np", "2", "-H", hosts, *PRINT_ENVIRONMENT))
    assert [(e["HOROVOD_LOCAL_RANK"], e["HOROVOD_LOCAL_SIZE"]) for e in found] == [
        ("0", "2"),
        ("1", "2"),
    ]


def test_arguments_arrive_byte_for_byte():
    result = run("-np", "2", *python("import json,sys;print(json.dumps(sys.argv[1:]))"), *NASTY)
    assert environments(result) == [NASTY, NASTY]


def test_environment_arrives_byte_for_byte(tmp_path):
    inherited = {**os.environb, b"WITH.DOT": b"1", b"EMPTY": b"", b"NOT_UTF8": b"\xff\xfe'\"$\n"}
    inherited[b"BASH_FUNC_f%%"] = b'() { echo "it\'s"\n}'
    inherited[b"LONG"] = b"x" * 100_000
    # Not through a shell, which drops names it cannot spell.
    code = (
        "import os,sys;a=open('/proc/self/environ','rb').read();"
        "open(sys.argv[1]+'/'+os.environ['HOROVOD_RANK'],'wb').write(a)"
    )
    result = run("-np", "2", *python(code), str(tmp_path), env=inherited)
    assert result.returncode == 0, result.stderr
    for rank in range(2):
        entries = (tmp_path / str(rank)).read_bytes().split(b"\0")
        for name, value in inherited.items():
            assert name == b"PYTHONUNBUFFERED" or name + b"=" + value in entries


def test_workers_read_nothing_and_keep_the_folder(tmp_path):
    result = run("-np", "1", *shell("cat; pwd"), input="text", cwd=tmp_path)
    assert result.stdout == f"[0]<stdout>:{tmp_path}\n"


def test_workers_get_the_usual_signal_dispositions():
    code = "import signal;print(signal.pthread_sigmask(0,[]))"
    assert run("-np", "1", *python(code)).stdout == "[0]<stdout>:set()\n"
    result = run("-np", "1", *shell("grep SigIgn /proc/self/status"))
    assert int(result.stdout.split()[-1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


# --- secret ----------------------------------------------------------------------------------

READ_SECRET = (
    "import os,sys;s=open(os.environ['FASTHOROVOD_SECRET_FILE']).read();"
    "open(sys.argv[1]+'/'+os.environ['HOROVOD_RANK'],'w').write(s);"
)


def test_the_secret_is_only_in_its_file(tmp_path):
    wait = READ_SECRET + "import time;time.sleep(60)"
    with started("-np", "2", "-v", *python(wait), str(tmp_path)) as launcher:
        both = [tmp_path / "0", tmp_path / "1"]
        assert wait_until(lambda: all(p.exists() and p.stat().st_size > 0 for p in both), LIMIT_S)
        secret = both[0].read_text().strip()
        assert re.fullmatch(r"[0-9a-f]{64}", secret)
        assert both[1].read_text().strip() == secret
        for folder in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                with contextlib.suppress(OSError):
                    assert secret.encode() not in (folder / name).read_bytes()
        launcher.terminate()
        output, errors = launcher.communicate(timeout=LIMIT_S)
    assert secret.encode() not in output + errors


def test_the_secret_cannot_be_changed():
    code = "import os;os.write(os.open(os.environ['FASTHOROVOD_SECRET_FILE'], os.O_RDWR), b'x')"
    result = run("-np", "1", *python(code))
    assert result.returncode == 1
    assert "PermissionError" in result.stderr


def test_values_of_the_environment_are_in_no_argument_list(tmp_path):
    environment = {**os.environ, "SOME_TOKEN": "token-8c1f"}
    code = f"echo $$ > {tmp_path}/pid.$HOROVOD_RANK; sleep 60"
    with started("-np", "2", *shell(code), env=environment):
        read_pids(tmp_path, 2)
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                text = path.read_bytes()
                assert b"token-8c1f" not in text
                assert b"FASTHOROVOD_RANK=" not in text


# --- bad options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "-np N"),
        (["-np", "0"], "'0'"),
        (["-np", "two"], "'two'"),
        (["-np", "2", "-H", "localhost"], "asks for 2 ranks, but the hosts have 1 slot"),
        (["-np", "3", "-H", "localhost:2"], "localhost: 2"),
        (["-np", "2", "-H", "localhost:lots"], "position 1"),
        (["-np", "2", "-H", "localhost:1,elsewhere:1"], "'elsewhere' is not this machine"),
        (["-np", "2", "-H", "::1"], "brackets"),
        (["-np", "2", "--virtual-hosts", "3"], "--virtual-hosts"),
        (["-np", "2", "--virtual-rate", "fast"], "--virtual-rate"),
        (["-np", "2", "--start-timeout", "soon"], "--start-timeout"),
        (["-np", "2", "--no-such-option"], "--no-such-option"),
        (["-np", "2", "--mpi"], "--mpi"),
        (["-np", "2", "--jsrun"], "--jsrun"),
    ],
)
def test_bad_options_start_nothing(options, words, tmp_path):
    result = run(*options, "touch", str(tmp_path / "ran"))
    assert result.returncode == 2
    assert result.stdout == ""
    assert re.fullmatch(r"fasthorovodrun: [^\n]+\n", result.stderr)
    assert words in result.stderr
    assert not (tmp_path / "ran").exists()


def test_the_build_check_survives_a_closed_pipe():
    assert "[X] TCP" in run("--check-build").stdout
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", run("--version").stdout)
    assert "Usage: fasthorovodrun" in run("--help").stdout
    result = run_in_bash(f"{PROGRAM} --check-build | head -1")
    assert result.stdout.startswith("FastHorovod v")
    assert result.stderr == ""


def test_good_jobs_leave_no_process():
    for _ in range(20):
        result = run("-np", "1", *shell("cat /proc/$PPID/task/$PPID/children"))
        assert result.returncode == 0
        pids = [int(word) for line in result.stdout.splitlines() for word in line[12:].split()]
        assert len(pids) == 2  # the keeper and the worker
        assert not any(map(is_alive, pids))


def test_a_small_limit_of_open_files_is_raised_or_told():
    launch = f"exec {PROGRAM} -np 16"
    result = run_in_bash(f"ulimit -Sn 40; {launch} bash -c 'ulimit -Sn'")
    assert result.returncode == 0
    assert {line.partition(":")[2] for line in result.stdout.splitlines()} == {"40"}
    result = run_in_bash(f"ulimit -n 64; {launch} true")
    assert result.returncode == 1
    assert result.stderr.startswith("fasthorovodrun: 16 ranks need 80 open files")
    assert len(result.stderr.splitlines()) == 1


def test_workers_inherit_no_descriptor():
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    result = run("-np", "1", *python("import os;print(os.listdir('/proc/self/fd'))"),
                 pass_fds=[writing])  # fmt: skip
    os.close(reading)
    os.close(writing)
    assert result.stdout == "[0]<stdout>:['0', '1', '2', '3']\n"  # 3 is the listing's own


def test_the_auxiliary_says_what_it_is():
    program = Path(PROGRAM).with_name("fasthorovod-aux")
    if not program.exists():
        pytest.skip("fasthorovod-aux is not beside the launcher")
    result = subprocess.run([program], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    result = subprocess.run(
        [program, "--build-id"], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert re.fullmatch(r"[0-9a-f]{16}\n", result.stdout)
