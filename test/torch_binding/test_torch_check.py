"""The import must fail with words, not with a crash, when torch is not the one built for."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "torch_binding/python/fasthorovod/_torch_check.py"


def check(tmp_path, built_for, installed):
    """Runs check_torch() of a package built for another torch; returns (status, stderr)."""
    package = tmp_path / "pretend"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_build_info.py").write_text(f'TORCH_VERSION = "{built_for}"\n')
    shutil.copy(SOURCE, package)
    if installed is not None:
        torch = tmp_path / "torch"
        torch.mkdir()
        (torch / "__init__.py").write_text("raise RuntimeError('torch was imported')\n")
        (torch / "version.py").write_text(f"__all__ = []\n__version__ = '{installed}'\n")
    program = "import sys; sys.path.insert(0, sys.argv[1])\n"
    program += "from pretend._torch_check import check_torch; check_torch()"
    # -S leaves out site-packages, and with it any torch that is really installed.
    command = [sys.executable, "-S", "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("installed", ["2.15.0+cu132", "2.15.0", "2.15.3+cpu"])
def test_accepts_same_minor(tmp_path, installed):
    assert check(tmp_path, "2.15.0+cu132", installed) == (0, "")


@pytest.mark.parametrize("installed", ["2.14.1+cu130", "2.1.5", "3.15.0"])
def test_names_both_versions_and_the_command(tmp_path, installed):
    status, stderr = check(tmp_path, "2.15.0+cu132", installed)
    assert status == 1
    last = stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert "2.15.0+cu132" in last
    assert installed in last
    assert "pip install --no-build-isolation" in last


def test_says_that_torch_is_missing(tmp_path):
    status, stderr = check(tmp_path, "2.15.0", None)
    assert status == 1
    assert "no torch is installed: type 'pip install torch==2.15.*'" in stderr
