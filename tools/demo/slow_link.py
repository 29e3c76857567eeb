#!/usr/bin/env python3
"""Runs the demo's comparison on two virtual hosts that a slow link joins.

    slow_link.py --rate 200mbit --ranks 4 COMMAND...

Each host is a network namespace whose outgoing traffic is limited to the rate; half of the ranks
run on each. COMMAND is one rank, as `python train.py compare ... --out FILE`. The output is that of
rank 0; a rank that fails ends the others. Needs root, iproute2 and util-linux: where they are
missing it says so, and ends with success, for there is nothing to measure then.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test" / "netlab"))

from hosts import Host, Hosts, missing

HOSTS = 2
PORT = 29600  # in a namespace of its own, nothing else can have it
DEVICE = "eth0"


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", default="200mbit", help="as tc writes it (default: 200mbit)")
    parser.add_argument("--ranks", type=int, default=4, help="an even number (default: 4)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="one rank")
    arguments = parser.parse_args()
    if not arguments.command:
        parser.error("the command of a rank is missing")
    if arguments.ranks < HOSTS or arguments.ranks % HOSTS:
        parser.error(f"--ranks must be a multiple of {HOSTS}, not {arguments.ranks}")
    return arguments


def start(hosts: list[Host], arguments: argparse.Namespace, secret: str) -> list[subprocess.Popen]:
    """All ranks, half of them on each host. The first rank of a host counts its bytes."""
    on_each = arguments.ranks // HOSTS
    ranks = []
    for rank in range(arguments.ranks):
        environment = {
            **os.environ,
            "FASTHOROVOD_RANK": str(rank),
            "FASTHOROVOD_SIZE": str(arguments.ranks),
            "FASTHOROVOD_RENDEZVOUS": f"{hosts[0].ipv4}:{PORT}",
            "FASTHOROVOD_SECRET_FILE": secret,
            "GLOO_SOCKET_IFNAME": DEVICE,
        }
        counted = DEVICE if rank % on_each == 0 else "none"
        command = [*arguments.command, "--device", counted, "--link", arguments.rate]
        out = None if rank == 0 else subprocess.DEVNULL
        host = hosts[rank // on_each]
        ranks.append(subprocess.Popen(host.command(*command), env=environment, stdout=out))
    return ranks


def wait(ranks: list[subprocess.Popen]) -> int:
    """The first exit code that is not 0, after ending the others; else 0."""
    while any(rank.poll() is None for rank in ranks):
        if any(rank.poll() not in (None, 0) for rank in ranks):
            break
        time.sleep(0.1)
    codes = [rank.poll() for rank in ranks]
    for rank in ranks:
        rank.kill()
        rank.wait()
    return next((code for code in codes if code), 0)


def main() -> None:
    """Makes the hosts, runs the ranks, removes the hosts."""
    arguments = parse_arguments()
    if reason := missing():
        print(f"demo: no comparison over a slow link: {reason}")
        return
    with Hosts(HOSTS) as hosts, tempfile.NamedTemporaryFile("w", prefix="secret-") as secret:
        for host in hosts:
            host.limit(arguments.rate)
        secret.write(secrets.token_hex(32))
        secret.flush()
        sys.exit(wait(start(hosts, arguments, secret.name)))


if __name__ == "__main__":
    main()
