"""Under torchrun: other ways to train and to start."""

import os
import sys
import tempfile

import fasthorovod.torch as hvd
import torch
import torch.distributed as dist
from train_common import alone, check_parity, model_of, own_rows, train


def full_values(model):
    return [getattr(p, "full_tensor", lambda p=p: p)().detach() for p in model.parameters()]


def fsdp():
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("fasthorovod")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    model = model_of(0)
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    assert type(model[0].weight).__name__ == "DTensor"
    train(model, own_rows())
    check_parity(full_values(model), alone())


def compile():
    dist.init_process_group("fasthorovod")
    model = torch.compile(
        torch.nn.parallel.DistributedDataParallel(model_of(dist.get_rank())), backend="aot_eager"
    )
    train(model, own_rows())
    check_parity(full_values(model), alone())


def horovod_first():
    """A world that hvd.init() made serves torch.distributed too."""
    rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
    with tempfile.NamedTemporaryFile() as secret:
        secret.write(b"the secret of this test")
        secret.flush()
        os.environ.update(
            FASTHOROVOD_RANK=rank,
            FASTHOROVOD_SIZE=size,
            FASTHOROVOD_SECRET_FILE=secret.name,
            FASTHOROVOD_RENDEZVOUS=f"127.0.0.1:{20000 + int(os.environ['MASTER_PORT']) % 10000}",
        )
        hvd.init()
    for _ in range(2):
        dist.init_process_group("fasthorovod")
        group = dist.new_group(list(range(int(size))))
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=group)
        dist.all_reduce(tensor)
        assert hvd.allreduce(torch.ones(2), op=hvd.Sum, name="x")[0] == int(size)
        dist.destroy_process_group()
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum, name="x")[0] == int(size)
    hvd.barrier()
    hvd.shutdown()


def file_store():
    folder = os.path.join(tempfile.gettempdir(), f"fasthorovod-{os.environ['MASTER_PORT']}")
    store = dist.FileStore(folder, int(os.environ["WORLD_SIZE"]))
    dist.init_process_group(
        "fasthorovod",
        store=store,
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    assert tensor[0] == dist.get_world_size()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
    print(f"[{os.environ['RANK']}] done\n", end="", flush=True)
