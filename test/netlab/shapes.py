"""What the links of hosts can carry: nothing said, a rate a host, or also a cap for each flow.

    shape = parse_shape("flow 1gbit 250mbit")
    for host in hosts: apply(host, shape)
    slow(host, source_port, destination_port, "60mbit")      one flow of that shape, one direction

Shaping is at each host's way out. A packet of 64 KiB, as the kernel hands them to a virtual card,
passes as one, so less than that a flow is not capped. Rates are as tc writes them.

The cap for each flow is a tree of token buckets (htb): the link at the root, under it 32 x 32
leaves, each capped. Two steps of a hash (u32) find the leaf of a TCP packet: five bits of its
source port the row, five bits of its destination port the column. They are bits 1 to 5, since
Linux gives connections that one program makes one after another even ports, a few apart, so these
never share a leaf; others rarely do. Leaves that are busy share the link evenly.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
DEVICE = "eth0"
SIDE = 32  # leaves are a square
FIRST_LEAF = 0x1000
ROWS = 0x200  # the hash table whose buckets are rows
COLUMNS = 0x300  # the first of the tables, one a row, whose buckets are columns
LEAF_RATE = "10kbit"  # what a leaf has for itself; it borrows the rest from the link
# At least what leaves in one tick of the clock, and one packet of 64 KiB.
BURST, FAST_BURST, FLOW_BURST = "128kb", "512kb", "64kb"
FAST = 5e9
QUANTUM = "60000"


@dataclass(frozen=True)
class Shape:
    """`link`: a host's rate, or "" for none; `flow`: the cap of each flow within it, or ""."""

    link: str = ""
    flow: str = ""

    def __str__(self) -> str:
        words = ("flow", self.link, self.flow) if self.flow else ("tbf", self.link)
        return " ".join(words) if self.link else "none"


def bits_per_second(rate: str) -> float:
    """The number of a rate such as 250mbit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)", rate)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"'{rate}' is no rate: write it as 250mbit, with kbit, mbit or gbit")
    return float(match[1]) * UNITS[match[2]]


def parse_shape(text: str) -> Shape:
    """none, tbf RATE, or flow LINK_RATE FLOW_RATE."""
    kind, *rates = text.split() or [""]
    wanted = {"none": 0, "tbf": 1, "flow": 2}
    if wanted.get(kind) != len(rates):
        raise ValueError(f"'{text}' is no shape: none, tbf RATE, or flow LINK_RATE FLOW_RATE")
    bits = [bits_per_second(rate) for rate in rates]
    if kind == "flow" and bits[1] > bits[0]:
        raise ValueError(f"a flow of {rates[1]} does not fit into a link of {rates[0]}")
    return Shape(*rates)


def leaf(source_port: int, destination_port: int) -> int:
    """The number of the leaf that a flow falls into."""
    return FIRST_LEAF + SIDE * ((source_port >> 1) % SIDE) + (destination_port >> 1) % SIDE


def token_bucket(rate: str) -> list[str]:
    """The command of tc for a rate a host."""
    burst = FAST_BURST if bits_per_second(rate) >= FAST else BURST
    return [f"qdisc add dev {DEVICE} root tbf rate {rate} burst {burst} limit 2mb"]


def leaf_class(verb: str, number: int, rate: str) -> str:
    """Adds or changes a leaf."""
    return (
        f"class {verb} dev {DEVICE} parent 1:1 classid 1:{number:x} htb rate {LEAF_RATE} "
        f"ceil {rate} burst {FLOW_BURST} cburst {FLOW_BURST} quantum {QUANTUM}"
    )


def hash_filter(where: str, match: str) -> str:
    """A rule of the hash: what to do with a packet that got to `where`."""
    return f"filter add dev {DEVICE} parent 1: prio 1 protocol ip u32 ht {where} {match}"


def hash_table(number: int) -> str:
    """A table of the hash, with a bucket a row or column."""
    return (
        f"filter add dev {DEVICE} parent 1: prio 1 handle {number:x}: protocol ip u32 divisor "
        f"{SIDE}"
    )


def capped_flows(link: str, flow: str) -> list[str]:
    """The commands of tc for a rate a host and a cap a flow."""
    tcp = "match ip protocol 6 0xff"
    commands = [
        f"qdisc add dev {DEVICE} root handle 1: htb default 1 r2q 100",
        f"class add dev {DEVICE} parent 1: classid 1:1 htb rate {link} ceil {link} "
        f"burst {BURST} cburst {BURST} quantum {QUANTUM}",
        *(leaf_class("add", FIRST_LEAF + at, flow) for at in range(SIDE * SIDE)),
        hash_table(ROWS),
        *(hash_table(COLUMNS + row) for row in range(SIDE)),
        # The ports follow the IP header, whose length is skipped here: 20 bytes in, 22 bytes in.
        hash_filter(
            "800::",
            f"{tcp} link {ROWS:x}: offset at 0 mask 0x0f00 shift 6 hashkey mask 0x003e0000 at 20",
        ),
    ]
    for row in range(SIDE):
        columns = COLUMNS + row
        to_columns = f"{tcp} link {columns:x}: hashkey mask 0x0000003e at 20"
        commands.append(hash_filter(f"{ROWS:x}:{row:x}:", to_columns))
        commands += [
            hash_filter(
                f"{columns:x}:{column:x}:", f"{tcp} flowid 1:{FIRST_LEAF + SIDE * row + column:x}"
            )
            for column in range(SIDE)
        ]
    return commands


def run_tc(host, commands: list[str]) -> None:
    """Runs commands of tc on a host; an error says which one failed."""
    done = subprocess.run(
        host.command("tc", "-batch", "-"),
        input="\n".join(commands) + "\n",
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise OSError(f"tc does not shape the link of {host.ipv4}: {done.stderr.strip()[:500]}")


def apply(host, shape: Shape) -> None:
    """Gives a host's link a shape, in place of the one it has."""
    clear = host.command("tc", "qdisc", "delete", "dev", DEVICE, "root")
    subprocess.run(clear, check=False, capture_output=True)  # fails where there is none
    if shape.flow:
        run_tc(host, capped_flows(shape.link, shape.flow))
    elif shape.link:
        run_tc(host, token_bucket(shape.link))


def slow(host, source_port: int, destination_port: int, rate: str) -> None:
    """Gives one flow that leaves a host with capped flows another cap, while it runs."""
    bits_per_second(rate)
    run_tc(host, [leaf_class("change", leaf(source_port, destination_port), rate)])


def slow_both_ways(here, there, here_port: int, there_port: int, rate: str) -> None:
    """The same for both directions of a connection between two hosts."""
    slow(here, here_port, there_port, rate)
    slow(there, there_port, here_port, rate)
