"""Ranks on different hosts, started by hand, find each other's right addresses.

The ranks run fasthorovod-bench, which checks every value.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hosts import Hosts, missing

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build/release/tools/fasthorovod-bench"
BENCH = os.environ.get("FASTHOROVOD_BENCH") or (
    str(BUILT) if BUILT.exists() else shutil.which("fasthorovod-bench")
)
pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
    pytest.mark.skipif(BENCH is None, reason="fasthorovod-bench is not built"),
]
LIMIT_S = 60
# 12 s is the promise; the rest is for starting and ending programs on a busy machine.
LINK_LIMIT_S = 15


@pytest.fixture(scope="module", name="hosts")
def make_hosts():
    """Three hosts for all tests of this file."""
    with Hosts(3) as hosts:
        yield hosts


@pytest.fixture(name="secret")
def make_secret(tmp_path):
    """A job secret in a file that only we may read."""
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    path.write_text(secrets.token_hex(32))
    return str(path)


def start(host, rank, size, rendezvous, secret, iterations=3, **settings):
    """One rank of the benchmark on a host."""
    environment = {
        **os.environ,
        "FASTHOROVOD_RANK": str(rank),
        "FASTHOROVOD_SIZE": str(size),
        "FASTHOROVOD_RENDEZVOUS": rendezvous,
        "FASTHOROVOD_SECRET_FILE": secret,
        "FASTHOROVOD_START_TIMEOUT": "20",
        **settings,
    }
    bench = [
        BENCH,
        "allreduce",
        "-b",
        "4K",
        "-e",
        "1M",
        "-f",
        "16",
        "-w",
        "1",
        "-n",
        str(iterations),
    ]
    return subprocess.Popen(
        host.command(*bench),
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def outcomes(ranks):
    """Exit code, output and errors of every rank, in bounded time."""
    try:
        return [(*rank.communicate(timeout=LIMIT_S), rank.returncode) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()


def run(hosts, placement, rendezvous, secret, **settings):
    """Starts a rank on each host that `placement` names, and expects right sums."""
    ranks = [
        start(hosts[k], rank, len(placement), rendezvous, secret, **settings)
        for rank, k in enumerate(placement)
    ]
    results = outcomes(ranks)
    for rank, (_out, err, code) in enumerate(results):
        assert code == 0, f"rank {rank}: {err}"
    rows = re.findall(r"^ *(\d+) .* (\d+)$", results[0][0], re.MULTILINE)
    assert rows == [("4096", "0"), ("65536", "0"), ("1048576", "0")], results[0][0]


def test_two_hosts_meet_over_ipv4(hosts, secret):
    run(hosts, [0, 1], f"{hosts[0].ipv4}:29500", secret)


def test_two_hosts_meet_over_ipv6(hosts, secret):
    run(hosts, [0, 1], f"[{hosts[0].ipv6}]:29501", secret)


def test_three_hosts_of_different_sizes_form_one_ring(hosts, secret):
    run(hosts, [0, 0, 1, 2], f"{hosts[0].ipv4}:29502", secret)


def test_an_interface_can_be_named(hosts, secret):
    rendezvous = f"{hosts[0].ipv4}:29503"
    run(hosts, [0, 1], rendezvous, secret, FASTHOROVOD_NETWORK_INTERFACE="eth0")
    run(hosts, [0, 1], rendezvous, secret, FASTHOROVOD_NETWORK_INTERFACE="10.77.0.0/24")


def test_an_interface_that_is_not_there_is_refused_with_what_is(hosts, secret):
    name = "ib0"
    rank = start(
        hosts[0], 0, 2, f"{hosts[0].ipv4}:29504", secret, FASTHOROVOD_NETWORK_INTERFACE=name
    )
    [(_out, err, code)] = outcomes([rank])
    assert code == 1
    assert name in err and "eth0" in err, err


def test_an_absent_rank_is_named(hosts, secret):
    ranks = [
        start(hosts[k], k, 3, f"{hosts[0].ipv4}:29505", secret, FASTHOROVOD_START_TIMEOUT="2")
        for k in (0, 1)
    ]
    for _out, err, code in outcomes(ranks):
        assert code == 1
        assert re.search(r"\brank 2\b", err), err


def test_a_link_that_goes_down_is_named_by_the_others(secret):
    """No packet says that a host is gone; the survivors still name it, and it ends too."""
    with Hosts(3) as hosts:
        ranks = [
            start(hosts[k], k, 3, f"{hosts[0].ipv4}:29506", secret, iterations=1_000_000)
            for k in range(3)
        ]
        try:
            wait_until_flows_are_busy(hosts[0])
            hosts[2].ip("link", "set", "eth0", "down")
            cut = time.monotonic()
            results = outcomes(ranks)
        finally:
            for rank in ranks:
                rank.kill()
        took = time.monotonic() - cut
        for rank in (0, 1):
            _out, err, code = results[rank]
            assert code == 1
            assert re.search(r"\brank 2\b", err), err
        assert results[2][2] == 1
        assert took < LINK_LIMIT_S, f"{took:.1f} s"


def wait_until_flows_are_busy(host):
    """Returns once more than control messages have crossed the host's link."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if host.bytes_sent() > 10_000_000:
            return
        time.sleep(0.05)
    pytest.fail("the ranks exchange nothing")
