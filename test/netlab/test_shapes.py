"""Links carry what their shape says. Rates have wide margins, for a machine that is busy."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import Hosts, missing
from shapes import (
    SIDE,
    Shape,
    apply,
    bits_per_second,
    capped_flows,
    leaf,
    parse_shape,
    run_tc,
    slow_both_ways,
)

LOAD = str(Path(__file__).with_name("tcp_load.py"))
PORT = 5000
LIMIT_S = 60
FLOW = 40e6  # bits a second
needs_hosts = pytest.mark.skipif(bool(missing()), reason=missing() or "-")


def test_a_shape_is_read_from_words():
    assert parse_shape("none") == Shape()
    assert parse_shape("tbf 1gbit") == Shape("1gbit")
    assert parse_shape("flow 1gbit 250mbit") == Shape("1gbit", "250mbit")
    assert str(parse_shape("flow 1gbit 250mbit")) == "flow 1gbit 250mbit"
    assert bits_per_second("1.5gbit") == 1.5e9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no shape"),
        ("tbf", "is no shape"),
        ("flow 1gbit", "is no shape"),
        ("none 1gbit", "is no shape"),
        ("netem 1gbit", "is no shape"),
        ("tbf fast", "'fast' is no rate"),
        ("tbf 0mbit", "is no rate"),
        ("tbf 100", "is no rate"),
        ("tbf 1gbit;reboot", "is no rate"),
        ("flow 100mbit 1gbit", "does not fit"),
    ],
)
def test_a_wrong_shape_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        parse_shape(text)


def test_connections_made_in_a_row_have_leaves_of_their_own():
    ports = range(40000, 40000 + 2 * SIDE, 2)
    assert len({leaf(port, 5000) for port in ports}) == len(ports)
    assert len({leaf(5000, port) for port in ports}) == len(ports)


def test_every_leaf_has_a_class_and_a_way_to_it():
    commands = capped_flows("1gbit", "250mbit")
    classes = {word.split()[7] for word in commands if word.startswith("class")} - {"1:1"}
    ways = {line.split()[-1] for line in commands if " flowid " in line}
    assert len(ways) == SIDE * SIDE
    assert classes == ways


@pytest.fixture(scope="module", name="hosts")
def make_hosts():
    """Two hosts whose link is ten flows wide."""
    with Hosts(2) as hosts:
        for host in hosts:
            apply(host, parse_shape("flow 400mbit 40mbit"))
        yield hosts


@pytest.fixture(scope="module", name="rate")
def make_rate(hosts):
    """Measures so many flows from the first host to the second."""
    receiver = subprocess.Popen(
        hosts[1].command(sys.executable, LOAD, "receive", hosts[1].ipv4, str(PORT)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert receiver.stdout.readline() == "listening\n"

    def measure(flows, seconds=1.5):
        words = [sys.executable, LOAD, "send", hosts[1].ipv4, str(PORT), str(flows), str(seconds)]
        done = subprocess.run(
            hosts[0].command(*words), text=True, capture_output=True, timeout=LIMIT_S, check=True
        )
        return float(done.stdout)

    yield measure
    receiver.communicate()


@needs_hosts
def test_a_flow_is_capped_and_several_add_up(rate):
    one, four = rate(1), rate(4)
    assert one < 1.3 * FLOW
    assert four > 2.5 * one
    assert four < 4 * 1.3 * FLOW


@needs_hosts
def test_one_flow_can_be_made_slow(hosts, rate):
    slow_both_ways(hosts[0], hosts[1], 40000, PORT, "4mbit")
    assert rate(1) < 0.5 * FLOW
    slow_both_ways(hosts[0], hosts[1], 40000, PORT, "40mbit")
    assert rate(1) > 0.5 * FLOW


@needs_hosts
def test_what_tc_refuses_is_told():
    with Hosts(1) as hosts, pytest.raises(OSError, match="does not shape"):
        run_tc(hosts[0], ["qdisc add dev eth9 root tbf rate 1gbit burst 128kb limit 2mb"])


@needs_hosts
def test_a_shape_takes_the_place_of_the_one_before(hosts, rate):
    """Comes last of those that share the hosts."""
    for host in hosts:
        apply(host, parse_shape("tbf 100mbit"))
    assert 1.3 * FLOW < rate(1) < 130e6
    for host in hosts:
        apply(host, Shape())
    assert rate(1) > 130e6


@needs_hosts
def test_congestion_control_is_the_hosts_own():
    with Hosts(2) as hosts:
        hosts[0].control_congestion("reno")
        routes = [
            subprocess.run(host.command("ip", "route"), text=True, capture_output=True, check=True)
            for host in hosts
        ]
        assert "congctl reno" in routes[0].stdout
        assert "congctl" not in routes[1].stdout
        with pytest.raises(subprocess.CalledProcessError):
            hosts[0].control_congestion("no-such-control")


def test_only_known_units_count():
    for number, unit in itertools.product(("1", "2.5"), ("kbit", "mbit", "gbit")):
        assert bits_per_second(number + unit) > 0
    with pytest.raises(ValueError, match="kbit, mbit or gbit"):
        bits_per_second("1tbit")
