"""Lets the test files of this folder import the helpers beside them, and those of the tools."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tools")]
