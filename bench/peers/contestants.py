"""How each contestant of the comparison is started on the hosts of a case."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from cases import Case
from hosts import REMOTE_SHELL

PORT = 29500  # in a network namespace, so nobody else has it
NOT_TO_INHERIT = ("FASTHOROVOD_", "HOROVOD_", "OMPI_", "MPICH_", "UCX_", "GLOO_")
AUXILIARIES = {"FASTHOROVOD_LANES": "2", "FASTHOROVOD_AUX": "2"}


@dataclass(frozen=True)
class Task:
    """What a process set has to do: so many seconds a size, or, if 0, so many iterations."""

    sizes: tuple[int, ...]
    budget_s: float = 0.3
    iterations: int = 0
    trace: bool = False


@dataclass(frozen=True)
class Programs:
    """Where things lie."""

    bench: str
    built: Path  # the folder of mpi_rank.openmpi and mpi_rank.mpich
    secret: Path
    folder: Path  # for files that last as long as a case


@dataclass(frozen=True)
class Process:
    """A process of a set: on which host, what, and with what besides the usual environment."""

    host: int
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Contestant:
    """`kind` says how it is started: ours, gloo, openmpi or mpich. `usual_in`: the cases in which
    it takes part without being named; empty means all."""

    name: str
    kind: str
    connections: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    usual_in: tuple[str, ...] = ()
    between_hosts_only: bool = False
    program: str = ""  # another one than that of ours
    arguments: tuple[str, ...] = ()


ARENA = ("--memory", "arena")
CONTESTANTS = (
    Contestant("ours", "ours"),
    Contestant(
        "ours-arena", "ours", usual_in=("one-host-2", "one-host-4", "hosts-2"), arguments=ARENA
    ),
    Contestant("ours-aux", "ours", settings=AUXILIARIES, usual_in=("hosts-2",)),
    Contestant(
        "ours-aux-arena", "ours", settings=AUXILIARIES, usual_in=("hosts-2",), arguments=ARENA
    ),
    Contestant("gloo", "gloo"),
    Contestant("gloo-x4", "gloo", connections=4),
    Contestant("openmpi", "openmpi"),
    Contestant("openmpi-x4", "openmpi", connections=4, between_hosts_only=True),
    Contestant("mpich", "mpich"),
)
# Where a flow is cut: dynamic chunks against equal parts.
OF_A_CUT = ("ours", "gloo-x4")


def contestants_of(case: Case, names: list[str]) -> list[Contestant]:
    """Those that take part; `names` chooses, empty means the usual ones."""
    known = [contestant.name for contestant in CONTESTANTS]
    for name in names:
        if name not in known:
            raise ValueError(f"'{name}' is none of the peers: {', '.join(known)}")
    return [
        each
        for each in CONTESTANTS
        if (each.name in names if names else is_usual(each, case))
        and (case.hosts > 1 or not each.between_hosts_only)
    ]


def is_usual(contestant: Contestant, case: Case) -> bool:
    """Whether it takes part where nobody has chosen."""
    if case.cut:
        return contestant.name in OF_A_CUT
    return not contestant.usual_in or case.name in contestant.usual_in


def variant(words: list[str]) -> Contestant:
    """Another one of ours, from its name and KEY=VALUE words."""
    name, *pairs = words
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--variant {name}: '{pair}' is not KEY=VALUE")
        settings[key] = value
    program, arguments = settings.pop("BENCH", ""), settings.pop("ARGUMENTS", "")
    return Contestant(
        f"ours-{name}",
        "ours",
        settings=settings,
        program=program,
        arguments=tuple(arguments.split()),
    )


def clean_environment() -> dict[str, str]:
    """This environment without settings of any contestant."""
    return {k: v for k, v in os.environ.items() if not k.startswith(NOT_TO_INHERIT)}


def sizes_text(sizes: tuple[int, ...]) -> str:
    """As both programs take them."""
    return ",".join(map(str, sizes))


def ours(case: Case, contestant: Contestant, task: Task, programs: Programs, place: str):
    """Ranks of fasthorovod-bench, which meet at the first host."""
    pace = ["--budget", str(task.budget_s)] if task.budget_s else ["-n", str(task.iterations)]
    form = ["--trace", "-"] if task.trace else ["--json"]
    program = contestant.program or programs.bench
    command = [program, "allreduce", "--sizes", sizes_text(task.sizes)]
    command += ["--back-to-back", "-w", "1", *pace, *form, *contestant.arguments]
    return [
        Process(
            case.host_of(rank),
            command,
            {
                "FASTHOROVOD_RANK": str(rank),
                "FASTHOROVOD_SIZE": str(case.ranks),
                "FASTHOROVOD_RENDEZVOUS": f"{place}:{PORT}",
                "FASTHOROVOD_SECRET_FILE": str(programs.secret),
                **contestant.settings,
            },
        )
        for rank in range(case.ranks)
    ]


def mpi_task(kind: str, task: Task, programs: Programs) -> list[str]:
    """The command line of an MPI rank."""
    words = [sizes_text(task.sizes), str(task.budget_s), str(task.iterations)]
    return [str(programs.built / f"mpi_rank.{kind}"), *words, *(["trace"] if task.trace else [])]


def spread(case: Case) -> dict[str, str]:
    """Where there is a processor for each rank, mpi_rank takes one: polling ranks that share one
    would wait for whole slices of time."""
    return {"PEERS_SPREAD": "1"} if case.ranks <= os.cpu_count() else {}


def openmpi(case: Case, contestant: Contestant, task: Task, programs: Programs, places: list[str]):
    """mpirun on the first host. On one host it uses shared memory, as it does by itself."""
    command = ["mpirun.openmpi", "-np", str(case.ranks), "--bind-to", "none"]
    if case.ranks > os.cpu_count():
        # It thinks that each host has processors of its own, and would never let go of one.
        command += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    if case.hosts > 1:
        hosts = ",".join(f"{place}:{case.ranks_a_host}" for place in places)
        transports = "tcp,self" if case.ranks_a_host == 1 else "tcp,vader,self"
        command += ["--host", hosts, "--leave-session-attached"]
        settings = {
            "plm": "rsh",
            "plm_rsh_agent": str(REMOTE_SHELL),
            "oob_tcp_if_include": "eth0",
            "btl_tcp_if_include": "eth0",
            "btl_tcp_links": str(contestant.connections),
            "pml": "ob1",
            "btl": transports,
        }
        command += [word for key, value in settings.items() for word in ("--mca", key, value)]
    # It takes no orders from root otherwise.
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    settings = {**root, **spread(case)}
    return [Process(0, [*command, *mpi_task("openmpi", task, programs)], settings)]


def mpich(case: Case, task: Task, programs: Programs, places: list[str]):
    """mpiexec on the first host. On one host it uses shared memory, as it does by itself."""
    command, settings = ["mpiexec.mpich", "-n", str(case.ranks)], spread(case)
    if case.hosts > 1:
        hosts = ",".join(f"{place}:{case.ranks_a_host}" for place in places)
        agent = str(REMOTE_SHELL)
        command += ["-hosts", hosts, "-iface", "eth0", "-launcher", "ssh", "-launcher-exec", agent]
        # Without these it finds that the "hosts" share a machine, and uses its memory.
        settings.update(UCX_TLS="tcp,self", UCX_NET_DEVICES="eth0")
    return [Process(0, [*command, *mpi_task("mpich", task, programs)], settings)]


def processes_of(
    case: Case, contestant: Contestant, task: Task, programs: Programs, places: list[str]
) -> list[Process]:
    """The processes of a set whose first one prints. Gloo's ranks are forked instead."""
    if contestant.kind == "ours":
        return ours(case, contestant, task, programs, places[0])
    if contestant.kind == "openmpi":
        return openmpi(case, contestant, task, programs, places)
    return mpich(case, task, programs, places)
