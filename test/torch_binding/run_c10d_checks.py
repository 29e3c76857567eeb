"""One rank of a world at the torch.distributed door: runs the checks of some modules.

All checks meet at one store, as under torchrun, and each has a default group of its own. So a rank
that fails a check takes the others out of it, and the next check starts clean; and every check
tests that what is left in the store misleads nobody.
"""

import datetime
import faulthandler
import json
import os
import sys
import time
import traceback

from run_checks import find_checks


def run_check(function, store, rank, size):
    """The empty text, or why it failed."""
    import torch.distributed as dist

    try:
        dist.init_process_group(
            "fasthorovod",
            store=store,
            rank=rank,
            world_size=size,
            timeout=datetime.timedelta(seconds=20),
        )
        function()
        dist.barrier()
    except Exception:
        return traceback.format_exc()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    return ""


def main():
    report_file, *module_names = sys.argv[1:]
    faulthandler.enable()
    import fasthorovod.distributed  # noqa: F401 - registers the backend
    import torch.distributed as dist

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, is_master=rank == 0
    )
    with open(report_file, "w", buffering=1) as report:
        for name, function in find_checks(module_names, size):
            print(f"[{rank}] {name}", flush=True)
            start = time.monotonic()
            failure = run_check(function, store, rank, size)
            print(f"[{rank}] {time.monotonic() - start:.2f} s {failure}", flush=True)
            report.write(json.dumps({"check": name, "failure": failure}) + "\n")
    # The store is rank 0's: it goes last.
    store.barrier("the end", size)


if __name__ == "__main__":
    main()
