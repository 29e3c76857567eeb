"""Every cell of the fault script, a few tries each, several at the same time: most of a try is
waiting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import fault_script
import pytest
from fault_job import BENCH, LAUNCHER
from fault_kinds import CELLS, OverTooEarlyError, is_possible
from fault_script import MOST_ITERATIONS, run_try

pytestmark = pytest.mark.skipif(
    BENCH is None or LAUNCHER is None, reason="fasthorovod-bench or fasthorovodrun is not built"
)
TRIES = 2
TORCH_TRIES = 1  # each takes seconds of processor time
AT_ONCE = 4


@pytest.fixture(scope="module")
def tries_of(request):
    """The tries of each cell that this run asks for, on their way."""
    asked = [item.callspec.params["cell"] for item in request.session.items if is_ours(item)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            cell: [pool.submit(run_try, cell, seed) for seed in range(1, tries_for(cell) + 1)]
            for cell in asked
        }
        pool.shutdown(cancel_futures=True)


def tries_for(cell):
    return TRIES if cell.starter in ("by hand", "launcher") else TORCH_TRIES


def is_ours(item):
    return item.module.__name__ == __name__ and hasattr(item, "callspec")


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(str(cell).split()))
def test_survivors_know_what_happened_and_leave_nothing(cell, tries_of):
    if not is_possible(cell):
        pytest.skip("torch or the package is not installed")
    for attempt in (future.result() for future in tries_of[cell]):
        assert not attempt.problems, attempt


def test_a_job_that_is_always_over_too_early_is_given_up(monkeypatch):
    """With no more iterations than the program takes, which would end it early by itself."""
    seen = []

    class JobThatIsOver:
        def __init__(self, plan):
            seen.append(plan.iterations)
            raise OverTooEarlyError

    monkeypatch.setitem(fault_script.STARTERS, "launcher", JobThatIsOver)
    cell = next(each for each in CELLS if (each.starter, each.kind) == ("launcher", "two SIGKILL"))
    with pytest.raises(RuntimeError, match="over too early"):
        run_try(cell, 1)
    assert len(seen) > 1
    assert max(seen) <= MOST_ITERATIONS
