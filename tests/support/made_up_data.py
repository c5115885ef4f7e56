"""Data sets made up on the spot, in the files in which their authors publish them."""
from __future__ import annotations

import gzip
import io
import pickle
import struct
from pathlib import Path
from typing import Iterable, Tuple

import mxnet as mx
import numpy as np
from PIL import Image

# Images (n, channels, height, width) and labels (n,), uint8.
Arrays = Tuple[np.ndarray, np.ndarray]


def draw(count: int, shape: tuple[int, ...], classes: int, seed: int = 0) -> Arrays:
    random = np.random.RandomState(seed)
    images = random.randint(0, 256, (count, *shape)).astype(np.uint8)
    return images, random.randint(0, classes, count).astype(np.uint8)


def write_mnist(folder: Path, train: Arrays, held_out: Arrays) -> None:
    """Images packed, labels not."""
    for part, (images, labels) in (("train", train), ("t10k", held_out)):
        with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">4i", 2051, len(images), 28, 28) + images.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2i", 2049, len(labels)) + labels.tobytes())


def write_cifar10(folder: Path, train: Arrays, held_out: Arrays, binary: bool = True) -> None:
    """The examples to train on are shared out to five files."""
    folder = folder / ("cifar-10-batches-bin" if binary else "cifar-10-batches-py")
    folder.mkdir(parents=True)
    batches = [(images, labels) for images, labels in zip(*(np.split(part, 5) for part in train))]
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    for name, (images, labels) in zip(names, [*batches, held_out]):
        pixels = images.reshape(len(images), -1)
        if binary:
            np.column_stack([labels, pixels]).tofile(folder / f"{name}.bin")
        else:
            (folder / name).write_bytes(pickle.dumps({b"data": pixels, b"labels": list(labels)}))


def write_cifar100(folder: Path, train: Arrays, held_out: Arrays, binary: bool = True) -> None:
    """Coarse labels, which nobody asks for, are all 255."""
    folder = folder / ("cifar-100-binary" if binary else "cifar-100-python")
    folder.mkdir(parents=True)
    for name, (images, labels) in (("train", train), ("test", held_out)):
        pixels, coarse = images.reshape(len(images), -1), np.full_like(labels, 255)
        if binary:
            np.column_stack([coarse, labels, pixels]).tofile(folder / f"{name}.bin")
        else:
            (folder / name).write_bytes(pickle.dumps(
                {b"data": pixels, b"fine_labels": list(labels), b"coarse_labels": list(coarse)}))


def write_records(folder: Path, train: Iterable[bytes], held_out: Iterable[bytes]) -> None:
    """Encoded images, of two classes in turn, as im2rec.py packs them."""
    for part, images in (("train", train), ("val", held_out)):
        writer = mx.recordio.MXIndexedRecordIO(
            str(folder / f"{part}.idx"), str(folder / f"{part}.rec"), "w")
        for i, image in enumerate(images):
            header = mx.recordio.IRHeader(0, i % 2, i, 0)
            writer.write_idx(i, mx.recordio.pack(header, image))
        writer.close()


def png(image: np.ndarray) -> bytes:
    """An image (height, width, 3) of red, green and blue, uint8, without loss."""
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(file, format="png")
    return file.getvalue()
