#!/usr/bin/env python3
"""Prints the C++ sources a change concerns, one a line, for tools/lint.sh.

    lint_scope.py tidy   [--base REV]   sources that changed, and one source for each changed header
    lint_scope.py syntax [--base REV]   sources that see any changed file, less those of tidy

Without --base everything counts as changed. Only sources in the compile database are named.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# A change of these concerns every source.
BUILD_FILES = re.compile(r"(^|/)(CMakeLists\.txt|CMakePresets\.json|\.clang-tidy)$|\.cmake$")


def git(*arguments: str) -> list[str]:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def changed_files(base: str | None) -> set[str] | None:
    """Paths that differ from base, untracked ones included; None means all of them."""
    if base is None:
        return None
    changed = set(git("diff", "--name-only", base))
    changed.update(git("ls-files", "--others", "--exclude-standard"))
    return changed


def sources(build: Path) -> list[str]:
    """The tree's own sources in the compile database, relative to the root."""
    entries = json.loads((build / "compile_commands.json").read_text())
    paths = {Path(entry["directory"], entry["file"]).resolve() for entry in entries}
    own = [path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT)]
    return sorted(str(path) for path in own if path.parts[0] != "build")


def closure(path: str, seen: dict[str, set[str]]) -> set[str]:
    """path and every header of ours it includes, directly or not."""
    if path in seen:
        return seen[path]
    seen[path] = {path}
    text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
    for header in INCLUDE.findall(text):
        if (ROOT / header).is_file():
            seen[path] = seen[path] | closure(header, seen)
    return seen[path]


def tidy_scope(changed: set[str], views: dict[str, set[str]]) -> set[str]:
    """Changed sources; a changed header counts through its own source, or any that sees it."""
    scope = {source for source in views if source in changed}
    for header in (path for path in changed if path.endswith(".h")):
        viewers = [source for source, view in views.items() if header in view]
        own = [source for source in viewers if source == header[: -len(".h")] + ".cc"]
        if not scope.intersection(viewers):
            scope.update(own or viewers[:1])
    return scope


def main() -> None:
    parser = argparse.ArgumentParser(description="Names the sources a change concerns.")
    parser.add_argument("what", choices=["tidy", "syntax"])
    parser.add_argument("--base", help="the revision the change starts from (default: none)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    arguments = parser.parse_args()
    seen: dict[str, set[str]] = {}
    views = {source: closure(source, seen) for source in sources(arguments.build)}
    changed = changed_files(arguments.base)
    tidy = set(views) if changed is None else tidy_scope(changed, views)
    if arguments.what == "tidy":
        print("".join(f"{source}\n" for source in sorted(tidy)), end="")
        return
    everything = changed is None or any(BUILD_FILES.search(path) for path in changed)
    touched = {source for source, view in views.items() if everything or view & changed}
    print("".join(f"{source}\n" for source in sorted(touched - tidy)), end="")


if __name__ == "__main__":
    main()
