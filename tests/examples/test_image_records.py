"""Images in RecordIO files: every worker's steps, and what each augmentation does to a pixel."""
from __future__ import annotations

import re
from pathlib import Path

import datasets
import image_records
import numpy as np
import pytest
import sklearn.datasets

from tests.support import made_up_data
from tests.support.paths import EXAMPLES
from tests.support.processes import run_python

SHAPE = (3, 227, 227)


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Five to train on and three to validate, in two classes, as im2rec packs them."""
    folder = Path(sklearn.datasets.__file__).parent / "images"
    kinds = [(folder / name).read_bytes() for name in ("china.jpg", "flower.jpg")]
    made_up_data.write_records(
        tmp_path, [kinds[i % 2] for i in range(5)], [kinds[i % 2] for i in range(3)])
    return tmp_path


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of 256x256 whose red is the column and whose green the row."""
    folder = tmp_path_factory.mktemp("planes")
    rows, columns = np.mgrid[:256, :256]
    image = np.stack([columns, rows, np.zeros_like(rows)], axis=2).astype(np.uint8)
    made_up_data.write_records(folder, [made_up_data.png(image)] * 40, [made_up_data.png(image)])
    return folder


def places(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns and rows of the planes that an image's pixels were, (h, w) each."""
    return images[0] + image_records.MEAN["mean_r"], images[1] + image_records.MEAN["mean_g"]


def read(folder: Path, augment: str) -> tuple[np.ndarray, np.ndarray]:
    """What is trained on and what is validated on: (n, 3, 227, 227) each."""
    data = datasets.load("imagenet-rec", str(folder), SHAPE, 2, 0, 1, augment)
    (train, _), = data.train(1, 40, 0, 1)
    return train.asnumpy(), next(data.validation(1))[0].asnumpy()


def test_training_prints_the_five_likeliest_of_many_classes(photographs: Path) -> None:
    output = run_python(
        EXAMPLES / "train_image.py", "--dataset", "imagenet-rec", "--data-dir", photographs,
        "--classes", 100, "--image-shape", "3,32,32", "--batch-size", 2, "--epochs", 2,
        "--threads", 1, "--augment", "caffe", fork=True).stdout
    assert re.search(r"waiting +top 5$", output.splitlines()[1])
    first, last = ([float(word) for word in line.replace("-", "0").split()]
                   for line in output.splitlines()[2:4])
    for row in (first, last):
        # Of three photographs, whatever the size of the last batch.
        assert round(row[3] * 3, 2) in (0, 1, 2, 3)
        assert round(row[6] * 3, 2) in (0, 1, 2, 3)
        assert row[6] >= row[3]


def test_parts_make_equal_steps(photographs: Path) -> None:
    data = image_records.imagenet_rec(str(photographs), (3, 32, 32), classes=2, seed=0, threads=1)
    assert data.train_size == 5
    labels = [[int(label) for _, batch in data.train(1, 2, rank, 2) for label in batch.asnumpy()]
              for rank in range(2)]
    assert [len(part) for part in labels] == [3, 3]
    validated = [int(label) for _, batch in data.validation(2) for label in batch.asnumpy()]
    assert validated == [0, 1, 0]


def test_labels_beyond_the_classes_are_refused(photographs: Path) -> None:
    """MXNet's loss would take them for the last class."""
    data = image_records.imagenet_rec(str(photographs), (3, 32, 32), classes=1, seed=0, threads=1)
    for batches in (data.train(1, 5, 0, 1), data.validation(3)):
        with pytest.raises(ValueError, match="has labels 0 to 1; with --classes 1 they must be 0"):
            next(batches)


def test_caffe_crops_at_random_and_mirrors_half(planes: Path) -> None:
    train, held_out = read(planes, "caffe")
    assert train.shape == (40, *SHAPE)
    corners, mirrored = set(), 0
    for image in train:
        columns, rows = places(image)
        step = columns[0, 1] - columns[0, 0]
        mirrored += step < 0
        np.testing.assert_allclose(np.diff(columns, axis=1), np.sign(step), atol=1e-3)
        np.testing.assert_allclose(np.diff(rows, axis=0), 1, atol=1e-3)
        corners.add((round(columns.min()), round(rows.min())))
    assert 8 < mirrored < 32
    assert len(corners) > 20
    assert all(0 <= place <= 29 for corner in corners for place in corner)
    assert [round(place.min()) for place in places(held_out[0])] == [14, 14]


def test_epochs_and_workers_draw_other_crops(planes: Path) -> None:
    data = datasets.load("imagenet-rec", str(planes), SHAPE, 2, 0, 1, "caffe")
    drawn = [next(data.train(epoch, 10, rank, 2))[0].asnumpy().tobytes()
             for epoch in (1, 2) for rank in (0, 1)]
    assert len(set(drawn)) == 4


def test_no_crops_of_a_batch_are_those_of_another_worker_or_epoch(planes: Path) -> None:
    """At other places of the batch either."""
    data = datasets.load("imagenet-rec", str(planes), SHAPE, 2, 0, 1, "caffe")

    def crops(epoch: int, rank: int) -> list[tuple[int, int, bool]]:
        found = []
        for image in next(data.train(epoch, 20, rank, 2))[0].asnumpy():
            columns, rows = places(image)
            found.append((round(columns.min()), round(rows.min()), columns[0, 1] < columns[0, 0]))
        return found

    drawn = [crops(epoch, rank) for epoch in (1, 2, 3) for rank in (0, 1)]
    for number, one in enumerate(drawn):
        for other in drawn[number + 1 :]:
            for shift in range(1, 6):
                assert one[shift:] != other[:-shift]
                assert other[shift:] != one[:-shift]


def test_none_takes_the_middle_as_it_is(planes: Path) -> None:
    train, held_out = read(planes, "none")
    assert (train == held_out).all()
    columns, rows = places(train[0])
    np.testing.assert_allclose(columns, np.arange(14, 241)[None] * np.ones((227, 1)), atol=1e-3)
    np.testing.assert_allclose(rows, columns.T, atol=1e-3)


def test_inception_crops_areas_of_every_size(planes: Path) -> None:
    train, _ = read(planes, "inception")
    sides = [np.ptp(image[0]) * image_records.DEVIATION["std_r"] for image in train]
    assert min(sides) < 120
    assert max(sides) > 200


def test_pixels_are_divided_by_the_scale(planes: Path) -> None:
    data = datasets.load("imagenet-rec", str(planes), SHAPE, 2, 0, 1, "none", 58.0)
    (images, _), *_ = data.train(1, 10, 0, 1)
    for plane in places(images[0].asnumpy() * 58):
        np.testing.assert_allclose([plane.min(), plane.max()], [14, 240], atol=1e-2)


def test_a_crop_larger_than_the_image_is_refused(planes: Path) -> None:
    with pytest.raises(ValueError, match="--image-shape has 299 pixels; --augment caffe crops im"):
        datasets.load("imagenet-rec", str(planes), (3, 299, 299), 2, 0, 1, "caffe")
