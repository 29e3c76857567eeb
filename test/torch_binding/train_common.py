"""A small training, and what data-parallel training of it must come to."""

import torch
import torch.distributed as dist

STEPS = 100
ROWS = 8  # of each rank


def model_of(seed, dtype=torch.float64):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(12, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Linear(32, 1)
    ).to(dtype)


def batch_of(step, size, dtype):
    generator = torch.Generator().manual_seed(step)
    inputs = torch.randn(ROWS * size, 12, generator=generator, dtype=torch.float64)
    return inputs.to(dtype), inputs.sum(1, keepdim=True).sin().to(dtype)


def train(model, rows, dtype=torch.float64, steps=STEPS):
    """Trains on these rows of every batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        inputs, targets = batch_of(step, dist.get_world_size(), dtype)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs[rows]), targets[rows]).backward()
        optimizer.step()


def own_rows():
    return slice(dist.get_rank() * ROWS, (dist.get_rank() + 1) * ROWS)


def alone(dtype=torch.float64):
    """The weights of one process that sees all rows."""
    model = model_of(0, dtype)
    train(model, slice(None), dtype)
    return [parameter.detach() for parameter in model.parameters()]


def check_parity(weights, references, tolerance=1e-6):
    """Close to one process, and every rank has the same bits."""
    for mine, reference in zip(weights, references):
        assert (mine - reference).abs().max() < tolerance, (mine - reference).abs().max()
        copies = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(copies, mine)
        assert all(torch.equal(copy, copies[0]) for copy in copies)
