"""All-reduce of sparse tensors at the torch.distributed door."""

import torch
import torch.distributed as dist
from checks_c10d_common import Raises, needs_peers, rank, size
from torch.distributed import ReduceOp


def sparse(of_rank, sparse_dims=1, dense_dims=0, dtype=torch.float32):
    """Has of_rank elements: none on rank 0, and some in common with all later ranks."""
    indices = torch.zeros(sparse_dims, of_rank, dtype=torch.int64)
    indices[0] = torch.arange(of_rank)
    values = torch.full((of_rank, *[2] * dense_dims), of_rank + 1).to(dtype)
    return torch.sparse_coo_tensor(indices, values, [7] * sparse_dims + [2] * dense_dims)


def total(**shape):
    return sum(sparse(r, **shape).to_dense() for r in range(size()))


def check_sums_of_sparse_tensors():
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bfloat16):
        for sparse_dims in (1, 2):
            for dense_dims in (0, 1, 2):
                shape = {"sparse_dims": sparse_dims, "dense_dims": dense_dims, "dtype": dtype}
                tensor = sparse(rank(), **shape)
                dist.all_reduce(tensor)
                assert tensor.is_sparse and tensor.dtype == dtype
                assert torch.equal(tensor.to_dense(), total(**shape)), shape


def check_averages_of_sparse_tensors():
    tensor = sparse(rank())
    dist.all_reduce(tensor, ReduceOp.AVG)
    torch.testing.assert_close(tensor.to_dense(), total() / size())


def check_elements_given_twice():
    indices = torch.tensor([[1, 1, 3]])
    tensor = torch.sparse_coo_tensor(indices, torch.ones(3), [4])
    dist.all_reduce(tensor)
    assert torch.equal(tensor.to_dense(), torch.tensor([0.0, 2.0, 0.0, 1.0]) * size())


def check_many_at_once_among_dense_ones():
    tensors = [sparse(rank(), dense_dims=1) * step for step in range(20)]
    dense = [torch.full((3,), float(step)) for step in range(20)]
    works = []
    for a, b in zip(tensors, dense):
        works += [dist.all_reduce(a, async_op=True), dist.all_reduce(b, async_op=True)]
    for work in reversed(works):
        work.wait()
    for step in range(20):
        assert torch.equal(tensors[step].to_dense(), step * total(dense_dims=1))
        assert torch.equal(dense[step], torch.full((3,), float(step * size())))


def check_futures_of_sparse_sums():
    tensor = sparse(rank())
    future = dist.all_reduce(tensor, async_op=True).get_future()

    def again(future):
        more = sparse(rank())
        dist.all_reduce(more)
        return future.value()[0].to_dense() + more.to_dense()

    assert torch.equal(future.then(again).wait(), 2 * total())


def check_dropped_works():
    tensors = [sparse(rank()) for _ in range(10)]
    for tensor in tensors:
        dist.all_reduce(tensor, async_op=True)
    dist.group.WORLD._get_backend(torch.device("cpu"))._wait_for_pending_works()
    for tensor in tensors:
        assert torch.equal(tensor.to_dense(), total())


@needs_peers
def check_sparse_tensors_that_do_not_fit_together():
    tensor = sparse(rank(), dtype=torch.float64 if rank() == 1 else torch.float32)
    with Raises(dist.DistBackendError, "mismatch", "float64", "float32"):
        dist.all_reduce(tensor)
    tensor = torch.sparse_coo_tensor([[0]], [1.0], [4 + (rank() == 1)])
    with Raises(dist.DistBackendError, "mismatch", "[5]", "[4]"):
        dist.all_reduce(tensor)
    dist.barrier()


def check_sparse_refusals():
    # Most of these torch refuses itself, before it comes to the backend.
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    with Raises(ValueError, "SUM", "AVG"):
        dist.all_reduce(sparse(rank()), ReduceOp.MAX)
    with Raises(ValueError, "SparseCsr", "to_sparse()"):
        backend.allreduce([torch.eye(3).to_sparse_csr()])
    for call in (
        lambda: backend.broadcast([sparse(1)]),
        lambda: backend.allgather([[sparse(1)] * size()], [sparse(1)]),
        lambda: backend.reduce([sparse(1)]),
    ):
        with Raises(ValueError, "sparse"):
            call()
    dist.barrier()


def check_ddp_with_sparse_gradients():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(20, 4, sparse=True), torch.nn.Linear(4, 1))
    alone = torch.nn.Sequential(torch.nn.Embedding(20, 4), torch.nn.Linear(4, 1))
    alone.load_state_dict(model.state_dict())
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    words = torch.arange(size() * 5).reshape(size(), 5) % 20
    ddp(words[rank()]).square().mean().backward()
    alone(words.reshape(-1)).square().mean().backward()
    assert model[0].weight.grad.is_sparse
    for mine, reference in zip(model.parameters(), alone.parameters()):
        grad = mine.grad.to_dense() if mine.grad.is_sparse else mine.grad
        torch.testing.assert_close(grad, reference.grad)
