"""Refuses a torch that the extension was not built for.

torch promises no stable binary interface for its distributed classes: an extension built for one
minor version loads without complaint under another and then crashes. So the package compares
versions before it loads the extension.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

REBUILD = "pip install --no-build-isolation --force-reinstall --no-deps <folder of fasthorovod>"


def installed_torch() -> str | None:
    """The version of the torch that 'import torch' would find, without importing it (seconds)."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    version_file = Path(spec.origin).with_name("version.py")
    if not version_file.is_file():
        return None
    text = version_file.read_text(encoding="utf-8")
    match = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    return match.group(1) if match else None


def minor(version: str) -> str:
    """The part of a version that must agree: '2.15' of '2.15.0+cu132'."""
    return ".".join(version.split(".")[:2])


def check_torch() -> None:
    """Raises ImportError, saying what to type, unless the installed torch is the one built for."""
    from ._build_info import TORCH_VERSION

    found = installed_torch()
    if found is None:
        raise ImportError(
            f"fasthorovod was built for torch {TORCH_VERSION}, but no torch is installed: "
            f"type 'pip install torch=={minor(TORCH_VERSION)}.*'"
        )
    if minor(found) != minor(TORCH_VERSION):
        raise ImportError(
            f"fasthorovod was built for torch {TORCH_VERSION}, but torch {found} is installed: "
            f"build it again with '{REBUILD}'"
        )
