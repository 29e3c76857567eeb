"""Fewer bytes for the way. A compressor is an object with compress(), decompress() and codec()."""

from __future__ import annotations

import math

import torch

# How values travel when nothing encodes them: the name of a codec, and its threshold.
NO_CODEC = ("none", 0.0)


class Compressor:
    """What a compressor must have; write another by deriving from this.

    A compressor can change the tensor that travels (compress() and decompress()), or leave the work
    to a codec of the engine (codec()), which encodes float32 within the all-reduce. The ones below
    do the latter, for Average and Sum; tensors with another reduction travel as they are.
    """

    @staticmethod
    def compress(tensor):
        """(what travels, whatever decompress() needs to know)."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, context):
        """What arrived, as the type that was given to compress()."""
        raise NotImplementedError

    @staticmethod
    def codec(tensor):
        """(name, threshold) of the codec for the tensor that compress() gave."""
        return NO_CODEC


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, context):
        return tensor


class _CodecCompressor(Compressor):
    """Leaves float32 and float64 to a codec, which makes float32 of them; the rest as they are."""

    @staticmethod
    def compress(tensor):
        if tensor.dtype == torch.float64:
            return tensor.to(torch.float32), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor, context):
        return tensor if context is None else tensor.to(context)


class FP16Compressor(_CodecCompressor):
    """Sends values as float16. The sum is made in float32 and rounded once, after scaling."""

    @staticmethod
    def codec(tensor):
        return ("fp16", 0.0) if tensor.dtype == torch.float32 else NO_CODEC


class BF16Compressor(_CodecCompressor):
    """Sends values as bfloat16. The sum is made in float32 and rounded once, after scaling."""

    @staticmethod
    def codec(tensor):
        return ("bf16", 0.0) if tensor.dtype == torch.float32 else NO_CODEC


class TwobitCompressor(_CodecCompressor):
    """Sends -threshold, 0 or +threshold of each value, and keeps the rest for its next step.

    The rest is kept under the operation's name, which must therefore be given. A value that is not
    finite is told to all ranks and never kept.

    threshold: in units of the values. DistributedOptimizer encodes momenta, so there a good one
        fits those.
    warmup: so many first steps of a DistributedOptimizer send gradients as they are.
    least_elements: tensors of a DistributedOptimizer with fewer elements are never encoded.
    """

    def __init__(self, threshold, warmup=200, least_elements=1024) -> None:
        number = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
        if not (number and 0 < threshold < math.inf):
            raise ValueError(f"threshold must be a positive, finite number, not {threshold!r}")
        for what, count in (("warmup", warmup), ("least_elements", least_elements)):
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise ValueError(f"{what} must be a number from 0, not {count!r}")
        self.threshold = float(threshold)
        self.warmup = warmup
        self.least_elements = least_elements

    def codec(self, tensor):
        return ("twobit", self.threshold) if tensor.dtype == torch.float32 else NO_CODEC


class Compression:
    """The compressors that come with the package."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
    twobit = TwobitCompressor
