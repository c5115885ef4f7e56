"""The data sets of examples and benchmarks: where their files lie, how they are split over workers.

Nothing here downloads anything. ``digits`` comes with scikit-learn; the others are read from
``--data-dir`` in the form in which their authors publish them, and a missing file is named
together with every place where it was looked for.

All workers make the same steps. The examples of an epoch are put in an order that depends on
the seed and the epoch alone, the order is continued from its start until it fills whole global
batches, and worker ``rank`` takes every ``num_workers``-th example. So no worker makes a step
fewer than another, which would leave a synchronous job waiting for it, and a global batch holds
the same examples whatever the number of workers.
"""
from __future__ import annotations

import gzip
import math
import os
import pickle
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Sequence, Tuple

import numpy as np

NAMES = ("digits", "mnist", "cifar10", "cifar10-24", "cifar100", "imagenet-rec")

# Images (batch, channel, height, width) float32 and labels (batch,) float32; NumPy or NDArray.
Batch = Tuple[Any, Any]
Transform = Callable[[np.ndarray, np.random.RandomState], np.ndarray]
Arrays = Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass
class Dataset:
    """A data set: its sizes, and two functions that make the batches of a worker.

    ``train(epoch, batch_size, rank, num_workers)`` yields ``steps(batch_size)`` batches of
    ``batch_size // num_workers`` examples. ``validation(batch_size)`` yields every validation
    example once, whichever worker asks; its last batch may be smaller.
    """

    classes: int
    image_shape: tuple[int, ...]
    train_size: int
    train: Callable[[int, int, int, int], Iterator[Batch]]
    validation: Callable[[int], Iterator[Batch]]

    def steps(self, batch_size: int) -> int:
        """Steps an epoch takes with ``batch_size`` examples over all workers."""
        return math.ceil(self.train_size / batch_size)


def load(name: str, data_dir: str, image_shape: tuple[int, ...], classes: int, seed: int,
         threads: int, augment: str = "inception", scale: float | None = None) -> Dataset:
    """Open a data set.

    ``image_shape``, ``classes``, ``threads`` (that decode), ``augment`` and ``scale`` are used by
    ``imagenet-rec`` alone (image_records.py), the others know theirs. Raises ``FileNotFoundError``
    naming the missing files and ``ValueError`` where a file holds something else than its name
    promises, or an option does not fit.
    """
    if name == "digits":
        return digits(seed)
    if name == "mnist":
        return mnist(data_dir, seed)
    if name == "cifar10":
        return cifar10(data_dir, seed)
    if name == "cifar10-24":
        return cifar10_24(data_dir, seed)
    if name == "cifar100":
        return cifar100(data_dir, seed)
    if name == "imagenet-rec":
        from image_records import imagenet_rec

        return imagenet_rec(data_dir, image_shape, classes, seed, threads, augment, scale)
    raise ValueError(f"data set {name!r} is unknown; known are {', '.join(NAMES)}")


def digits(seed: int, split: int = 0, train_size: int = 1437) -> Dataset:
    """scikit-learn's 1797 handwritten digits, 1x8x8, 0 to 16: 1437 to train on, 360 to validate.

    The split is the same for every ``seed``, so that accuracies can be compared; another ``split``
    chooses other examples.
    """
    return digits_of(digit_images(split, train_size), seed)


def digit_images(split: int, train_size: int) -> Arrays:
    """Images (n, 1, 8, 8) and labels (n,) to train on; then those to validate on."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8)
    order = np.random.RandomState(split).permutation(len(images))
    train, held_out = order[:train_size], order[train_size:]
    return images[train], labels[train], images[held_out], labels[held_out]


def digits_of(arrays: Arrays, seed: int) -> Dataset:
    """Those that `digit_images` has given; it needs no scikit-learn."""
    return from_arrays(*arrays, classes=10, seed=seed, augment=lambda images, random: images,
                       normalize=lambda images: images / 16)


def mnist(data_dir: str, seed: int) -> Dataset:
    """MNIST, 1x28x28: the four idx files, packed with gzip or not."""
    parts = []
    for part in ("train", "t10k"):
        for kind, header in (("images-idx3", 16), ("labels-idx1", 8)):
            name = f"{part}-{kind}-ubyte"
            path = find([name + ".gz", name], [data_dir], "mnist")
            with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
                content = np.frombuffer(file.read(), np.uint8, offset=header)
            parts.append(content.reshape(-1, 1, 28, 28) if header == 16 else content)
    return from_arrays(*parts, classes=10, seed=seed, augment=lambda images, random: images,
                       normalize=lambda images: (images - 33.32) / 78.57)


def cifar10(data_dir: str, seed: int) -> Dataset:
    """CIFAR-10, 3x32x32: its binary version or its Python version.

    The files of the Python version are pickles: read only those whose origin you trust.
    """
    mean = np.array([125.3, 123.0, 113.9], np.float32).reshape(3, 1, 1)
    deviation = np.array([63.0, 62.1, 66.7], np.float32).reshape(3, 1, 1)
    return from_arrays(*cifar10_files(data_dir), classes=10, seed=seed, augment=crop_and_flip,
                       normalize=lambda images: (images - mean) / deviation)


def cifar10_24(data_dir: str, seed: int) -> Dataset:
    """CIFAR-10 as the TernGrad paper has it (section 4.1), 3x24x24: see `crop_and_distort`.

    Images to validate on are cropped in the middle. Each image is brought to a mean of 0 and a
    deviation of 1.
    """
    train_images, train_labels, held_out, held_out_labels = cifar10_files(data_dir)

    def normalize(images: np.ndarray) -> np.ndarray:
        images = images - images.mean(axis=(1, 2, 3), keepdims=True)
        least = images[0].size ** -0.5
        return images / np.maximum(images.std(axis=(1, 2, 3), keepdims=True), least)

    data = from_arrays(train_images, train_labels, held_out[:, :, 4:28, 4:28], held_out_labels,
                       classes=10, seed=seed, augment=crop_and_distort, normalize=normalize)
    data.image_shape = (3, 24, 24)
    return data


def cifar10_files(data_dir: str) -> Arrays:
    """Images (n, 3, 32, 32) and labels (n,), uint8, to train on; then those to validate on."""
    folders = [data_dir] + [os.path.join(data_dir, folder)
                            for folder in ("cifar-10-batches-bin", "cifar-10-batches-py")]
    images, labels = [], []
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        path = find([name + ".bin", name], folders, "cifar10")
        if path.endswith(".bin"):
            rows = np.fromfile(path, np.uint8).reshape(-1, 1 + 3072)
            labels.append(rows[:, 0])
            images.append(rows[:, 1:].reshape(-1, 3, 32, 32))
        else:
            with open(path, "rb") as file:
                content = pickle.load(file, encoding="bytes")
            labels.append(np.array(content[b"labels"], np.uint8))
            images.append(content[b"data"].reshape(-1, 3, 32, 32))
    return np.concatenate(images[:5]), np.concatenate(labels[:5]), images[5], labels[5]


def cifar100(data_dir: str, seed: int) -> Dataset:
    """CIFAR-100, 3x32x32 in 100 classes: its binary version or its Python version, a pickle."""
    mean = np.array([129.3, 124.1, 112.4], np.float32).reshape(3, 1, 1)
    deviation = np.array([68.2, 65.4, 70.4], np.float32).reshape(3, 1, 1)
    return from_arrays(*cifar100_files(data_dir), classes=100, seed=seed, augment=crop_and_flip,
                       normalize=lambda images: (images - mean) / deviation)


def cifar100_files(data_dir: str) -> Arrays:
    """As `cifar10_files`; labels are the fine ones."""
    folders = [data_dir] + [os.path.join(data_dir, folder)
                            for folder in ("cifar-100-binary", "cifar-100-python")]
    arrays: list[np.ndarray] = []
    for name in ("train", "test"):
        path = find([name + ".bin", name], folders, "cifar100")
        if path.endswith(".bin"):
            rows = np.fromfile(path, np.uint8).reshape(-1, 2 + 3072)
            arrays += rows[:, 2:].reshape(-1, 3, 32, 32), rows[:, 1]
        else:
            with open(path, "rb") as file:
                content = pickle.load(file, encoding="bytes")
            arrays += (content[b"data"].reshape(-1, 3, 32, 32),
                       np.array(content[b"fine_labels"], np.uint8))
    return arrays[0], arrays[1], arrays[2], arrays[3]


def find(names: Sequence[str], folders: Sequence[str], dataset: str) -> str:
    """The first of ``names`` that one of ``folders`` holds; ``FileNotFoundError`` if none does."""
    for folder in folders:
        for name in names:
            if os.path.exists(os.path.join(folder, name)):
                return os.path.join(folder, name)
    places = ", ".join(os.path.abspath(folder) for folder in folders)
    raise FileNotFoundError(f"data set {dataset} needs {' or '.join(names)}, which is not in "
                            f"{places}; nothing is downloaded, so put it there or name its "
                            f"folder with --data-dir")


def crop_and_flip(images: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Shift each image by up to 4 pixels over a black border and mirror half of them.

    As in He et al., Deep Residual Learning (2015), section 4.2. ``images`` is (n, c, h, w).
    """
    count, _, height, width = images.shape
    padded = np.pad(images, ((0, 0), (0, 0), (4, 4), (4, 4)))
    rows = random.randint(0, 9, (count, 1)) + np.arange(height)
    columns = random.randint(0, 9, (count, 1)) + np.arange(width)
    mirrored = random.rand(count) < 0.5
    columns[mirrored] = columns[mirrored, ::-1]
    picked = padded[np.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return picked.transpose(0, 3, 1, 2)


def crop_and_distort(images: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """24x24 pixels from anywhere of each image, half of them mirrored, brighter or darker by up to
    63, with 0.2 to 1.8 times the contrast: TensorFlow's CIFAR-10 tutorial. (n, c, h, w) to float32.
    """
    count, _, height, width = images.shape
    rows = random.randint(0, height - 23, (count, 1)) + np.arange(24)
    columns = random.randint(0, width - 23, (count, 1)) + np.arange(24)
    mirrored = random.rand(count) < 0.5
    columns[mirrored] = columns[mirrored, ::-1]
    picked = images[np.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    picked = picked.transpose(0, 3, 1, 2).astype(np.float32)
    picked += random.uniform(-63, 63, (count, 1, 1, 1)).astype(np.float32)
    means = picked.mean(axis=(2, 3), keepdims=True)
    return (picked - means) * random.uniform(0.2, 1.8, (count, 1, 1, 1)).astype(np.float32) + means


def epoch_order(size: int, seed: int, epoch: int, batch_size: int, rank: int,
                num_workers: int) -> np.ndarray:
    """Indices of the examples that worker ``rank`` visits in ``epoch``, in order.

    int64, ``ceil(size / batch_size) * batch_size / num_workers`` of them on every worker;
    ``batch_size`` counts the examples of all workers and is a multiple of ``num_workers``.
    """
    order = np.random.RandomState([seed, epoch]).permutation(size)
    whole_batches = math.ceil(size / batch_size) * batch_size
    return np.resize(order, whole_batches)[rank::num_workers]


def from_arrays(train_images: np.ndarray, train_labels: np.ndarray, held_out_images: np.ndarray,
                held_out_labels: np.ndarray, *, classes: int, seed: int, augment: Transform,
                normalize: Callable[[np.ndarray], np.ndarray]) -> Dataset:
    """A data set held in memory; images are (n, c, h, w) of any dtype until they are used."""
    if len(train_images) != len(train_labels) or len(held_out_images) != len(held_out_labels):
        raise ValueError(f"{len(train_images)} and {len(held_out_images)} images have "
                         f"{len(train_labels)} and {len(held_out_labels)} labels")

    def train(epoch: int, batch_size: int, rank: int, num_workers: int) -> Iterator[Batch]:
        order = epoch_order(len(train_images), seed, epoch, batch_size, rank, num_workers)
        random = np.random.RandomState([seed, epoch, rank])
        for batch in order.reshape(-1, batch_size // num_workers):
            images = normalize(augment(train_images[batch], random).astype(np.float32))
            yield images, train_labels[batch].astype(np.float32)

    def validation(batch_size: int) -> Iterator[Batch]:
        for first in range(0, len(held_out_images), batch_size):
            batch = slice(first, first + batch_size)
            images = normalize(held_out_images[batch].astype(np.float32))
            yield images, held_out_labels[batch].astype(np.float32)

    return Dataset(classes, train_images.shape[1:], len(train_images), train, validation)
