"""ImageNet, or other images in RecordIO files, for train_image.py: how they are read and augmented.

The files are those that MXNet's im2rec.py writes: train.rec, train.idx and val.rec. For
train_ec_dnn.py local_examples.py reads them, and needs val.idx as well.

- inception: crops of random area and shape, mirrored at random (Szegedy et al. 2015, "Rethinking
  the inception architecture", but for the colours).
- caffe: a random crop of the image, whose shorter side has 256 pixels, mirrored at random, as with
  Caffe's AlexNet and GoogLeNet. Images packed by `im2rec.py --resize 256 --center-crop` are the
  squares out of which Krizhevsky et al. 2012 crop.
- none: the middle of that image, as the Slim-DP paper (section 4.1).

Images to validate on are cropped in the middle. The mean of each channel is subtracted: Caffe's
AlexNet and the Slim-DP paper subtract that of each pixel. Only inception then divides by the
deviation, unless a scale says by how much.
"""
from __future__ import annotations

import math
from typing import Any, Iterator

from datasets import Batch, Dataset, find

SHORTER_SIDE = 256  # of caffe and none, in pixels
MEAN = {"mean_r": 123.68, "mean_g": 116.78, "mean_b": 103.94}
DEVIATION = {"std_r": 58.4, "std_g": 57.12, "std_b": 57.38}


def training_options(augment: str) -> dict[str, Any]:
    """Those of ImageRecordIter."""
    if augment == "inception":
        return {"random_resized_crop": True, "min_random_area": 0.08, "min_aspect_ratio": 3 / 4,
                "max_aspect_ratio": 4 / 3, "rand_mirror": True}
    drawn = augment == "caffe"
    return {"resize": SHORTER_SIDE, "rand_crop": drawn, "rand_mirror": drawn}


def normalisation(augment: str, scale: float | None) -> dict[str, float]:
    """Those of ImageRecordIter."""
    if scale is not None:
        return {**MEAN, **dict.fromkeys(DEVIATION, scale)}
    return {**MEAN, **(DEVIATION if augment == "inception" else {})}


def check_labels(labels: Any, classes: int, file: str) -> None:
    """Raises ValueError where MXNet's loss would take a label for another class."""
    found = labels.asnumpy()
    if found.min() < 0 or found.max() >= classes:
        raise ValueError(f"{file} has labels {found.min():g} to {found.max():g}; with --classes "
                         f"{classes} they must be 0 to {classes - 1}")


def imagenet_rec(data_dir: str, image_shape: tuple[int, ...], classes: int, seed: int,
                 threads: int, augment: str = "inception", scale: float | None = None) -> Dataset:
    """Opens the files; see `datasets.load`.

    Each worker reads its own part of train.rec. The index says how many examples there are, so
    that workers whose parts differ in size still make the same steps. MXNet draws the crops of a
    batch anew in every epoch and for every worker, but not for every batch of an epoch.
    """
    import mxnet as mx

    if augment != "inception" and max(image_shape[1:]) > SHORTER_SIDE:
        raise ValueError(f"--image-shape has {max(image_shape[1:])} pixels; --augment {augment} "
                         f"crops images of {SHORTER_SIDE}")
    paths = {name: find([name], [data_dir], "imagenet-rec")
             for name in ("train.rec", "train.idx", "val.rec")}
    with open(paths["train.idx"]) as index:
        train_size = sum(1 for _ in index)
    decoding = {"data_shape": image_shape, "preprocess_threads": threads,
                **normalisation(augment, scale)}
    middle_of = math.ceil(image_shape[1] / 0.875) if augment == "inception" else SHORTER_SIDE

    def train(epoch: int, batch_size: int, rank: int, num_workers: int) -> Iterator[Batch]:
        # Parts are of as many, but the last one, which has what is left.
        if (num_workers - 1) * math.ceil(train_size / num_workers) >= train_size:
            raise ValueError(f"{paths['train.rec']} holds {train_size} examples, too few for "
                             f"{num_workers} workers")
        # MXNet draws for the i-th image of any batch by this number plus i.
        own = batch_size // num_workers
        reader = mx.io.ImageRecordIter(
            path_imgrec=paths["train.rec"], path_imgidx=paths["train.idx"], shuffle=True,
            seed=seed + epoch, seed_aug=((seed + epoch) * num_workers + rank) * own,
            num_parts=num_workers, part_index=rank,
            batch_size=own, **training_options(augment), **decoding)
        steps = math.ceil(train_size / batch_size)
        while steps > 0:
            for batch in reader:
                check_labels(batch.label[0], classes, paths["train.rec"])
                yield batch.data[0], batch.label[0]
                steps -= 1
                if steps == 0:
                    break
            reader.reset()

    def validation(batch_size: int) -> Iterator[Batch]:
        reader = mx.io.ImageRecordIter(
            path_imgrec=paths["val.rec"], batch_size=batch_size, resize=middle_of, **decoding)
        for batch in reader:
            valid = batch_size - batch.pad
            check_labels(batch.label[0][:valid], classes, paths["val.rec"])
            yield batch.data[0][:valid], batch.label[0][:valid]

    return Dataset(classes, image_shape, train_size, train, validation)
