"""All-reduces of torch's gloo for fasthorovod-bench, which holds this text and starts it as

    python3 -c TEXT rank size host

and talks to it over standard input and output, a line a message:

    here PORT                     torch is loaded; rank 0: its store listens at host:PORT
    meet PORT                     the ranks connect, and answer "ready"
    run COUNT TYPE OP WARM_UP ITERATIONS CONTRIBUTION RESULT
                                  all-reduces of COUNT elements, whose values repeat the bytes given
                                  in hexadecimal digits; the answer is "took" and, for each
                                  iteration, the microseconds of the slowest rank, a colon, and how
                                  many values were wrong
    step COMPUTE_US FORWARD SCALE WARM_UP STEPS CONTRIBUTION RESULT ELEMENTS:READY,...
                                  training steps (see step_contestant.h) in which gradients of so
                                  many elements are there after that part of the backward pass;
                                  they are put in buckets as DistributedDataParallel does it; the
                                  answer is as above
    error TEXT                    the answer to anything that failed, and the last word

It ends with its standard input.
"""

import os
import sys
import time
from datetime import timedelta

PERIOD = 7
LIMIT = timedelta(seconds=60)
# Of DistributedDataParallel: bytes of the first bucket, and of the others.
FIRST_BUCKET, OTHER_BUCKETS = 1 << 20, 25 << 20
OPERATIONS = {"average": "AVG", "sum": "SUM", "min": "MIN", "max": "MAX", "product": "PRODUCT"}


def claim_output():
    """Standard output as a file for messages alone; what others print goes to standard error."""
    messages = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return messages


def route_to(host, port):
    """The address of this host that faces another one."""
    import socket

    for family, kind, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return probe.getsockname()[0]
    raise OSError(f"{host} has no address")


class Gloo:
    """One rank of gloo."""

    def __init__(self, rank, size, host):
        # Its warning that an address has no name would come with every job.
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        self.torch, self.dist = torch, dist
        self.rank, self.size, self.host = rank, size, host
        self.store = self.open_store(0) if rank == 0 else None
        self.port = self.store.port if rank == 0 else 0

    def open_store(self, port):
        """The store where the ranks meet; port 0 takes any that is free, for rank 0."""
        return self.dist.TCPStore(
            self.host,
            port,
            self.size,
            is_master=self.rank == 0,
            timeout=LIMIT,
            wait_for_workers=False,
        )

    def meet(self, port):
        """Connects the ranks."""
        gloo = self.dist.ProcessGroupGloo
        store = self.store or self.open_store(port)
        options = gloo._Options()
        options._timeout = LIMIT
        interface = os.environ.get("GLOO_SOCKET_IFNAME")
        if interface:
            options._devices = [gloo.create_device(interface=interface)]
        else:
            options._devices = [gloo.create_device(hostname=route_to(self.host, port))]
        self.group = gloo(self.dist.PrefixStore("bench", store), self.rank, self.size, options)
        self.exchange([0.0, 0.0])

    def exchange(self, own):
        """What each rank gives, for all of them: as the bench's own exchange does it."""
        values = self.torch.zeros(self.size, len(own), dtype=self.torch.float64)
        values[self.rank] = self.torch.tensor(own, dtype=self.torch.float64)
        self.group.allreduce([values]).wait()
        return values

    def run(self, count, kind, operation, warm_up, iterations, own, expected):
        """The loop of contestant.h; for each iteration the slowest time and how much was wrong."""
        torch = self.torch
        values = torch.empty(count, dtype=getattr(torch, kind))
        bits = values.view(getattr(torch, f"int{8 * values.element_size()}"))
        own, expected = (torch.frombuffer(bytearray(x), dtype=bits.dtype) for x in (own, expected))
        call = self.dist.AllreduceOptions()
        call.reduceOp = getattr(self.dist.ReduceOp, OPERATIONS[operation])

        def once():
            start = time.perf_counter_ns()
            self.group.allreduce([values], call).wait()
            return time.perf_counter_ns() - start

        return self.measure(once, [bits], warm_up, iterations, own, expected)

    def measure(self, once, buffers, warm_up, iterations, own, expected):
        """Samples of once(), which says how many nanoseconds it took; buffers are of integers."""
        last, samples = [0.0, 0.0], []
        for i in range(-warm_up, iterations + 1):
            for buffer in buffers:
                fill(buffer, own)
            times, wrong = self.exchange(last).unbind(1)
            if i > 0:
                samples.append((times.max().item(), int(wrong.sum().item())))
            if i == iterations:
                return samples
            took = once()
            before = 0 if i > 0 else last[1]
            last = [took / 1000, before + sum(count_wrong(buffer, expected) for buffer in buffers)]
        return samples

    def exchange_gradients(self, start, compute_us, buckets):
        """One step; its time in nanoseconds."""
        works = []
        for ready, bucket in buckets:
            time.sleep(max(0, start + compute_us * ready * 1000 - time.perf_counter_ns()) / 1e9)
            works.append(self.group.allreduce([bucket]))
        for work in works:
            work.wait()
        return time.perf_counter_ns() - start

    def steps(self, compute_us, buckets, warm_up, steps, own, expected):
        """The loop of step_contestant.h; samples as run() gives them."""
        own, expected = (
            self.torch.frombuffer(bytearray(x), dtype=self.torch.int32) for x in (own, expected)
        )
        views = [bucket.view(self.torch.int32) for _, bucket in buckets]

        def once():
            return self.exchange_gradients(time.perf_counter_ns(), compute_us, buckets)

        return self.measure(once, views, warm_up, steps, own, expected)

    def buckets(self, forward, scale, gradients):
        """Buckets of float32, and after which part of a step's computation each is there."""
        made, elements, limit = [], 0, FIRST_BUCKET // scale
        for position, (count, ready) in enumerate(gradients, 1):
            elements += count
            if 4 * elements >= limit or position == len(gradients):
                bucket = self.torch.empty(elements, dtype=self.torch.float32)
                made.append((forward + (1 - forward) * ready, bucket))
                elements, limit = 0, OTHER_BUCKETS // scale
        return made


def whole_periods(values):
    """A view of one row a period, and what is left."""
    whole = values.numel() // PERIOD * PERIOD
    return values[:whole].view(-1, PERIOD), values[whole:]


def fill(values, pattern):
    """Fills with the pattern, over and over."""
    rows, rest = whole_periods(values)
    rows.copy_(pattern.expand_as(rows))
    rest.copy_(pattern[: rest.numel()])


def count_wrong(values, pattern):
    """How many elements are not the pattern's."""
    rows, rest = whole_periods(values)
    wrong = (rows != pattern).sum() + (rest != pattern[: rest.numel()]).sum()
    return int(wrong.item())


def answer(gloo, words):
    """What the bench hears upon its line."""
    if words[0] == "meet":
        gloo.meet(int(words[1]))
        return "ready"
    samples = {"run": run_answer, "step": step_answer}[words[0]](gloo, *words[1:])
    return "took " + " ".join(f"{time_us:.3f}:{wrong}" for time_us, wrong in samples)


def run_answer(gloo, count, kind, operation, warm_up, iterations, own, expected):
    """What a line "run" asks for."""
    own, expected = bytes.fromhex(own), bytes.fromhex(expected)
    return gloo.run(int(count), kind, operation, int(warm_up), int(iterations), own, expected)


def step_answer(gloo, compute_us, forward, scale, warm_up, steps, own, expected, gradients):
    """What a line "step" asks for."""
    pairs = [pair.split(":") for pair in gradients.split(",")]
    gradients = [(int(elements), float(ready)) for elements, ready in pairs]
    buckets = gloo.buckets(float(forward), int(scale), gradients)
    own, expected = bytes.fromhex(own), bytes.fromhex(expected)
    return gloo.steps(float(compute_us), buckets, int(warm_up), int(steps), own, expected)


def main():
    messages = claim_output()
    try:
        gloo = Gloo(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
        print("here", gloo.port, file=messages)
        for line in sys.stdin:
            print(answer(gloo, line.split()), file=messages)
    except ModuleNotFoundError as error:
        print(
            f"error --backend gloo needs torch, but {sys.executable} has none ({error}): type "
            f"'{sys.executable} -m pip install torch', or name another one with --python",
            file=messages,
        )
    except Exception as error:
        text = " ".join(str(error).split())
        print(f"error {type(error).__name__}: {text}", file=messages)
    messages.flush()
    # No farewells: other ranks may be gone already.
    os._exit(0)


if __name__ == "__main__":
    main()
