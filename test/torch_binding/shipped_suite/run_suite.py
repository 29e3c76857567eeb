"""Runs the suite that ships in torch's wheel against this backend. Needs 'pip install expecttest'.

    run_suite.py --view gloo --ranks 3 --results build/suite.json

The suite knows backends by name. So the name "gloo" is given to this backend (--reference leaves it
to gloo, for comparison), and --view says which name decides what is skipped: "mpi" opens the
tests of all-to-all on a CPU. Ranks are forked, which takes seconds a test less than spawning.

Besides the suite's own checks, all ranks must end with the same exit status: the stock class looks
at rank 0's only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import unittest

_arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
_arguments.add_argument("--view", choices=["gloo", "mpi"], default="gloo")
_arguments.add_argument("--ranks", type=int, default=3)
_arguments.add_argument("--reference", action="store_true", help="run gloo itself")
_arguments.add_argument("--results", help="a file for one line of JSON a test")
_arguments.add_argument("--only", default="", help="run tests whose name has this in it")


def load(options):
    """The suite's class, prepared. Starts no thread: the ranks are forked from here."""
    os.environ.update(
        BACKEND=options.view,
        WORLD_SIZE=str(options.ranks),
        OMP_NUM_THREADS="1",
        INIT_METHOD=f"file://{tempfile.mkdtemp()}/meeting",
    )
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if not options.reference:
        import fasthorovod.distributed  # noqa: F401 - the check of torch's version, and exit
        from fasthorovod import _C

        dist.Backend.register_backend("gloo", _C.create_backend, extended_api=True, devices=["cpu"])
    import torch.testing._internal.distributed.distributed_test as suite

    if not options.reference:
        find = suite.get_profiling_event

        def find_ours(name, *rest, **more):
            """Events bear the backend's own name."""
            events = find(name.replace("gloo:", "fasthorovod:"), *rest, **more)
            for event in events:
                event.name = event.name.replace("fasthorovod:", "gloo:")
            return events

        suite.get_profiling_event = find_ours
    suite.BACKEND = "gloo"  # the view was for the decorators
    os.environ["BACKEND"] = "mpi"  # read at run time: sub-group tests then run with few ranks

    class Suite(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

        def _check_return_codes(self, function, elapsed):
            super()._check_return_codes(function, elapsed)
            codes = {process.exitcode for process in self.processes}
            if len(codes) > 1 and function not in self.skip_return_code_checks:
                raise AssertionError(f"the ranks ended with different exit statuses: {codes}")

    return Suite


class Recorder(unittest.TestResult):
    """Keeps name, outcome, seconds and the last lines of what went wrong."""

    def __init__(self, file):
        super().__init__()
        self.file = file
        self.counts = {"pass": 0, "skip": 0, "fail": 0}
        self.began = 0.0

    def startTest(self, test):  # noqa: N802 - unittest's name
        self.began = time.monotonic()

    def note(self, test, outcome, text=""):
        self.counts[outcome] += 1
        name = test.id().rsplit(".", 1)[-1]
        seconds = round(time.monotonic() - self.began, 2)
        tail = "\n".join(text.splitlines()[-12:])
        if outcome != "skip":
            print(f"{outcome} {name} {seconds} s {tail}", flush=True)
        if self.file:
            line = {"test": name, "outcome": outcome, "seconds": seconds, "text": tail}
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()

    def addSuccess(self, test):  # noqa: N802
        self.note(test, "pass")

    def addSkip(self, test, reason):  # noqa: N802
        self.note(test, "skip", reason)

    def addFailure(self, test, error):  # noqa: N802
        self.note(test, "fail", self._exc_info_to_string(error, test))

    addError = addFailure  # noqa: N815


def main():
    options = _arguments.parse_args()
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(load(options))
    chosen = unittest.TestSuite(test for test in tests if options.only in test.id())
    file = open(options.results, "w") if options.results else None  # noqa: SIM115 - until the end
    recorder = Recorder(file)
    chosen.run(recorder)
    print(recorder.counts)
    return 1 if recorder.counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
