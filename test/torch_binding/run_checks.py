"""One rank of a world: runs the checks of some modules one after the other.

Each check has an engine of its own. So a rank that fails a check takes the others out of it (they
see it leave), and the next check starts clean.
"""

import faulthandler
import importlib
import inspect
import json
import sys
import time
import traceback


def find_checks(module_names, size):
    """(name, function) of every check that such a world can run, in the order of the files."""
    found = []
    for module_name in module_names:
        module = importlib.import_module(module_name)
        functions = [
            (name, function)
            for name, function in vars(module).items()
            if name.startswith("check_") and inspect.isfunction(function)
        ]
        found += [(n, f) for n, f in functions if size >= getattr(f, "smallest_world", 1)]
    return found


def run_check(function):
    """The empty text, or why it failed."""
    import fasthorovod.torch as hvd

    try:
        hvd.init()
        function()
        hvd.barrier()
    except Exception:
        return traceback.format_exc()
    finally:
        hvd.shutdown()
    return ""


def main():
    report_file, *module_names = sys.argv[1:]
    faulthandler.enable()
    import fasthorovod.torch as hvd

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    hvd.shutdown()
    with open(report_file, "w", buffering=1) as report:
        for name, function in find_checks(module_names, size):
            print(f"[{rank}] {name}", flush=True)
            start = time.monotonic()
            failure = run_check(function)
            print(f"[{rank}] {time.monotonic() - start:.2f} s {failure}", flush=True)
            report.write(json.dumps({"check": name, "failure": failure}) + "\n")


if __name__ == "__main__":
    main()
