"""Smaller types for the way. A compressor is a class with compress() and decompress()."""

from __future__ import annotations

import torch


class Compressor:
    """What a compressor must have; write another by deriving from this."""

    @staticmethod
    def compress(tensor):
        """(what travels, whatever decompress() needs to know)."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, context):
        """What arrived, as the type that was given to compress()."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, context):
        return tensor


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16, and gives their own type back."""

    @staticmethod
    def compress(tensor):
        if tensor.dtype.is_floating_point and tensor.dtype != torch.float16:
            return tensor.to(torch.float16), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor, context):
        return tensor if context is None else tensor.to(context)


class Compression:
    """The compressors that come with the package."""

    none = NoneCompressor
    fp16 = FP16Compressor
