"""The option exclude_last: which gradients travel as floats, from the first round on.

All workers push the same, so that sums of floats are exact, and those of three values are not.
"""
from __future__ import annotations

import warnings
from typing import Any, Callable, Iterable

import kvstore_ext
import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon
from mxnet.kvstore import KVStore

from tests.support.results import Arrays

ROUNDS = 2
SIZES = {"c": 6, "b": 5, "a": 4}  # of layers, the last of which is the first by name
INPUT = (8, 7)


def open_store(**options: Any) -> KVStore:
    store = mx.kv.create("p3")
    store.set_gradient_compression({"type": "terngrad", "exclude_last": True, **options})
    return store


def travels_as_floats(store: KVStore, sum_up: Callable[[], tuple[Arrays, Arrays]]) -> set[str]:
    """The parameters whose sums are exact in every round; `sum_up` returns gradients and sums."""
    found = []
    for _ in range(ROUNDS):
        gradients, sums = sum_up()
        found += [
            {
                name
                for name, gradient in gradients.items()
                if np.array_equal(sums[name], gradient * store.num_workers)
            }
        ]
    assert found[1:] == found[:-1]
    return found[0]


def arrays_of(values: Iterable[tuple[str, mx.nd.NDArray]]) -> Arrays:
    return {name: value.asnumpy() for name, value in values}


def inputs() -> mx.nd.NDArray:
    return mx.nd.array(np.random.RandomState(5).uniform(-1, 1, INPUT))


def layers() -> dict[str, gluon.nn.Dense]:
    return {name: gluon.nn.Dense(size, prefix=f"{name}_") for name, size in SIZES.items()}


class DeclaredBackwards(gluon.HybridBlock):
    """A network whose last layer is declared first."""

    def __init__(self) -> None:
        super().__init__()
        for name, layer in reversed(layers().items()):
            setattr(self, name, layer)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.a(self.b(self.c(x)))


def in_order() -> gluon.Block:
    network = gluon.nn.HybridSequential()
    network.add(*layers().values())
    return network


def excluded_by_trainer(network: gluon.Block, **options: Any) -> set[str]:
    """What travels as floats, by name; that stats() says so is asserted."""
    store = open_store(**options)
    mx.random.seed(7)
    network.initialize()
    network(inputs())
    parameters = network.collect_params()
    trainer = gluon.Trainer(parameters, "sgd", kvstore=store, update_on_kvstore=False)

    def sum_up() -> tuple[Arrays, Arrays]:
        with autograd.record():
            loss = (network(inputs()) ** 2).sum()
        loss.backward()
        gradients = arrays_of((name, each.grad()) for name, each in parameters.items())
        trainer.allreduce_grads()
        return gradients, arrays_of((name, each.grad()) for name, each in parameters.items())

    found = travels_as_floats(store, sum_up)
    assert {trainer._params[key].name for key in store.stats()["excluded"]} == found
    store.close()
    return found


def the_last_layer_is_the_one_that_a_trainers_network_declares_last(_: KVStore) -> None:
    assert excluded_by_trainer(in_order()) == {"a_weight", "a_bias"}


def the_last_layer_is_the_one_of_a_hybridized_networks_graph(_: KVStore) -> None:
    network = DeclaredBackwards()
    network.hybridize()
    assert excluded_by_trainer(network) == {"a_weight", "a_bias"}


def the_last_layer_may_be_named(_: KVStore) -> None:
    assert excluded_by_trainer(DeclaredBackwards(), last_layer=["a_*"]) == {"a_weight", "a_bias"}


def the_last_layer_is_the_one_of_a_modules_symbol(_: KVStore) -> None:
    store = open_store()
    value = mx.sym.var("data")
    for name, size in SIZES.items():
        value = mx.sym.FullyConnected(value, num_hidden=size, name=name)
    module = mx.mod.Module(mx.sym.SoftmaxOutput(value, name="softmax"), context=mx.cpu())
    module.bind([("data", INPUT)], [("softmax_label", INPUT[:1])])
    mx.random.seed(7)
    module.init_params(mx.init.Uniform(0.5))
    module.init_optimizer(store)
    group = module._exec_group

    def gradients() -> Arrays:
        return arrays_of((n, arrays[0]) for n, arrays in zip(group.param_names, group.grad_arrays))

    def sum_up() -> tuple[Arrays, Arrays]:
        module.forward_backward(mx.io.DataBatch([inputs()], [mx.nd.arange(INPUT[0]) % 4]))
        own = gradients()
        module.update()
        return own, gradients()

    found = travels_as_floats(store, sum_up)
    assert found == set(store.stats()["excluded"]) == {"a_weight", "a_bias"}
    store.close()


def excluded_of_keys(store: KVStore) -> set[str]:
    """As excluded_by_trainer, of a script's own keys."""
    shapes = {"c": (6, 7), "b": (5, 6), "a": (4, 5), "bias": (4,)}
    random = np.random.RandomState(5)
    values = {name: random.uniform(-1, 1, shape).astype("f") for name, shape in shapes.items()}
    for name, value in values.items():
        store.init(name, mx.nd.zeros(value.shape))

    def sum_up() -> tuple[Arrays, Arrays]:
        sums = {name: mx.nd.array(value) for name, value in values.items()}
        for name, array in sums.items():
            store.pushpull(name, array)
        return values, arrays_of(sums.items())

    found = travels_as_floats(store, sum_up)
    assert set(store.stats()["excluded"]) == found
    store.close()
    return found


def the_last_layer_is_the_last_key_that_a_script_declares(_: KVStore) -> None:
    store = open_store(scaler_sharing=False)
    store.adopt_optimizer(mx.optimizer.SGD())
    assert excluded_of_keys(store) == {"a", "bias"}


def the_last_layer_may_be_named_by_a_script(_: KVStore) -> None:
    assert excluded_of_keys(open_store(last_layer=["b"])) == {"b"}


def a_last_layer_that_is_not_known_is_warned_of_once(_: KVStore) -> None:
    for options, words in (({}, "nobody has told"), ({"last_layer": ["fc8*"]}, r"\['fc8\*'\]")):
        with pytest.warns(UserWarning, match=words) as caught:
            assert excluded_of_keys(open_store(**options)) == set()
        named = [given.filename for given in caught if given.category is UserWarning]
        assert named == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert excluded_of_keys(open_store(exclude_last=False)) == set()


def a_last_layer_is_named_only_to_be_excluded(store: KVStore) -> None:
    with pytest.raises(kvstore_ext.OptionError, match=r"\['fc8'\].*exclude_last must be True"):
        open_store(exclude_last=False, last_layer=["fc8"])


CHECKS = {
    check.__name__: check
    for check in (
        the_last_layer_is_the_one_that_a_trainers_network_declares_last,
        the_last_layer_is_the_one_of_a_hybridized_networks_graph,
        the_last_layer_may_be_named,
        the_last_layer_is_the_one_of_a_modules_symbol,
        the_last_layer_is_the_last_key_that_a_script_declares,
        the_last_layer_may_be_named_by_a_script,
        a_last_layer_that_is_not_known_is_warned_of_once,
        a_last_layer_is_named_only_to_be_excluded,
    )
}
