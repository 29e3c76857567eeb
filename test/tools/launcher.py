"""How the launcher is started and watched by its tests.

The program is the one FASTHOROVODRUN names, else the release build's, else the one on PATH.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

BUILT = Path(__file__).resolve().parents[2] / "build/release/tools/fasthorovodrun"
PROGRAM = os.environ.get("FASTHOROVODRUN") or (
    str(BUILT) if BUILT.exists() else shutil.which("fasthorovodrun")
)
needs_launcher = pytest.mark.skipif(PROGRAM is None, reason="fasthorovodrun is not built")

LIMIT_S = 30


def run(*arguments, timeout=LIMIT_S, **keywords):
    keywords.setdefault("text", True)
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, timeout=timeout, check=False, **keywords
    )


def run_in_bash(code, **keywords):
    return subprocess.run(
        ["bash", "-c", code],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        **keywords,
    )


def python(code):
    return [sys.executable, "-c", code]


def shell(code):
    return ["bash", "-c", code]


@contextlib.contextmanager
def started(*arguments, **keywords):
    """The launcher in the background; killed at the end if it still runs."""
    keywords.setdefault("stdout", subprocess.PIPE)
    keywords.setdefault("stderr", subprocess.PIPE)
    process = subprocess.Popen([PROGRAM, *arguments], **keywords)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


def wait_until(condition, limit_s):
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def all_gone(pids, limit_s):
    return wait_until(lambda: not any(map(is_alive, pids)), limit_s)


def read_pids(folder, count):
    """The process ids that workers wrote into files of `folder`, once there are `count`."""

    def written():
        texts = [path.read_text() for path in folder.glob("pid.*")]
        return [int(text) for text in texts if text.endswith("\n")]

    assert wait_until(lambda: len(written()) >= count, LIMIT_S)
    return written()


def write_pids(folder):
    """Shell: a child in the background, and the files read_pids wants."""
    return (
        f"sleep 100 & echo $! > {folder}/pid.child.$HOROVOD_RANK;"
        f"setsid sleep 100 & echo $! > {folder}/pid.away.$HOROVOD_RANK;"
        f"echo $$ > {folder}/pid.$HOROVOD_RANK;"
    )
