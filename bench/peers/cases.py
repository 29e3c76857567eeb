"""The cases of the comparison: where the ranks are and what the links between them carry."""

from __future__ import annotations

from dataclasses import dataclass

from shapes import Shape, parse_shape

KIB, MIB = 1 << 10, 1 << 20
SIZES = (4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB)
SIZES_OF_ONE_HOST = (*SIZES, 256 * MIB)
CUT = "60mbit"
NO_SHAPE = Shape()


@dataclass(frozen=True)
class Case:
    """`cut`: a rate that one flow is cut to in the middle of the run, or ""."""

    name: str
    title: str
    hosts: int
    ranks_a_host: int
    shape: Shape = NO_SHAPE
    sizes: tuple[int, ...] = SIZES
    cut: str = ""

    @property
    def ranks(self) -> int:
        """Of all hosts."""
        return self.hosts * self.ranks_a_host

    def host_of(self, rank: int) -> int:
        """The number of a rank's host, from 0: neighbours in number are neighbours in place."""
        return rank // self.ranks_a_host


def many(prefix: str, title: str, shape: str, cut: str = "") -> list[Case]:
    """One rank on each of two and of four hosts."""
    sizes = (64 * MIB,) if cut else SIZES
    return [
        Case(
            f"{prefix}-{hosts}", f"{hosts} hosts, {title}", hosts, 1, parse_shape(shape), sizes, cut
        )
        for hosts in (2, 4)
    ]


LINK, FLOWS = "tbf 1gbit", "flow 1gbit 250mbit"
CASES = (
    Case("one-host-2", "1 host, 2 ranks", 1, 2, sizes=SIZES_OF_ONE_HOST),
    Case("one-host-4", "1 host, 4 ranks", 1, 4, sizes=SIZES_OF_ONE_HOST),
    *many("hosts", "no limit", "none"),
    Case("hosts-2x2", "2 hosts x 2 ranks, no limit", 2, 2),
    *many("link", "1 Gbit/s", LINK),
    *many("flows", "1 Gbit/s, 250 Mbit/s a flow", FLOWS),
    *many("cut", "1 Gbit/s, 250 Mbit/s a flow, one cut to 60", FLOWS, CUT),
    Case("link-2x2", "2 hosts x 2 ranks, 1 Gbit/s", 2, 2, parse_shape(LINK)),
    Case("flows-2x2", "2 hosts x 2 ranks, 1 Gbit/s, 250 Mbit/s a flow", 2, 2, parse_shape(FLOWS)),
)


def case_named(name: str) -> Case:
    """The case, or an error with the names there are."""
    for case in CASES:
        if case.name == name:
            return case
    raise ValueError(f"'{name}' is none of the cases: {', '.join(case.name for case in CASES)}")
