"""Fashion-MNIST from the four files of its Debian package, held in memory."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np

DEFAULT_FOLDER = "/usr/share/datasets/fashion-mnist"
_IMAGES_MAGIC = 2051
_LABELS_MAGIC = 2049
# Mean and standard deviation of the pixels of the training images, scaled to 0..1.
_MEAN = 0.2860
_DEVIATION = 0.3530


class DataError(Exception):
    """The data set is missing or damaged; the message says what to do."""


def folder() -> Path:
    """Where the data set is expected."""
    return Path(os.environ.get("FASHION_MNIST", DEFAULT_FOLDER))


def _read(path: Path, magic: int, dimensions: int) -> np.ndarray:
    """The bytes of one idx file, shaped as its header says."""
    try:
        raw = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise DataError(
            f"{path} is missing: type 'apt install dataset-fashion-mnist', or point FASHION_MNIST "
            "at a folder that holds the four gzipped idx files"
        ) from None
    except (OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    header = np.frombuffer(raw[: 4 + 4 * dimensions], dtype=">i4")
    values = np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * dimensions)
    if len(header) != 1 + dimensions or header[0] != magic or values.size != header[1:].prod():
        raise DataError(f"{path} is not the idx file it should be")
    return values.reshape(header[1:])


class Split:
    """Images and labels of one half of the data set."""

    def __init__(self, prefix: str, where: Path | None = None) -> None:
        where = where or folder()
        self.images = _read(where / f"{prefix}-images-idx3-ubyte.gz", _IMAGES_MAGIC, 3)
        self.labels = _read(where / f"{prefix}-labels-idx1-ubyte.gz", _LABELS_MAGIC, 1)
        if len(self.images) != len(self.labels):
            raise DataError(
                f"{where} holds {len(self.images)} images for {len(self.labels)} labels"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normalised float32 images (rows, 1, 28, 28) and int64 labels."""
        pixels = self.images[rows].astype(np.float32) * np.float32(1.0 / 255.0)
        images = (pixels - np.float32(_MEAN)) / np.float32(_DEVIATION)
        return images[:, None], self.labels[rows].astype(np.int64)


def training() -> Split:
    """The 60,000 training images."""
    return Split("train")


def test() -> Split:
    """The 10,000 test images."""
    return Split("t10k")


class Shard:
    """The batches of one rank, epoch after epoch.

    Every rank draws the same permutation of an epoch and takes every size-th row of it, so the
    ranks share an epoch without a word between them. What does not fill a batch is left out.
    """

    def __init__(self, length: int, rank: int, size: int, batch: int, seed: int) -> None:
        self.length = length
        self.rank = rank
        self.size = size
        self.batch = batch
        self.seed = seed
        self.steps_per_epoch = length // (size * batch)
        self._epoch = -1
        self._rows = np.empty(0, dtype=np.int64)

    def rows(self, step: int) -> np.ndarray:
        """The rows of a step, counted from 0 over all epochs."""
        epoch, step_of_epoch = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            order = np.random.default_rng([self.seed, epoch]).permutation(self.length)
            self._rows = order[self.rank :: self.size]
            self._epoch = epoch
        return self._rows[step_of_epoch * self.batch : (step_of_epoch + 1) * self.batch]
