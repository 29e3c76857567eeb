"""Under torchrun: data-parallel training equals training in one process."""

import fasthorovod.distributed  # noqa: F401 - registers the backend
import fasthorovod.torch as hvd
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from train_common import alone, check_parity, model_of, own_rows, train

VARIANTS = (
    {},
    {"gradient_as_bucket_view": True},
    {"find_unused_parameters": True},
    {"static_graph": True},
)


def check_variant(dtype, references, **options):
    model = model_of(dist.get_rank(), dtype)
    together = DistributedDataParallel(model, bucket_cap_mb=0.001, **options)
    # Rank 0's values, which DDP gave to all.
    first = [parameter.detach() for parameter in model_of(0, dtype).parameters()]
    check_parity([parameter.detach() for parameter in together.parameters()], first, 1e-30)
    train(together, own_rows(), dtype)
    check_parity([parameter.detach() for parameter in together.parameters()], references)


def check_shared_buckets(dtype, reference):
    """The buckets lie in shared memory: those of the start, and those of the second step."""
    with hvd.shared_allocator(min_bytes=1) as made:
        check_variant(dtype, reference, gradient_as_bucket_view=True)
    assert made.shared_bytes > 0
    assert made.missed_bytes == 0


def main():
    references = {}
    for dtype in (torch.float64, torch.float32):
        for options in VARIANTS:
            dist.init_process_group("fasthorovod")
            if dtype not in references:
                references[dtype] = alone(dtype)
            check_variant(dtype, references[dtype], **options)
            if options.get("gradient_as_bucket_view"):
                check_shared_buckets(dtype, references[dtype])
            rank = dist.get_rank()
            dist.destroy_process_group()
    print(f"[{rank}] replicas are equal\n", end="", flush=True)


if __name__ == "__main__":
    main()
