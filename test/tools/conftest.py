"""Lets the test files of this folder import the helpers beside them, and gives them a secret."""

import secrets
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(name="secret")
def make_secret(tmp_path):
    """A job secret in a file that only we may read."""
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    path.write_text(secrets.token_hex(32))
    return str(path)
