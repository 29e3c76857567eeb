"""Collective communication for PyTorch over plain TCP.

The Horovod interface is the module fasthorovod.torch. Importing either starts no thread.
"""

from . import _build_info

__version__ = _build_info.VERSION

__all__ = ["__version__"]
