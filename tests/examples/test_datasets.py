"""The examples' data sets: shards, files as they are published, augmentation."""
from __future__ import annotations

from pathlib import Path

import datasets
import numpy as np
import pytest

from tests.support.made_up_data import draw, write_cifar10, write_cifar100, write_mnist


@pytest.mark.parametrize(("size", "batch_size", "num_workers"), [
    (1437, 64, 2), (1437, 66, 3), (1, 8, 4), (7, 4, 4), (10, 6, 3), (12, 4, 2)])
def test_uneven_shards_make_equal_steps(size: int, batch_size: int, num_workers: int) -> None:
    orders = [datasets.epoch_order(size, 5, 2, batch_size, rank, num_workers)
              for rank in range(num_workers)]
    steps = -(-size // batch_size)
    assert {len(order) for order in orders} == {steps * batch_size // num_workers}
    assert set(np.concatenate(orders)) == set(range(size))
    # Each global batch is the one that a single worker would take.
    alone = datasets.epoch_order(size, 5, 2, batch_size, 0, 1).reshape(steps, batch_size)
    together = np.concatenate([order.reshape(steps, -1) for order in orders], axis=1)
    np.testing.assert_array_equal(np.sort(together), np.sort(alone))
    if size > 4:
        assert any(alone.ravel() != datasets.epoch_order(size, 5, 3, batch_size, 0, 1))


def test_splits_of_the_digits() -> None:
    """Each has every example once; the seed changes nothing but the order."""
    parts = []
    for seed, split in ((1, 0), (2, 0), (1, 1)):
        data = datasets.digits(seed, split, train_size=896)
        (images, _), = data.train(1, 896, 0, 1)
        (held_out, _), = data.validation(1000)
        assert (data.train_size, len(images), len(held_out)) == (896, 896, 901)
        parts.append([sorted(map(bytes, part)) for part in (images, held_out)])
    (train, held_out), again, (other_train, other_held_out) = parts
    assert again == [train, held_out]
    assert sorted(train + held_out) == sorted(other_train + other_held_out)
    assert held_out != other_held_out


def test_mnist_files(tmp_path: Path) -> None:
    train, held_out = (draw(count, (1, 28, 28), 10, seed=count) for count in (20, 4))
    write_mnist(tmp_path, train, held_out)
    data = datasets.mnist(str(tmp_path), seed=0)
    (images, labels), = data.validation(10)
    np.testing.assert_allclose(images * 78.57 + 33.32, held_out[0], atol=1e-3)
    np.testing.assert_array_equal(labels, held_out[1])
    assert sorted(label for _, batch in data.train(1, 10, 0, 1) for label in batch) == sorted(
        train[1])


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "python"])
def test_cifar10_files(tmp_path: Path, binary: bool) -> None:
    train, held_out = (draw(count, (3, 32, 32), 10, seed=count) for count in (30, 6))
    write_cifar10(tmp_path, train, held_out, binary)
    data = datasets.cifar10(str(tmp_path), seed=0)
    assert data.train_size == 30
    assert data.image_shape == (3, 32, 32)
    (images, read_labels), = data.validation(10)
    np.testing.assert_array_equal(read_labels, held_out[1])
    np.testing.assert_allclose(images[:, 0] * 63.0 + 125.3, held_out[0][:, 0], atol=1e-3)
    batches = list(data.train(1, 10, 0, 2))
    assert [images.shape for images, _ in batches] == [(5, 3, 32, 32)] * 3


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "python"])
def test_cifar100_files(tmp_path: Path, binary: bool) -> None:
    train, held_out = (draw(count, (3, 32, 32), 100, seed=count) for count in (30, 6))
    write_cifar100(tmp_path, train, held_out, binary)
    for found, written in zip(datasets.cifar100_files(str(tmp_path)), (*train, *held_out)):
        np.testing.assert_array_equal(found, written)
    data = datasets.load("cifar100", str(tmp_path), (), 0, 0, 1)
    assert (data.classes, data.image_shape, data.train_size) == (100, (3, 32, 32), 30)
    (images, labels), = data.validation(10)
    np.testing.assert_array_equal(labels, held_out[1])
    np.testing.assert_allclose(images[:, 2] * 70.4 + 112.4, held_out[0][:, 2], atol=1e-3)


def test_cropping_moves_the_image_and_keeps_its_pixels() -> None:
    image = np.arange(1, 1 + 3 * 8 * 8, dtype=np.float32).reshape(1, 3, 8, 8)
    found, rows, columns = set(), set(), set()
    for seed in range(40):
        moved = datasets.crop_and_flip(image, np.random.RandomState(seed))
        assert moved.shape == image.shape
        row, column = np.argwhere(moved[0, 0] > 0)[0]
        rows.add(row)
        columns.add(column)
        neighbours = moved[0, 0, row, column:column + 2]
        found.add(np.sign(neighbours[1] - neighbours[0]))
        assert set(moved[moved > 0]) <= set(image.ravel())
    assert found >= {1.0, -1.0}  # as it was, and mirrored
    assert min(len(rows), len(columns)) > 2
