"""Gradients through the collectives follow Horovod's conventions."""

import fasthorovod.torch as hvd
import torch
from checks_common import Raises


def weights(rank, shape=(3, 2)):
    return torch.arange(1.0, 1.0 + torch.Size(shape).numel()).reshape(shape) * (rank + 1)


def check_allreduce_gradient_is_the_same_allreduce():
    total = sum(weights(r) for r in range(hvd.size()))
    for op, wanted in ((hvd.Sum, total), (hvd.Average, total / hvd.size())):
        tensor = torch.randn(3, 2, requires_grad=True)
        (hvd.allreduce(tensor, op=op) * weights(hvd.rank())).sum().backward()
        torch.testing.assert_close(tensor.grad, wanted)
    tensor = torch.randn(3, 2, requires_grad=True)
    scaled = hvd.allreduce(tensor, op=hvd.Sum, name="s", prescale_factor=2.0, postscale_factor=3.0)
    (scaled * weights(hvd.rank())).sum().backward()
    torch.testing.assert_close(tensor.grad, total * 6)


def check_gradient_of_other_reductions_is_refused():
    tensor = torch.randn(3, requires_grad=True)
    result = hvd.allreduce(tensor, op=hvd.Max)
    with Raises(NotImplementedError, "gradient"):
        result.sum().backward()


def check_grouped_allreduce_gradient():
    a = torch.randn(3, 2, requires_grad=True)
    b = torch.randn(2, requires_grad=True)
    x, y = hvd.grouped_allreduce([a, b])
    ((x * weights(hvd.rank())).sum() + (y * (hvd.rank() + 1)).sum()).backward()
    torch.testing.assert_close(a.grad, sum(weights(r) for r in range(hvd.size())) / hvd.size())
    mean = sum(r + 1 for r in range(hvd.size())) / hvd.size()
    torch.testing.assert_close(b.grad, torch.full((2,), mean))


def check_allgather_gradient_is_my_part_of_the_average():
    rows = [r + 1 for r in range(hvd.size())]
    tensor = torch.randn(rows[hvd.rank()], 2, requires_grad=True)
    shape = (sum(rows), 2)
    (hvd.allgather(tensor) * weights(hvd.rank(), shape)).sum().backward()
    average = sum(weights(r, shape) for r in range(hvd.size())) / hvd.size()
    offset = sum(rows[: hvd.rank()])
    torch.testing.assert_close(tensor.grad, average[offset : offset + rows[hvd.rank()]])


def check_broadcast_gradient_goes_to_the_root():
    for root in range(hvd.size()):
        tensor = torch.randn(3, 2, requires_grad=True)
        (hvd.broadcast(tensor, root) * weights(hvd.rank())).sum().backward()
        average = sum(weights(r) for r in range(hvd.size())) / hvd.size()
        wanted = average if hvd.rank() == root else torch.zeros(3, 2)
        torch.testing.assert_close(tensor.grad, wanted)


def check_gradient_through_compression():
    tensor = torch.ones(4, requires_grad=True)
    hvd.allreduce(tensor, compression=hvd.Compression.fp16).sum().backward()
    assert tensor.grad.dtype == torch.float32
    torch.testing.assert_close(tensor.grad, torch.ones(4))
