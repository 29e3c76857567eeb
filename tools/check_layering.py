#!/usr/bin/env python3
"""Compares every #include of the tree with the table of who may include whom.

    core  <-  transport    <-
    core  <-  compression  <-  ops  <-  torch_binding        tools, bench, test  ->  anything

Prints one line a violation and exits with 1; prints nothing and exits with 0 when all is well.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[>"]')
SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".in"}

TORCH = ("torch/", "ATen/", "c10/", "pybind11/", "Python.h")
CUDA = ("cuda*", "cub/", "thrust/", "cooperative_groups")
# What core must not touch: it decides and names, but moves nothing, runs nothing and reads no
# files. A mutex is fine: the logger is called from any thread.
IO_AND_THREADS = (
    "thread",
    "condition_variable",
    "future",
    "semaphore",
    "latch",
    "barrier",
    "stop_token",
    "fstream",
    "iostream",
    "filesystem",
    "unistd.h",
    "fcntl.h",
    "netdb.h",
    "poll.h",
    "pthread.h",
    "sched.h",
    "spawn.h",
    "signal.h",
    "csignal",
    "sys/",
    "netinet/",
    "arpa/",
    "net/",
    "linux/",
)


@dataclass(frozen=True)
class Rule:
    """What files of a folder may include besides their own folder and the system's headers."""

    folders: tuple[str, ...]
    third_party: tuple[str, ...] = ()
    third_party_in_cuda: tuple[str, ...] = ()
    refused_system: tuple[str, ...] = ()


RULES = {
    "core": Rule((), ("fmt/",), refused_system=IO_AND_THREADS),
    "transport": Rule(
        ("core",),
        ("fmt/", "boost/asio*", "boost/system*", "openssl/", "hwloc*", "nccl.h", "mpi.h"),
    ),
    "compression": Rule(("core",), ("fmt/", "hwy/"), CUDA),
    "ops": Rule(("core", "transport", "compression"), ("fmt/", "hwy/"), CUDA),
    "torch_binding": Rule(("core", "transport", "compression", "ops"), ("fmt/", *TORCH)),
}
# Folders that may include anything of ours, except that torch stays behind the binding.
FREE = ("tools", "bench", "test")
OUR_FOLDERS = (*RULES, *FREE)
# Headers of other projects that could slip in as <...>; every other <...> is the system's.
KNOWN_THIRD_PARTY = (
    "fmt/",
    "boost/",
    "openssl/",
    "hwloc*",
    "hwy/",
    "nccl.h",
    "mpi.h",
    "CLI/",
    "yaml-cpp/",
    "nlohmann/",
    "gtest/",
    "gmock/",
    "benchmark/",
    *TORCH,
    *CUDA,
)


def matches(header: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern is the header's name, or ends with / or * and is where the name begins."""
    return any(
        header.startswith(pattern.rstrip("*")) if pattern[-1] in "/*" else header == pattern
        for pattern in patterns
    )


def objection_to_ours(folder: str, target: str, path: Path) -> str | None:
    """Why a file of folder may not include a header of our folder target; None if it may."""
    if target == folder:
        return None
    if folder in FREE:
        if target != "torch_binding" or "torch_binding" in path.parts[1:]:
            return None
        return "only the tests and benches of torch_binding may include it"
    if target in RULES[folder].folders:
        return None
    return f"{folder} may not include {target}"


def objection_to_other(folder: str, header: str, path: Path) -> str | None:
    """Why a file of folder may not include a header that is not ours; None if it may."""
    if folder in FREE:
        if matches(header, TORCH) and "torch_binding" not in path.parts[1:]:
            return "torch is known to torch_binding only"
        return None
    rule = RULES[folder]
    if path.suffix == ".h" and matches(header, ("fmt/",)):
        return "fmt stays out of headers: the binding sees them beside torch's own version of it"
    allowed = rule.third_party
    if path.suffix in (".cu", ".cuh"):
        allowed += rule.third_party_in_cuda
    if matches(header, KNOWN_THIRD_PARTY):
        return None if matches(header, allowed) else f"{folder} may not use this library"
    if matches(header, rule.refused_system):
        return f"{folder} has no I/O and no threads"
    return None


def objection(path: Path, quote: str, header: str) -> str | None:
    """Why the file at path (relative to the root) may not include header; None if it may."""
    folder = path.parts[0]
    target = header.split("/", 1)[0]
    if "/" in header and target in OUR_FOLDERS:
        return objection_to_ours(folder, target, path)
    if quote == '"' and not matches(header, KNOWN_THIRD_PARTY):
        return 'headers of ours are included from the root: "folder/file.h"'
    return objection_to_other(folder, header, path)


def check_file(root: Path, path: Path) -> list[str]:
    """All violations of one file, as lines to print."""
    found = []
    text = path.read_text(encoding="utf-8", errors="replace")
    relative = path.relative_to(root)
    for number, line in enumerate(text.splitlines(), start=1):
        include = INCLUDE.match(line)
        if include is None:
            continue
        why = objection(relative, include.group(1), include.group(2))
        if why is not None:
            found.append(f"{relative}:{number}: {include.group(2)}: {why}")
    return found


def check_tree(root: Path) -> list[str]:
    """All violations of the tree."""
    found = []
    for folder in OUR_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                found += check_file(root, path)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks who includes whom.")
    default = Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=Path, default=default, help="the tree to check")
    found = check_tree(parser.parse_args().root.resolve())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
