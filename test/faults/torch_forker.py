"""Starts ranks of torch jobs as forks of one process that has imported torch already, because the
import takes longer than a whole try.

Run as a program it is that process: it reads requests, a line of JSON each, from standard input,
answers in the same way, and ends with its input. It has one thread, so that a fork is safe.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path


class ForkedRank:
    """A rank, with what of subprocess.Popen the jobs use."""

    def __init__(self, forker: Forker, pid: int) -> None:
        self.pid = pid
        self._forker = forker
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative after a signal, or None."""
        if self._code is None:
            self._code = self._forker.ask({"poll": self.pid})
        return self._code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self._code is None:
            self._code = self._forker.ask({"wait": self.pid})
        return self._code


class Forker:
    """The process that forks, seen from those who want ranks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        atexit.register(self._process.stdin.close)

    def ask(self, request: dict) -> int | None:
        """One request and its answer."""
        with self._lock:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())

    def start(self, arguments: list[str], environment: dict, folder: str, errors: str):
        """A rank that runs torch_worker.main(arguments)."""
        request = {
            "arguments": arguments,
            "environment": environment,
            "folder": folder,
            "errors": errors,
        }
        return ForkedRank(self, self.ask({"start": request}))


_forker: list[Forker] = []
_forker_lock = threading.Lock()


def forker() -> Forker:
    """The one of this process, started when first asked for."""
    with _forker_lock:
        if not _forker:
            _forker.append(Forker())
        return _forker[0]


# --- in the process that forks ---


def run_rank(request: dict) -> None:
    """The life of a fork."""
    import torch_worker

    os.setsid()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    errors = os.open(request["errors"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    code = 3
    try:
        code = torch_worker.main(request["arguments"])
    except SystemExit as end:  # of a child of this rank
        code = int(end.code or 0)
    except BaseException:  # whatever it is, it must not reach the requests below
        sys.excepthook(*sys.exc_info())
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)


def code_of(pid: int, flags: int) -> int | None:
    """The exit code of a child, None while it runs."""
    ended, status = os.waitpid(pid, flags)
    return os.waitstatus_to_exitcode(status) if ended else None


def serve() -> None:
    """Answers requests until there are no more."""
    import fasthorovod.distributed
    import fasthorovod.torch  # noqa: F401 - what ranks need, imported once
    import torch.utils.data  # noqa: F401
    import torch_worker  # noqa: F401

    for line in sys.stdin:
        [(verb, argument)] = json.loads(line).items()
        if verb == "start":
            answer = os.fork()
            if answer == 0:
                run_rank(argument)
        else:
            answer = code_of(argument, os.WNOHANG if verb == "poll" else 0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    serve()
