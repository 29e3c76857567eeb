"""The layering check must object to what the table forbids, and to nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[2] / "tools" / "check_layering.py"


def run_on(tmp_path, file, include):
    """Runs the check over a tree with one file holding one include; returns (status, output)."""
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#include {include}\n")
    command = [sys.executable, str(CHECK), "--root", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("file", "include"),
    [
        ("core/a.h", '"transport/channel.h"'),
        ("core/a.cc", "<sys/socket.h>"),
        ("core/a.cc", "<thread>"),
        ("core/a.cc", "<fstream>"),
        ("core/a.cc", "<boost/asio.hpp>"),
        ("transport/a.cc", '"compression/codec.h"'),
        ("transport/a.cc", '"ops/engine.h"'),
        ("transport/deep/a.cc", "<hwy/highway.h>"),
        ("compression/a.cc", '"transport/channel.h"'),
        ("compression/a.cc", "<cuda_runtime.h>"),
        ("ops/a.cc", '"torch_binding/work.h"'),
        ("ops/a.cc", "<openssl/hmac.h>"),
        ("torch_binding/a.cc", "<boost/asio.hpp>"),
        ("test/ops/a_test.cc", "<torch/torch.h>"),
        ("tools/a.cc", '"torch_binding/work.h"'),
        ("core/a.cc", '"result.h"'),
        ("ops/a.h", "<fmt/format.h>"),
    ],
)
def test_objects_to(tmp_path, file, include):
    status, output = run_on(tmp_path, file, include)
    assert status == 1
    assert output.startswith(f"{file}:1: ")


@pytest.mark.parametrize(
    ("file", "include"),
    [
        ("core/a.cc", '"core/result.h"'),
        ("core/a.cc", "<fmt/format.h>"),
        ("core/a.cc", "<system_error>"),
        ("transport/a.cc", "<boost/asio/ip/tcp.hpp>"),
        ("transport/a.cc", "<sys/epoll.h>"),
        ("compression/a.cu", "<cuda_fp16.h>"),
        ("ops/a.cc", '"compression/codec.h"'),
        ("ops/a.cc", '"transport/channel.h"'),
        ("torch_binding/a.cc", "<torch/csrc/utils/pybind.h>"),
        ("test/torch_binding/a_test.cc", '"torch_binding/work.h"'),
        ("tools/a.cc", "<CLI/CLI.hpp>"),
    ],
)
def test_allows(tmp_path, file, include):
    assert run_on(tmp_path, file, include) == (0, "")
