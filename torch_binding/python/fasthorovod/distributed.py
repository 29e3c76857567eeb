"""The backend "fasthorovod" of torch.distributed.

Importing this module (or fasthorovod.torch) makes the name known; an installed package needs no
import, since torch finds register() by its entry point. Importing starts no thread:
init_process_group("fasthorovod") does.
"""

# The check must come before everything that needs torch.
# ruff: noqa: E402

from __future__ import annotations

from ._torch_check import check_torch

check_torch()

import atexit

import torch.distributed as dist

from . import _C

BACKEND = "fasthorovod"

_registered = False


def register() -> None:
    """Makes the backend known to torch.distributed, for CPUs and GPUs. Harmless twice."""
    global _registered  # noqa: PLW0603 - once for the process
    if _registered or not dist.is_available():
        return
    dist.Backend.register_backend(
        BACKEND, _C.create_backend, extended_api=True, devices=["cpu", "cuda"]
    )
    # Callbacks of futures may be Python: none may run while the interpreter goes.
    atexit.register(_C.stop)
    _registered = True


register()
