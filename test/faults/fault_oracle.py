"""The oracle: did every survivor hear of the fault in time, whom do they name, what is left?"""

from __future__ import annotations

import os
import re
import signal
import time

from fault_job import HandJob, Job, LauncherJob
from fault_kinds import (
    FINISH_LIMIT_S,
    KINDS,
    STALL_LIMIT_S,
    Try,
    limit_of,
)
from torch_job import TorchJob, TorchrunJob

LEFT_LIMIT_S = 1
# What an operation is called at either door, and by the benchmark.
OPERATION = re.compile(r"all[-_]reduce of ")


def judge(job: Job, attempt: Try, happened: float) -> None:
    """Asks the oracle, once the fault has happened."""
    if KINDS[attempt.cell.kind].disagree:
        judge_disagreement(job, attempt)
    elif isinstance(job, HandJob):
        judge_ranks(job, attempt, happened)
    else:
        judge_starter(job, attempt, happened)
    attempt.leftovers += job.leftovers(LEFT_LIMIT_S)


def judge_ranks(job: HandJob, attempt: Try, happened: float) -> None:
    """Ranks started by hand: each ends by itself."""
    kind = KINDS[attempt.cell.kind]
    survivors = attempt.survivors
    if kind.survivors_code == 0:
        survivors |= set(attempt.victims)
    if not job.wait_for(survivors, happened + kind.limit_s - time.monotonic()):
        attempt.other.append(f"ranks {survivors & job.running()} still run: {job.errors()}")
        job.wait_for(survivors, FINISH_LIMIT_S)
    last = max(map(job.told_at, survivors))
    attempt.took_s = max(0.0, last - happened)  # a survivor may end before an orderly victim
    codes = {rank: job.code(rank) for rank in survivors}
    if set(codes.values()) != {kind.survivors_code}:
        attempt.other.append(f"exit codes {codes}: {job.errors()}")
    if kind.survivors_code != 0:
        judge_messages(job, attempt, survivors)
    if attempt.cell.kind == "SIGSTOP":
        judge_awoken(job, attempt)
    if kind.children and attempt.victims:
        judge_children(job, attempt)


def judge_awoken(job: HandJob, attempt: Try) -> None:
    """A rank that the others gave up learns so when it goes on."""
    [victim] = attempt.victims
    os.kill(job.pids()[victim], signal.SIGCONT)
    if not job.wait_for({victim}, STALL_LIMIT_S) or job.code(victim) != 1:
        attempt.other.append(f"the awoken rank ends with {job.code(victim)}: {job.errors()}")


def judge_children(job: TorchJob, attempt: Try) -> None:
    """They outlived the victim until all had heard of its death, or the try showed nothing."""
    [victim] = attempt.victims
    if not job.children(victim):
        attempt.other.append(f"the children of rank {victim} ended with it")
    job.end_children()


def judge_messages(job: Job, attempt: Try, expected: set[int]) -> None:
    """All survivors say the same culprit, which is an injected one, its host and the operation."""
    says = KINDS[attempt.cell.kind].says
    messages = {rank: text for rank, text in job.messages().items() if rank in expected}
    culprits = {rank: culprits_of(text) for rank, text in messages.items()}
    right = len(set(culprits.values())) <= 1
    for named in culprits.values():
        right = right and bool(named) and named <= set(attempt.victims)
    if not right or not are_enough(job, attempt, messages.keys(), expected):
        attempt.wrong_culprits.append(f"culprits {culprits}: {messages}")
    elif not all(says in text for text in messages.values()):
        attempt.other.append(f"not {says!r} but {messages}")
    elif has_operations(job) and not all(map(OPERATION.search, messages.values())):
        attempt.other.append(f"not every message names the operation: {messages}")


def are_enough(job: Job, attempt: Try, said: set[int], expected: set[int]) -> bool:
    """Whether all that must say something did. A launcher ends most ranks before they can, but not
    the first that fails by itself."""
    if isinstance(job, LauncherJob):
        return bool(said) or KINDS[attempt.cell.kind].launcher_code != 1
    return said == expected


def has_operations(job: Job) -> bool:
    """Whether ranks were in the middle of operations: those of torch jobs note it, others may have
    been about to start."""
    return isinstance(job, (TorchJob, TorchrunJob))


def culprits_of(message: str) -> frozenset[int]:
    """Whom an error is about: the first rank that it names, or list of ranks."""
    match = re.search(r"\branks? (\d+(?:(?:, | to )\d+)*)", message)
    ranks = set()
    for part in match[1].split(", ") if match else []:
        first, _, last = part.partition(" to ")
        ranks.update(range(int(first), int(last or first) + 1))
    return frozenset(ranks)


def judge_starter(job: LauncherJob | TorchrunJob, attempt: Try, happened: float) -> None:
    """A launcher, which may end the survivors before they say anything, or torchrun, which may
    not. How long torchrun takes to end when its ranks have is not ours to promise: ten seconds were
    seen on a busy machine, with ranks that only ended."""
    kind = KINDS[attempt.cell.kind]
    limit_s = FINISH_LIMIT_S if isinstance(job, TorchrunJob) else limit_of(attempt.cell)
    if not job.wait_for({job.KEY}, happened + limit_s - time.monotonic()):
        attempt.other.append(f"{attempt.cell.starter} still runs: {job.errors()}")
        job.wait_for({job.KEY}, FINISH_LIMIT_S)
    attempt.took_s = job.ended_at.get(job.KEY, time.monotonic()) - happened
    if isinstance(job, LauncherJob):
        judge_report(job, attempt)
    else:
        judge_torchrun(job, attempt, happened)
    if kind.survivors_code != 0:
        judge_messages(job, attempt, attempt.survivors)


def judge_torchrun(job: TorchrunJob, attempt: Try, happened: float) -> None:
    """It ends long after its ranks: here their time counts."""
    attempt.took_s = max(map(job.told_at, attempt.survivors)) - happened
    if attempt.took_s > KINDS[attempt.cell.kind].limit_s:
        attempt.other.append(f"the last heard of it after {attempt.took_s:.2f} s")
    if job.code(job.KEY) == 0:
        attempt.other.append("torchrun ends with 0")


def judge_report(job: LauncherJob, attempt: Try) -> None:
    """What the launcher says and ends with."""
    kind = KINDS[attempt.cell.kind]
    if job.code(job.KEY) != kind.launcher_code:
        attempt.other.append(f"the launcher ends with {job.code(job.KEY)}: {job.errors()}")
    if kind.launcher_code > 128 and not culprits_of(job.report()) & set(attempt.victims):
        attempt.wrong_culprits.append(f"the launcher says {job.report()!r}")


def judge_disagreement(job: TorchJob, attempt: Try) -> None:
    """Every round fails on every rank, soon after the last has submitted; what comes next works, or
    a rank would have ended with another code."""
    if not job.wait_for(set(range(attempt.size)), FINISH_LIMIT_S):
        attempt.other.append(f"ranks {job.running()} still run: {job.errors()}")
    codes = [job.code(rank) for rank in range(attempt.size)]
    reports = job.reports()
    if any(codes) or len(reports) != attempt.size:
        attempt.other.append(f"exit codes {codes}: {job.errors()}")
        return
    for lines in zip(*reports.values(), strict=True):
        submitted = max(line["submitted"] for line in lines)
        attempt.took_s = max(attempt.took_s, *(line["told"] - submitted for line in lines))
        if not all("ranks disagree" in line["message"] for line in lines):
            attempt.wrong_culprits.append(f"the ranks say {[line['message'] for line in lines]}")
    if attempt.took_s > KINDS[attempt.cell.kind].limit_s:
        attempt.other.append(f"the last heard of it after {attempt.took_s:.2f} s")
