"""What train_ec_dnn.py trains and evaluates on: parts of a whole, mirrored images, means."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import local_examples
import numpy as np
import pytest

from tests.support.made_up_data import draw, png, write_cifar100, write_records

SHAPE = (3, 32, 32)


def by_bytes(images: np.ndarray, labels: np.ndarray) -> list[tuple[bytes, int]]:
    return sorted((image.tobytes(), int(label)) for image, label in zip(images, labels))


def contents(dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    images, labels = zip(*(dataset[i] for i in range(len(dataset))))
    return np.stack(images), np.array(labels)


def test_parts_of_arrays_make_the_whole() -> None:
    source = local_examples.load("digits", "", 3, (), 0)
    whole = source.part(slice(None))
    parts = [source.part(slice(rank, None, 4)) for rank in range(4)]
    assert source.size == len(whole[0]) == 1437
    together = [np.concatenate(arrays) for arrays in zip(*parts)]
    assert by_bytes(*together) == by_bytes(*whole)
    assert len(source.test) == 360


def test_cifar_is_mirrored_and_less_the_mean_of_each_pixel(tmp_path: Path) -> None:
    train, held_out = (draw(count, SHAPE, 100, seed=count) for count in (12, 4))
    write_cifar100(tmp_path, train, held_out)
    source = local_examples.load("cifar100-mirrored", str(tmp_path), 0, (), 0)
    assert (source.classes, source.size) == (100, 12)
    mean = train[0].mean(axis=0)
    found = []
    for rank in range(3):
        images, labels = contents(source.part(slice(rank, None, 3)))
        assert (images.dtype, len(images)) == (np.float32, 8)
        np.testing.assert_array_equal(images[4:], images[:4, ..., ::-1])
        np.testing.assert_array_equal(labels[4:], labels[:4])
        found += by_bytes(np.rint(images[:4] * 64 + mean).astype(np.uint8), labels[:4])
    assert sorted(found) == by_bytes(*train)
    images, labels = contents(source.test)
    np.testing.assert_allclose(images * 64 + mean, held_out[0], atol=1e-3)
    np.testing.assert_array_equal(labels, held_out[1])


def test_imagenet_is_read_image_by_image(tmp_path: Path) -> None:
    """The middle of images whose shorter side is 256, mirrored ones last."""
    images = draw(3, (3, 256, 300), 2)[0]
    packed = [png(image.transpose(1, 2, 0)) for image in images]
    write_records(tmp_path, packed, packed[:1])
    source = local_examples.load("imagenet-rec", str(tmp_path), 0, (3, 224, 224), 7)
    assert (source.classes, source.size, len(source.test)) == (7, 3, 1)
    mean = np.array([123.68, 116.78, 103.94]).reshape(3, 1, 1)
    middle = (images[:, :, 16:240, 38:262] - mean).astype(np.float32)
    image, label = source.test[0]
    np.testing.assert_array_equal(image, middle[0])
    assert label == 0
    found, labels = contents(source.part(slice(None)))
    assert by_bytes(found[:3], labels[:3]) == by_bytes(middle, np.array([0, 1, 0]))
    np.testing.assert_array_equal(found[3:], found[:3, ..., ::-1])


@pytest.mark.parametrize(("name", "missing"), [
    ("cifar10-mirrored", "data_batch_1.bin or data_batch_1"),
    ("cifar100-mirrored", "train.bin or train"), ("imagenet-rec", "train.idx")])
def test_missing_files_are_named(tmp_path: Path, name: str, missing: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"needs {missing}, which is not in {tmp_path}"):
        local_examples.load(name, str(tmp_path), 0, (3, 224, 224), 2)
