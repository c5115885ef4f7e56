"""The forms in which a script asks a store for compression, and what it is told of them."""
from __future__ import annotations

import warnings
from typing import Any

import mxnet as mx
import pytest
from kvstore_ext import KVStoreError, OptionError
from kvstore_ext.methods import QSGD, TernGrad

pytestmark = pytest.mark.filterwarnings("ignore:Please use `csr_matrix`")  # MXNet's own


def trainer_of(**how: Any) -> mx.gluon.Trainer:
    """One that has made its first step, with an embedding and a dense layer."""
    network = mx.gluon.nn.Sequential()
    network.add(mx.gluon.nn.Embedding(3, 2, sparse_grad=how.pop("sparse", False)))
    network.add(mx.gluon.nn.Dense(2, in_units=2))
    network.initialize()
    trainer = mx.gluon.Trainer(network.collect_params(), "sgd", **how)
    with mx.autograd.record():
        loss = network(mx.nd.ones((2,)))
    loss.backward()
    trainer.step(1)
    return trainer


def advice_to(**how: Any) -> list[str]:
    """The warnings that a trainer's first step gives of compression."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer_of(**how)._kvstore.close()
    return [str(given.message) for given in caught if "travel" in str(given.message)]


@pytest.mark.parametrize(
    ("compression", "carries"),
    [("dgc", True), ("onebit", True), ("2bit", True), ("qsgd", False), (None, False),
     ({"type": "fp16", "error_feedback": True}, True)],
    ids=str,
)
def test_another_batch_size_is_told_of_where_gradients_are_carried_over(
    compression: Any, carries: bool
) -> None:
    trainer = trainer_of(
        kvstore="p3", compression_params=compression, update_on_kvstore=compression == "2bit"
    )
    told = []
    for batch in (1, 2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trainer.step(batch, ignore_stale_grad=True)
        told.append([given for given in caught if "carried over" in str(given.message)])
    trainer._kvstore.close()
    assert [len(each) for each in told] == [0, carries]
    assert not carries or told[1][0].filename == __file__


def test_a_name_alone_is_enough() -> None:
    trainer = trainer_of(kvstore="p3", compression_params="qsgd", update_on_kvstore=False)
    assert trainer._kvstore.compression == QSGD()
    trainer._kvstore.close()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("tern_grad", "type is 'tern_grad'; it must be one of 'terngrad', .* mean 'terngrad'?"),
        ({"type": "SlimDP"}, "did you mean 'slim_dp'?"),
        ({"type": ["qsgd"]}, r"type is \['qsgd'\]; it must be one of"),
        ({"bits": 4}, "type is None; it must be one of 'terngrad'"),
        (["qsgd"], r"compression is \['qsgd'\]; it must be a dict such as {'type': 'terngrad'}"),
        (3, "compression is 3; it must be a dict"),
    ],
)
def test_what_is_no_compression_is_refused_in_a_line(asked: Any, words: str) -> None:
    store = mx.kv.create("p3")
    with pytest.raises(OptionError, match=words) as caught:
        store.set_gradient_compression(asked)
    assert "\n" not in str(caught.value)
    written = isinstance(asked.get("type") if isinstance(asked, dict) else asked, str)
    assert ("did you mean" in str(caught.value)) == written
    store.close()


@pytest.mark.parametrize(
    "asked", ["terngrad", {"clip_sigma": 1}, {"type": "terngrad", "clip_sigma": 1}]
)
def test_a_store_named_after_a_compression_takes_options_of_that(asked: Any) -> None:
    store = mx.kv.create("terngrad")
    store.set_gradient_compression(asked)
    assert store.compression == TernGrad(clip_sigma=2.5 if asked == "terngrad" else 1.0)
    store.close()


@pytest.mark.parametrize(("name", "asked"), [("terngrad", "qsgd"), ("slim_dp", {"type": "dgc"})])
def test_a_store_named_after_a_compression_refuses_another(name: str, asked: Any) -> None:
    with pytest.raises(KVStoreError, match=f"'{name}' cannot have the compression '(qsgd|dgc)'"):
        trainer_of(kvstore=name, compression_params=asked)


def test_advice_is_given_where_it_can_be_followed() -> None:
    way_out = "update_on_kvstore=False), or a store of the name 'terngrad', sums travel back"
    (advice,) = advice_to(kvstore="p3", compression_params="terngrad")
    assert way_out in advice
    assert not advice_to(kvstore="terngrad")
    assert not advice_to(kvstore="p3", compression_params="terngrad", update_on_kvstore=False)


def test_no_advice_is_given_that_was_followed_already() -> None:
    (advice,) = advice_to(kvstore="terngrad", sparse=True)
    assert "which Trainer wants for row-sparse gradients, such as that of 'embedding" in advice
    assert "update_on_kvstore" not in advice
    assert "a store of the name" not in advice
    store = mx.kv.create("terngrad")
    with pytest.warns(UserWarning, match="leave set_optimizer out: call adopt_optimizer"):
        store.set_optimizer(mx.optimizer.SGD())
    store.close()


def test_a_warning_has_the_scripts_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which calls the store itself, or has Trainer do so."""
    with pytest.warns(UserWarning, match="so that parameters travel back") as by_trainer:
        trainer_of(kvstore="p3", compression_params="terngrad")._kvstore.close()
    monkeypatch.setenv("KVSTORE_EXT_OPTIONS", '{"clip_sigma": 1}')
    store = mx.kv.create("p3")
    with pytest.warns(UserWarning, match="has options of a compression") as by_script:
        store.init("key", mx.nd.zeros((3,)))
    store.close()
    given = [*by_trainer, *by_script]
    ours = [warning.filename for warning in given if "compress" in str(warning.message)]
    assert ours == [__file__] * 2
