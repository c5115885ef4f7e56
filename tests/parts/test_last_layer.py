"""Which of a network's parameters are found to be its last layer's."""
from __future__ import annotations

from typing import Any

import mxnet as mx
import pytest
from kvstore_ext.compression.last_layer import last_declared, last_of_graph
from mxnet.gluon.model_zoo import vision

fc, var = mx.sym.FullyConnected, mx.sym.var


@pytest.mark.parametrize(
    ("shapes", "last"),
    [
        ({"w": (4, 3), "b": (4,), "v": (2, 4), "c": (2,)}, ["v", "c"]),
        ({"b": (4,), "w": (4, 3), "c": (2,), "v": (2, 4)}, ["c", "v"]),
        ({"w": (4, 3), "b": (4,), "v": (2, 4)}, ["v"]),
        ({"w": (4, 3), "b": (4,), "v": (4, 4), "c": (4,)}, ["v", "c"]),
        ({"w": (4, 3, 2, 2), "gamma": (4,), "beta": (4,)}, ["w", "gamma", "beta"]),
        ({"a": (4,), "b": (3,)}, ["b"]),
        ({"only": (4, 4)}, ["only"]),
        ({}, []),
    ],
)
def test_by_declaration(shapes: dict[str, tuple[int, ...]], last: list[str]) -> None:
    assert last_declared(shapes) == last


def with_head(x: Any) -> Any:
    return mx.sym.SoftmaxOutput(fc(x, num_hidden=2, name="head"), name="softmax")


def two_heads(x: Any) -> Any:
    middle = fc(x, num_hidden=5, name="middle")
    return mx.sym.Group([with_head(middle), fc(middle, num_hidden=3, name="other")])


def with_a_bias_of_its_own(x: Any) -> Any:
    product = mx.sym.dot(fc(x, num_hidden=5, name="middle"), var("matrix").transpose())
    return mx.sym.broadcast_add(product, var("added"))


def tied(x: Any) -> Any:
    weight = var("weight")
    embedded = mx.sym.Embedding(x, weight, input_dim=9, output_dim=4)
    middle = fc(embedded, num_hidden=4, flatten=False, name="middle")
    return fc(middle, weight, num_hidden=9, flatten=False, name="decoder")


def normalised_last(x: Any) -> Any:
    return mx.sym.BatchNorm(fc(x, num_hidden=5, name="middle"), name="norm")


GRAPHS: dict[str, tuple[Any, list[str]]] = {
    "a loss": (with_head(fc(var("data"), num_hidden=5)), ["head_weight", "head_bias"]),
    "two outputs": (
        two_heads(var("data")),
        ["head_weight", "head_bias", "other_weight", "other_bias"],
    ),
    "operations of its own": (with_a_bias_of_its_own(var("data")), ["matrix", "added"]),
    "tied weights": (tied(var("data")), ["weight", "decoder_bias"]),
    "vectors at the end": (
        normalised_last(var("data")),
        ["middle_weight", "middle_bias", "norm_gamma", "norm_beta"],
    ),
}
SHAPES = {"weight": (9, 4), "matrix": (3, 5)}


@pytest.mark.parametrize("name", GRAPHS)
def test_by_graph(name: str) -> None:
    symbol, last = GRAPHS[name]
    shapes = {
        each: SHAPES.get(each) or ((2, 3) if each.endswith("weight") else (3,))
        for each in symbol.list_arguments()
        if each not in ("data", "softmax_label")
    }
    assert sorted(last_of_graph(symbol, shapes)) == sorted(last)


@pytest.mark.parametrize("name", ["vgg11", "resnet18_v2", "squeezenet1.0", "inceptionv3"])
def test_declaration_and_graph_of_known_networks_agree(name: str) -> None:
    network = vision.get_model(name)
    size = 299 if name == "inceptionv3" else 224
    symbol = network(var("data"))
    known = symbol.infer_shape(data=(1, 3, size, size))[0]
    shapes = {each: shape for each, shape in zip(symbol.list_arguments(), known) if each != "data"}
    declared = {each: shapes[each] for each in network.collect_params() if each in shapes}
    found = last_of_graph(symbol, declared)
    assert found == last_declared(declared)
    assert len(found) == 2
