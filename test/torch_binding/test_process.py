"""What a process does around its engine: import, exit, fork, loss of a rank."""

import os
import subprocess
import sys

from world import describe, run_ranks


def run(program, timeout=60):
    """Runs a program without any setting of ours in its environment."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("FASTHOROVOD_", "HOROVOD_"))
    }
    environment["OMP_NUM_THREADS"] = "1"
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_import_starts_no_thread_and_needs_no_init():
    done = run(
        """
import os, threading
def tasks(): return len(os.listdir("/proc/self/task"))
before = tasks()
import sys, fasthorovod
assert "torch" not in sys.modules
assert fasthorovod.__version__
assert tasks() == before
import torch
before = tasks()
import fasthorovod.torch as hvd
assert tasks() == before, (before, tasks())
assert threading.active_count() == 1
assert not hvd.is_initialized()
try:
    hvd.allreduce(torch.ones(1))
except ValueError as error:
    assert "init()" in str(error)
else:
    raise SystemExit("no error")
hvd.shutdown()
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_world_of_one_is_quiet_and_works():
    done = run(
        """
import torch, fasthorovod.torch as hvd
hvd.init()
assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()) == (0, 1, 0, 1)
x = torch.randn(5)
assert torch.equal(hvd.allreduce(x), x)
assert torch.equal(hvd.allgather(x), x)
assert torch.equal(hvd.broadcast(x, 0), x)
assert hvd.join() == 0
hvd.barrier()
hvd.allreduce_async(x)
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_child_of_fork_has_no_engine():
    done = run(
        """
import os, sys, torch, fasthorovod.torch as hvd
hvd.init()
hvd.allreduce(torch.ones(3))
child = os.fork()
if child == 0:
    ok = not hvd.is_initialized()
    hvd.shutdown()
    sys.exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert hvd.allreduce(torch.ones(3))[0] == 1
loader = torch.utils.data.DataLoader(torch.arange(20), batch_size=5, num_workers=2)
assert sum(int(batch.sum()) for batch in loader) == 190
"""
    )
    assert done.returncode == 0, done.stderr


# The tensors of the parent are not the child's to use, but it may drop them.
def test_child_of_fork_leaves_shared_memory_alone():
    program = """
import gc, os, torch, fasthorovod.torch as hvd
hvd.init()
kept = hvd.empty_shared(100_000).fill_(3)
child = os.fork()
if child == 0:
    del kept
    gc.collect()
    torch.ones(1_000_000)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert (hvd.allreduce_(kept, op=hvd.Sum) == 6).all()
hvd.shutdown()
"""
    reports = run_ranks(2, [sys.executable, "-c", program], 60)
    assert [report.status for report in reports] == [0, 0], describe(reports)


def test_wrong_settings_are_a_value_error():
    done = run(
        """
import os, fasthorovod.torch as hvd
for settings, word in (
    ({"FASTHOROVOD_RANK": "1"}, "FASTHOROVOD_SIZE"),
    ({"FASTHOROVOD_RANK": "x", "FASTHOROVOD_SIZE": "2"}, "FASTHOROVOD_RANK"),
    ({"FASTHOROVOD_RANK": "0", "FASTHOROVOD_SIZE": "2"}, "FASTHOROVOD_"),
):
    os.environ.update(settings)
    try:
        hvd.init()
    except ValueError as error:
        assert word in str(error), error
    else:
        raise SystemExit("no error")
    assert not hvd.is_initialized()
"""
    )
    assert done.returncode == 0, done.stderr


LOSES_A_RANK = """
import os, time, torch, fasthorovod.torch as hvd
hvd.init()
for _ in range(3):
    hvd.allreduce(torch.ones(1000), name="warm")
if hvd.rank() == 1:
    os._exit(7)
start = time.monotonic()
try:
    for i in range(1000):
        hvd.allreduce(torch.ones(300_000), name="after")
        time.sleep(0.01)
except hvd.HorovodInternalError as error:
    assert error.culprit == 1, (error, error.culprit)
    assert isinstance(error.code, str) and error.code
    assert time.monotonic() - start < 10
    print("saw it:", error)
try:
    hvd.allreduce(torch.ones(1))
except hvd.HorovodInternalError as error:
    print("again:", error)
hvd.shutdown()
"""


def test_loss_of_a_rank_fails_the_others_by_name():
    reports = run_ranks(3, [sys.executable, "-c", LOSES_A_RANK], 60)
    assert [report.status for report in reports] == [0, 7, 0], describe(reports)
    for rank in (0, 2):
        assert "saw it:" in reports[rank].output, describe(reports)
        assert "again:" in reports[rank].output, describe(reports)


def test_an_absent_rank_is_an_error_after_the_start_limit():
    program = (
        "import os, fasthorovod.torch as hvd\n"
        "if os.environ['FASTHOROVOD_RANK'] == '0':\n"
        "    try: hvd.init()\n"
        "    except hvd.HorovodInternalError as error: print('refused:', error)\n"
    )
    reports = run_ranks(2, [sys.executable, "-c", program], 60, FASTHOROVOD_START_TIMEOUT="2")
    assert reports[0].status == 0, describe(reports)
    assert "refused:" in reports[0].output, describe(reports)


def test_end_without_shutdown_is_clean():
    program = (
        "import torch, fasthorovod.torch as hvd\n"
        "hvd.init()\n"
        "hvd.allreduce_async(torch.ones(100_000), name=f'only mine {hvd.rank()}')\n"
        "hvd.allreduce(torch.ones(10), name='a')\n"
    )
    reports = run_ranks(2, [sys.executable, "-c", program], 60)
    assert [report.status for report in reports] == [0, 0], describe(reports)


DELAYED = """
import os, torch, fasthorovod.torch as hvd
hvd.init()
torch.manual_seed(0)
net = torch.nn.Linear(300, 300)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
rule = hvd.rules.ODSGD(warmup=1)
optimizer = hvd.DelayedOptimizer(optimizer, net.named_parameters(), rule=rule)
def step():
    optimizer.zero_grad()
    net(torch.full((4, 300), 1.0 + hvd.rank())).square().mean().backward()
    optimizer.step()
for _ in range(3):
    step()
"""


def test_end_while_a_delayed_update_is_under_way_is_clean():
    program = (
        DELAYED
        + """
optimizer.synchronize()
if hvd.rank() == 1:
    step()  # starts an exchange in which nobody takes part
hvd.broadcast(torch.ones(1), 1, name="rank 1 has come to here")
"""
    )
    reports = run_ranks(2, [sys.executable, "-c", program], 60)
    assert [(r.status, r.output) for r in reports] == [(0, "")] * 2, describe(reports)


def test_loss_of_a_rank_fails_the_next_delayed_step():
    program = (
        DELAYED
        + """
optimizer.synchronize()
if hvd.rank() == 1:
    os._exit(7)
step()  # starts an exchange that can not end
for _ in range(2):
    try:
        step()
    except hvd.HorovodInternalError as error:
        assert error.culprit == 1, (error, error.culprit)
        print("saw it:", error)
"""
    )
    reports = run_ranks(2, [sys.executable, "-c", program], 60)
    assert [report.status for report in reports] == [0, 7], describe(reports)
    assert reports[0].output.count("saw it:") == 2, describe(reports)
