#!/usr/bin/env python3
"""Runs fasthorovod-bench between ranks of several hosts: network namespaces on this machine, so
that every byte between them crosses a (virtual) network card. Needs root.

    hosts_bench.py --ranks 4 --hosts 2 allreduce -b 4K -e 256M --backend gloo
    hosts_bench.py --ranks 4 --hosts 4 --shape "flow 1gbit 250mbit" step --model vgg16

--shape gives each host's link a rate (tbf RATE), or also a cap for each flow (flow RATE CAP). What
follows its own options is the benchmark's. Prints what rank 0 prints.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/netlab"))

from hosts import Hosts, missing  # noqa: E402
from shapes import apply, parse_shape  # noqa: E402

BUILT = ROOT / "build/release/tools/fasthorovod-bench"
PORT = 29500


def start(host, rank: int, size: int, place: str, secret: Path, arguments: list[str]):
    """One rank on a host."""
    bench = str(BUILT) if BUILT.exists() else shutil.which("fasthorovod-bench")
    environment = {
        **os.environ,
        "FASTHOROVOD_RANK": str(rank),
        "FASTHOROVOD_SIZE": str(size),
        "FASTHOROVOD_RENDEZVOUS": place,
        "FASTHOROVOD_SECRET_FILE": str(secret),
    }
    return subprocess.Popen(host.command(bench, *arguments), env=environment)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--shape", type=parse_shape, default=parse_shape("none"))
    options, arguments = parser.parse_known_args()
    if missing():
        parser.error(missing())
    with Hosts(options.hosts) as hosts, tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "secret")
        secret.touch(mode=0o600)
        secret.write_text(secrets.token_hex(32))
        place = f"{hosts[0].ipv4}:{PORT}"
        for host in hosts:
            apply(host, options.shape)
        ranks = []
        try:
            for rank in range(options.ranks):
                host = hosts[rank * options.hosts // options.ranks]
                ranks.append(start(host, rank, options.ranks, place, secret, arguments))
            return max(rank.wait() for rank in ranks)
        finally:
            for rank in ranks:
                rank.kill()


if __name__ == "__main__":
    sys.exit(main())
