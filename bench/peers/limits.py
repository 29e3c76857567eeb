"""How fast a link lets an all-reduce be."""

from __future__ import annotations

from cases import Case
from shapes import bits_per_second

# What TCP's payload is of what a link carries with Ethernet's, IP's and TCP's headers.
PAYLOAD = 0.955


def link_rate(case: Case) -> float:
    """Bits a second that leave a host at most, or 0 where the link has no limit."""
    if not case.shape.link:
        return 0.0
    rate = bits_per_second(case.shape.link)
    if case.cut:
        rate += bits_per_second(case.cut) - bits_per_second(case.shape.flow)
    return rate


def limit_s(case: Case, size: int) -> float:
    """The least seconds an all-reduce of `size` bytes can take by the link, or 0: no limit.

    With h hosts each has to send 2 (h - 1) / h of the buffer, however many ranks it has.
    """
    rate = link_rate(case)
    if rate == 0:
        return 0.0
    return 2 * (case.hosts - 1) / case.hosts * size * 8 / (rate * PAYLOAD)


def bus_factor(case: Case) -> float:
    """busbw by algbw: 2 (n - 1) / n with n ranks, as nccl-tests has it."""
    return 2 * (case.ranks - 1) / case.ranks
