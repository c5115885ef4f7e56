"""Our models against gluoncv's of the same name and the papers' sizes, and LeNet on real digits.

gluoncv is needed, not optional: without it the tests fail. It is imported by them, and not by every
process that collects them.
"""

from __future__ import annotations

from typing import Any

import kvstore_ext  # noqa: F401  before mxnet, which it makes importable on Python 3.12

# isort: split
import mxnet as mx
import numpy as np
import pytest
from gluon_models import VGG, ResNetCifar, get_model, model_names
from gluon_models.layers import ResponseNorm
from mxnet import autograd, gluon, nd
from mxnet.gluon import HybridBlock
from sklearn.datasets import load_digits

# The same network: our name and options, gluoncv's name and options, height and width of the
# images. gluoncv's GoogLeNet takes 224x224 only, its InceptionV3 299x299; the others are smaller
# here.
TWINS = {
    "alexnet": ("alexnet", {"batch_norm": False}, "alexnet", {}, 64),
    "cifar_resnet20_v1": ("cifar_resnet20_v1", {}, "cifar_resnet20_v1", {}, 8),
    "cifar_resnet110_v1": ("cifar_resnet110_v1", {}, "cifar_resnet110_v1", {}, 8),
    "googlenet": ("googlenet", {}, "googlenet", {}, 224),
    "googlenet-aux": ("googlenet", {"aux_logits": True}, "googlenet", {"aux_logits": True}, 224),
    "inceptionv3": ("inceptionv3", {}, "inceptionv3", {}, 299),
    "resnet50_v1": ("resnet50_v1", {}, "resnet50_v1", {}, 64),
    "vgg11": ("vgg11", {}, "vgg11", {}, 64),
    "vgg13": ("vgg13", {}, "vgg13", {}, 32),
    "vgg16": ("vgg16", {}, "vgg16", {}, 32),
    "vgg19": ("vgg19", {}, "vgg19", {}, 32),
    "vgg11-bn": ("vgg11", {"batch_norm": True}, "vgg11_bn", {}, 32),
}


def twins(key: str, classes: int) -> tuple[HybridBlock, HybridBlock]:
    """Our network and gluoncv's, neither initialised."""
    from gluoncv import model_zoo

    name, options, reference_name, reference_options, _ = TWINS[key]
    reference = model_zoo.get_model(reference_name, classes=classes, **reference_options)
    return get_model(name, classes=classes, **options), reference


def images(size: int, batch: int = 2) -> nd.NDArray:
    """Noise of shape (batch, 3, size, size), the same in every call."""
    pixels = np.random.default_rng(0).standard_normal((batch, 3, size, size))
    return nd.array(pixels, dtype="float32")


def parameters(net: HybridBlock) -> list[gluon.Parameter]:
    return list(net.collect_params().values())


def initialise_alike(ours: HybridBlock, reference: HybridBlock, x: nd.NDArray) -> None:
    """Give both networks the same values, no two layers alike, running statistics included."""
    rng = np.random.default_rng(1)
    for net in (ours, reference):
        net.infer_shape(x)
        net.initialize(mx.init.Zero())  # others draw numbers for seconds
    for mine, theirs in zip(parameters(ours), parameters(reference)):
        if theirs.name.endswith("weight"):
            fan_in = np.prod(theirs.shape[1:])
            value = rng.standard_normal(theirs.shape, dtype="float32") * np.sqrt(2 / fan_in)
        elif theirs.name.endswith(("gamma", "running_var")):
            value = rng.uniform(0.5, 1.5, theirs.shape)
        else:
            value = rng.uniform(-0.5, 0.5, theirs.shape)
        mine.set_data(nd.array(value))
        theirs.set_data(nd.array(value))


def as_list(result: Any) -> list[nd.NDArray]:
    """What a network returned, as a list even if it is one array."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def observe(net: HybridBlock, x: nd.NDArray) -> dict[str, list[nd.NDArray]]:
    """Everything that one inference and one training step show of a network."""
    inferred = as_list(net(x))
    mx.random.seed(2)  # every network drops the same features
    with autograd.record():
        trained = as_list(net(x))
    autograd.backward(trained)
    weights = [p for p in parameters(net) if p.grad_req != "null"]
    statistics = [p for p in parameters(net) if p.grad_req == "null"]
    return {
        "inference": inferred,
        "training": trained,
        "gradients": [p.grad() for p in weights],
        "running statistics": [p.data() for p in statistics],
    }


def assert_all_close(ours: list[nd.NDArray], reference: list[nd.NDArray], what: str) -> None:
    """Equal to 1e-4 of the largest value in each array.

    The gradient of a bias that batch normalisation cancels is nothing but rounding: what is
    below 1e-6 of the largest value of all the arrays counts as zero.
    """
    assert len(ours) == len(reference), what
    scales = [float(array.abs().max().asscalar()) for array in reference]
    for index, (mine, theirs, scale) in enumerate(zip(ours, reference, scales)):
        assert mine.shape == theirs.shape, f"{what}, array {index}"
        difference = float((mine - theirs).abs().max().asscalar())
        assert difference <= 1e-4 * scale + 1e-6 * max(scales), f"{what}, array {index}"


@pytest.mark.parametrize("key", TWINS)
def test_parameter_shapes_are_gluoncv_s_in_the_same_order(key: str) -> None:
    ours, reference = twins(key, classes=1000)
    for net in (ours, reference):
        net.infer_shape(images(max(224, TWINS[key][-1]), batch=1))
    assert [p.shape for p in parameters(ours)] == [p.shape for p in parameters(reference)]


# Which differ from others in their numbers of layers, or are parts of others.
SIMILAR = ("cifar_resnet110_v1", "googlenet", "vgg11", "vgg13", "vgg16", "vgg19")


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=[pytest.mark.all_only] * (key in SIMILAR)) for key in TWINS],
)
def test_same_weights_give_gluoncv_s_outputs_and_gradients(key: str) -> None:
    ours, reference = twins(key, classes=10)
    size = TWINS[key][-1]
    x = images(size, batch=1 if size > 100 else 2)
    initialise_alike(ours, reference, x)
    for hybridize in (False, True):
        ours.hybridize(hybridize)
        reference.hybridize(hybridize)
        mine, theirs = observe(ours, x), observe(reference, x)
        for what in theirs:
            assert_all_close(mine[what], theirs[what], f"{what}, hybridized: {hybridize}")


@pytest.mark.parametrize(
    ("key", "millions"),
    [
        ("alexnet", 61.10),
        ("cifar_resnet110_v1", 1.795),
        ("googlenet", 6.62),
        ("googlenet-aux", 13.00),
        ("inceptionv3", 23.83),
        ("resnet50_v1", 25.58),
        ("vgg11", 132.86),
        ("vgg13", 133.05),
        ("vgg16", 138.36),
        ("vgg19", 143.67),
    ],
)
def test_number_of_trained_parameters(key: str, millions: float) -> None:
    name, options = TWINS[key][:2]
    net = get_model(name, **options)
    net.infer_shape(images(224, batch=1))
    count = sum(np.prod(p.shape) for p in parameters(net) if p.grad_req != "null")
    assert count / 1e6 == pytest.approx(millions, abs=0.005)


# The smallest images that the docstrings promise.
SMALLEST = [
    ("alexnet", {}, 63),
    ("alexnet_caffe", {}, 55),
    ("alexnet_caffe", {"batch_norm": True}, 55),
    ("cifar_resnet20_v1", {}, 1),
    ("cifarnet", {}, 6),
    ("googlenet", {}, 32),
    ("googlenet", {"aux_logits": True}, 80),
    ("googlenet_caffe", {}, 47),
    ("googlenet_caffe", {"aux_logits": True}, 80),
    ("inceptionv3", {}, 75),
    ("lenet", {}, 4),
    ("nin", {}, 6),
    ("nin_digits", {}, 6),
    ("resnet50_v1", {}, 32),
    ("vgg11", {}, 32),
]


@pytest.mark.parametrize(("name", "options", "size"), SMALLEST)
def test_blocks_are_registered_in_the_order_of_use(
    name: str, options: dict[str, Any], size: int
) -> None:
    net = get_model(name, classes=3, **options)
    net.initialize()
    registered: list[str] = []
    used: list[str] = []

    def watch(block: HybridBlock) -> None:
        if block._reg_params:
            registered.append(block.name)
            block.register_forward_pre_hook(lambda block, _: used.append(block.name))

    net.apply(watch)
    logits = as_list(net(images(size)))
    assert used == registered
    assert [y.shape for y in logits] == [(2, 3)] * len(logits)


@pytest.mark.all_only
def test_lenet_learns_digits_as_its_docstring_says() -> None:
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    pixels = nd.array(digits.images[order][:, None] / 16, dtype="float32")
    labels = nd.array(digits.target[order])
    held_back = len(order) // 5
    training_set = gluon.data.ArrayDataset(pixels[held_back:], labels[held_back:])
    mx.random.seed(0)
    np.random.seed(0)  # shuffles the batches
    net = get_model("lenet", classes=10)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    sgd = {"learning_rate": 0.05, "momentum": 0.9}
    trainer = gluon.Trainer(net.collect_params(), "sgd", sgd, kvstore=None)
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(20):
        for x, y in gluon.data.DataLoader(training_set, 64, shuffle=True, last_batch="discard"):
            with autograd.record():
                loss = cross_entropy(net(x), y)
            loss.backward()
            trainer.step(len(y))
    predicted = net(pixels[:held_back]).argmax(axis=1)
    assert float((predicted == labels[:held_back]).mean().asscalar()) > 0.98


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown model 'resnet5'") as raised:
        get_model("resnet5")
    for name in model_names():
        assert name in str(raised.value)
        assert isinstance(get_model(name, classes=2), HybridBlock)


@pytest.mark.parametrize("classes", [0, -1, 2.0, "10", True])
def test_classes_must_be_a_positive_integer(classes: Any) -> None:
    with pytest.raises(ValueError, match=f"classes is {classes!r}"):
        get_model("vgg11", classes=classes)


def test_an_option_that_the_model_lacks_is_an_error() -> None:
    with pytest.raises(TypeError, match="aux_logits"):
        get_model("vgg11", aux_logits=True)


def test_vgg_of_another_depth_is_an_error() -> None:
    with pytest.raises(ValueError, match="depth is 12; the depths allowed are 11, 13, 16, 19"):
        VGG(depth=12)


def test_cifar_resnet_of_another_depth_is_an_error() -> None:
    with pytest.raises(ValueError, match="depth is 100; the depths allowed are 6 \\* n \\+ 2"):
        ResNetCifar(depth=100)


@pytest.mark.parametrize(("name", "shape", "count"), [
    ("nin", (1, 3, 32, 32), 966_986),
    ("nin_digits", (1, 1, 8, 8), 18_298),
])
def test_network_in_network_has_nine_convolutions(
    name: str, shape: tuple[int, ...], count: int
) -> None:
    net = get_model(name, classes=10)
    net.infer_shape(nd.zeros(shape))
    trained = [p for p in parameters(net) if p.grad_req != "null"]
    assert sum(int(np.prod(p.shape)) for p in trained) == count
    kernels = [p.shape for p in trained if len(p.shape) == 4]
    assert [height for _, _, height, _ in kernels] == [shape[2] // 8 + 1 | 1, 1, 1] * 2 + [3, 1, 1]


# The published bvlc_alexnet.caffemodel has so many; GoogLeNet's follow from table 1 of its paper.
@pytest.mark.parametrize(("name", "options", "size", "count"), [
    ("alexnet_caffe", {}, 227, 60_965_224),
    ("googlenet_caffe", {}, 224, 6_998_552),
    ("googlenet_caffe", {"aux_logits": True}, 224, 13_378_280),
])
def test_caffe_s_networks_have_as_many_parameters_as_its_files(
    name: str, options: dict[str, Any], size: int, count: int
) -> None:
    net = get_model(name, **options)
    net.infer_shape(images(size, batch=1))
    trained = [p for p in parameters(net) if p.grad_req != "null"]
    assert sum(int(np.prod(p.shape)) for p in trained) == count
    for parameter in trained:
        factors = (parameter.lr_mult, parameter.wd_mult)
        assert factors == ((2, 0) if parameter.name.endswith("bias") else (1, 1))


def test_the_last_layer_of_alexnet_is_as_large_as_the_terngrad_paper_says() -> None:
    net = get_model("alexnet_caffe", batch_norm=True)
    net.infer_shape(images(227, batch=1))
    sizes = [int(np.prod(p.shape)) for p in parameters(net) if p.grad_req != "null"]
    assert sum(sizes[-2:]) / sum(sizes) == pytest.approx(0.067, abs=5e-4)


def test_caffe_s_googlenet_has_the_paper_s_kernels_and_begins_as_caffe() -> None:
    net = get_model("googlenet_caffe", classes=3)
    net.initialize()
    net(images(64))
    kernels = [p.shape[2] for p in parameters(net) if len(p.shape) == 4]
    assert kernels == [7, 1, 3] + [1, 1, 3, 1, 5, 1] * 9
    first = net.up_to_4a[0]
    weights = first.weight.data().asnumpy()
    limit = (3 / (3 * 7 * 7)) ** 0.5
    assert 0.98 * limit < np.abs(weights).max() <= limit
    assert (first.bias.data().asnumpy() == np.float32(0.2)).all()
    assert not net.head[-1].bias.data().asnumpy().any()


def test_cifarnet_has_the_tutorial_s_layers() -> None:
    net = get_model("cifarnet", classes=10)
    x = images(24)
    net.infer_shape(x)
    dense = [p.shape for p in parameters(net) if "dense" in p.name and len(p.shape) == 2]
    assert dense == [(384, 64 * 6 * 6), (192, 384), (10, 192)]


def test_response_norm_follows_its_formula() -> None:
    x = images(2).asnumpy() * 30
    x = np.concatenate([x] * 4, axis=1)  # 12 channels, of which 9 are neighbours
    norm = ResponseNorm(channels=9, alpha=0.001)
    expected = np.empty_like(x)
    for channel in range(12):
        squares = (x[:, max(0, channel - 4) : channel + 5] ** 2).sum(axis=1)
        expected[:, channel] = x[:, channel] / (1 + 0.001 / 9 * squares) ** 0.75
    np.testing.assert_allclose(norm(nd.array(x)).asnumpy(), expected, rtol=1e-4)
