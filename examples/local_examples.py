"""The data sets of train_ec_dnn.py: a worker's own examples, and those that all evaluate on.

Those that end in -mirrored, and imagenet-rec, are augmented as the EC-DNN paper says (section
6.1): images to train on are mirrored and not cropped, but for the middle of ImageNet's, whose sizes
differ. Here every image stands in the data set
twice, as it is and mirrored, so that an ensemble labels the very image from which its members
learn. What is subtracted is the mean of each pixel, of imagenet-rec that of each channel. Beyond
the paper, CIFAR's pixels are divided by 64, about their deviation, which suits common initial
values.

Images are read when they are asked for, so that ImageNet needs no memory for all of them.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Tuple

import datasets
import mxnet as mx
import numpy as np
from image_records import MEAN, SHORTER_SIDE
from mxnet import gluon

CIFAR_SCALE = 64.0

# An image (channels, height, width) and its class.
Example = Tuple[np.ndarray, int]


@dataclass
class Source:
    """A data set.

    ``part(slice(rank, None, num_workers))`` has a worker's examples as ``ec_dnn.Trainer`` takes
    them: the slice is of an order that the seed decides, so that parts of all workers make the
    whole. ``size`` counts images to train on, their mirror images apart.
    """

    classes: int
    size: int
    part: Callable[[slice], Any]
    test: gluon.data.Dataset


class Images(gluon.data.Dataset):
    """Images by number, less a mean and over a scale; mirrored ones follow the others."""

    def __init__(self, read: Callable[[int], Example], numbers: np.ndarray, mean: np.ndarray,
                 scale: float, mirrored: bool) -> None:
        self._read, self._numbers, self._mirrored = read, numbers, mirrored
        self._mean, self._scale = mean, scale

    def __len__(self) -> int:
        return len(self._numbers) * (2 if self._mirrored else 1)

    def __getitem__(self, place: int) -> Example:
        again, place = divmod(place, len(self._numbers))
        image, label = self._read(int(self._numbers[place]))
        image = ((image - self._mean) / self._scale).astype(np.float32)
        return (np.ascontiguousarray(image[..., ::-1]) if again else image), label


def load(name: str, data_dir: str, seed: int, image_shape: tuple[int, ...], classes: int) -> Source:
    """Opens a data set; the last two arguments are for imagenet-rec.

    Raises ``FileNotFoundError`` naming missing files and ``ValueError`` where one holds something
    else than its name promises.
    """
    if name == "imagenet-rec":
        return _of_records(data_dir, seed, image_shape, classes)
    if name == "cifar10-mirrored":
        return _of_arrays(datasets.cifar10_files(data_dir), 10, seed)
    if name == "cifar100-mirrored":
        return _of_arrays(datasets.cifar100_files(data_dir), 100, seed)
    data = datasets.load(name, data_dir, (), 0, seed, 1)
    (images, labels), = data.train(1, data.train_size, 0, 1)
    test = (np.concatenate(arrays) for arrays in zip(*data.validation(256)))
    return Source(data.classes, data.train_size, lambda part: (images[part], labels[part]),
                  gluon.data.ArrayDataset(*test))


def _of_arrays(arrays: datasets.Arrays, classes: int, seed: int) -> Source:
    images, labels, test_images, test_labels = arrays
    mean = images.mean(axis=0, dtype=np.float64)
    order = np.random.RandomState([seed, 1]).permutation(len(images))
    return Source(
        classes, len(images),
        lambda part: Images(
            lambda i: (images[i], int(labels[i])), order[part], mean, CIFAR_SCALE, mirrored=True),
        Images(lambda i: (test_images[i], int(test_labels[i])), np.arange(len(test_images)), mean,
               CIFAR_SCALE, mirrored=False))


def _of_records(data_dir: str, seed: int, image_shape: tuple[int, ...], classes: int) -> Source:
    files = {}
    for part in ("train", "val"):
        datasets.find([f"{part}.idx"], [data_dir], "imagenet-rec")
        path = datasets.find([f"{part}.rec"], [data_dir], "imagenet-rec")
        files[part] = gluon.data.vision.ImageRecordDataset(path)
    mean = np.array([MEAN[f"mean_{colour}"] for colour in "rgb"]).reshape(3, 1, 1)
    size = image_shape[2], image_shape[1]  # width and height, as mx.image has them

    def reader(part: str) -> Callable[[int], Example]:
        def read(i: int) -> Example:
            image, label = files[part][i]
            middle, _ = mx.image.center_crop(mx.image.resize_short(image, SHORTER_SIDE), size)
            return middle.asnumpy().transpose(2, 0, 1), int(label)
        return read

    order = np.random.RandomState([seed, 1]).permutation(len(files["train"]))
    return Source(
        classes, len(order), lambda part: Images(reader("train"), order[part], mean, 1.0, True),
        Images(reader("val"), np.arange(len(files["val"])), mean, 1.0, False))
