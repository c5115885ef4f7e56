"""The translation model: its masks, its attention, its options and its beam search."""

from __future__ import annotations

import itertools
from typing import Any

import kvstore_ext  # noqa: F401  before mxnet, which it makes importable on Python 3.12

# isort: split
import mxnet as mx
import numpy as np
import pytest
from gluon_models.beam_search import BeamSearch, Translation, log_softmax
from gluon_models.sockeye import Configuration, Sockeye, configuration
from mxnet import autograd, gluon, nd

BEGIN, END = 0, 1
SHAPES = {
    "mlp": {},
    "dot": {"attention": "dot"},
    "deep": {"encoder_layers": 3, "decoder_layers": 2, "start": "dense"},
    "target tied": {"tying": "target"},
    "all tied": {"tying": "all"},
    "sparse": {"sparse_embedding": True},
    "dropout": {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "embedding_dropout": 0.2,
        "layer_dropout": 0.2,
        "hidden_dropout": 0.2,
    },
}
LENGTHS = [3, 7, 1, 6]


def network(words: int = 11, seed: int = 0, **shape: Any) -> Sockeye:
    """A small network with weights large enough for its choices to differ."""
    net = Sockeye(words, words, Configuration(**{"embedding": 8, "hidden": 8, **shape}))
    mx.random.seed(seed)
    net.initialize(mx.init.Uniform(0.7))
    return net


def batch(words: int = 11, padding: int = 5) -> tuple[nd.NDArray, nd.NDArray, nd.NDArray]:
    """Sentences of different lengths, their lengths and target words."""
    random = np.random.RandomState(0)
    source = random.randint(0, words, (len(LENGTHS), max(LENGTHS)))
    for row, length in zip(source, LENGTHS):
        row[length:] = padding
    target = random.randint(0, words, (len(LENGTHS), 5))
    return nd.array(source), nd.array(LENGTHS), nd.array(target)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("hybridize", [False, True])
def test_each_sentence_gets_the_scores_that_it_gets_alone(
    shape: dict[str, Any], hybridize: bool
) -> None:
    net = network(**shape)
    net.hybridize(hybridize)
    source, lengths, target = batch()
    together = net(source, lengths, target).asnumpy()
    for i, length in enumerate(LENGTHS):
        alone = net(source[i : i + 1, :length], lengths[i : i + 1], target[i : i + 1]).asnumpy()
        np.testing.assert_allclose(together[i : i + 1], alone, rtol=1e-4, atol=1e-5)
    other_padding = net(batch(padding=9)[0], lengths, target).asnumpy()
    np.testing.assert_array_equal(other_padding, together)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_hybridized_gradients_are_those_of_plain_blocks(shape: dict[str, Any]) -> None:
    gradients = []
    for hybridize in (False, True):
        net = network(**{name: value for name, value in shape.items() if "dropout" not in name})
        net.hybridize(hybridize)
        with autograd.record():
            loss = (net(*batch()) ** 2).sum()
        loss.backward()
        gradients.append([p.grad().asnumpy() for p in net.collect_params().values()])
    for plain, hybrid in zip(*gradients):
        assert np.abs(plain).max() > 0
        np.testing.assert_allclose(hybrid, plain, rtol=1e-3, atol=1e-5 * np.abs(plain).max())


def test_padding_moves_no_gradient() -> None:
    net = network()
    source, lengths, target = batch(padding=5)
    source = nd.where(source == 5, nd.full(source.shape, 6), source)  # 5 now pads only
    for i, length in enumerate(LENGTHS):
        source[i, length:] = 5
    with autograd.record():
        loss = net(source, lengths, target).sum()
    loss.backward()
    gradient = net.encoder.embedding.weight.grad().asnumpy()
    assert not gradient[5].any()
    assert gradient[6].any()


def reference(net: Sockeye, source: list[int], target: list[int]) -> np.ndarray:
    """The scores of one sentence by the papers' equations, in NumPy: (target words, words)."""
    weights = {
        name.split("_", 1)[1]: p.data().asnumpy().astype(np.float64)
        for name, p in net.collect_params().items()
    }

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    def lstm(prefix: str, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> Any:
        gates = weights[f"{prefix}i2h_weight"] @ x + weights[f"{prefix}i2h_bias"]
        gates = gates + weights[f"{prefix}h2h_weight"] @ h + weights[f"{prefix}h2h_bias"]
        enter, forget, new, leave = np.split(gates, 4)
        c = sigmoid(forget) * c + sigmoid(enter) * np.tanh(new)
        return sigmoid(leave) * np.tanh(c), c

    embedded = weights["encoder0_embedding0_weight"][source]
    directions = []
    for prefix, words in (("lstm0", embedded), ("lstm1", embedded[::-1])):
        h = c = np.zeros(4)
        states = []
        for word in words:
            h, c = lstm(f"encoder0_{prefix}_l0_", word, h, c)
            states.append(h)
        directions.append(states)
    memory = np.hstack([directions[0], directions[1][::-1]])
    last = np.concatenate([directions[0][-1], directions[1][-1]])
    if net.shape.start == "dense":
        h, c = (np.tanh(weights[f"dense{i}_weight"] @ last + weights[f"dense{i}_bias"])
                for i in range(2))
    else:
        h, c = last, np.zeros(8)
    fed = np.zeros(8)
    scores = []
    for word in target:
        fed_word = np.concatenate([weights["embedding0_weight"][word], fed])
        h, c = lstm("step0_lstm0_", fed_word, h, c)
        keys = memory @ weights["encoder0_dense0_weight"].T
        compared = np.tanh(keys + weights["step0_dense0_weight"] @ h)
        attention = np.exp(log_softmax(compared @ weights["step0_dense1_weight"][0]))
        both = np.concatenate([h, attention @ memory])
        fed = np.tanh(weights["step0_dense2_weight"] @ both + weights["step0_dense2_bias"])
        scores.append(weights["output_weight"] @ fed + weights["output_bias"])
    return np.array(scores)


@pytest.mark.parametrize("start", ["last", "dense"])
def test_scores_follow_the_papers_equations(start: str) -> None:
    net = network(start=start)
    source, lengths, target = batch()
    found = net(source, lengths, target).asnumpy()
    for i, length in enumerate(LENGTHS):
        words = source[i, :length].asnumpy().astype(int).tolist()
        expected = reference(net, words, target[i].asnumpy().astype(int).tolist())
        np.testing.assert_allclose(found[i], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "changes", "millions"),
    [("sockeye", {}, 22.48), ("sockeye", {"start": "dense"}, 23.01), ("p3", {}, 27.73)],
)
def test_configurations_have_the_sizes_that_sockeye_s_have(
    name: str, changes: dict[str, Any], millions: float
) -> None:
    net = Sockeye(17191, 7710, configuration(name, **changes))
    count = sum(np.prod(p.shape) for p in net.collect_params().values())
    assert count / 1e6 == pytest.approx(millions, abs=0.01)
    first = next(iter(net.collect_params().values()))
    assert first.shape == (17191, 512)  # the heaviest layer comes first


@pytest.mark.parametrize(("tying", "tables"), [("none", 3), ("target", 2), ("all", 1)])
def test_tied_layers_share_their_weights(tying: str, tables: int) -> None:
    net = network(tying=tying)
    assert sum(p.shape == (11, 8) for p in net.collect_params().values()) == tables


def test_sparse_embeddings_have_row_sparse_gradients() -> None:
    net = network(sparse_embedding=True)
    net.hybridize()
    with autograd.record():
        loss = net(*batch()).sum()
    loss.backward()
    dense = network()
    with autograd.record():
        loss = dense(*batch()).sum()
    loss.backward()
    for some, other in ((net.encoder, dense.encoder), (net, dense)):
        gradient = some.embedding.weight.grad()
        assert gradient.stype == "row_sparse"
        expected = other.embedding.weight.grad().asnumpy()
        np.testing.assert_allclose(gradient.asnumpy(), expected, rtol=1e-4, atol=1e-5)


def exhaustive(net: Sockeye, source: nd.NDArray, limit: int, search: BeamSearch) -> Translation:
    """The best of all sentences of at most `limit` words, by one forward pass of all of them."""
    words = net.output.weight.shape[0]
    others = [word for word in range(words) if word != END]
    best = Translation([], -np.inf)
    for count in range(limit):
        sentences = np.array(list(itertools.product(others, repeat=count)), int)
        begun = np.hstack([np.full((len(sentences), 1), BEGIN), sentences])
        ended = np.hstack([sentences, np.full((len(sentences), 1), END)])
        sources = source.repeat(len(sentences), axis=0)
        lengths = nd.full((len(sentences),), source.shape[1])
        scores = log_softmax(net(sources, lengths, nd.array(begun)).asnumpy())
        picked = np.take_along_axis(scores, ended[:, :, None], axis=2).sum(axis=(1, 2))
        picked /= search.penalty(count + 1)
        if picked.max() > best.score:
            best = Translation(sentences[picked.argmax()].tolist(), float(picked.max()))
    return best


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (1.0, 0.0), (0.6, 5.0)])
def test_a_wide_beam_finds_what_exhaustive_search_finds(alpha: float, beta: float) -> None:
    lengths_found = set()
    for seed in range(4):
        net = network(words=4, seed=seed)
        # Sure of its words, and not fond of ending: the best sentences differ in length.
        net.output.weight.set_data(net.output.weight.data() * 10)
        net.output.bias.set_data(nd.array([0, -3, 0, 0]))
        search = BeamSearch(net, BEGIN, END, beam=3**4, alpha=alpha, beta=beta)
        source = nd.array([[2, 3, 1], [3, 3, 0], [0, 2, 2]])
        found = search.translate(source, nd.full((3,), 3), limits=[5, 5, 5])
        for i, translation in enumerate(found):
            expected = exhaustive(net, source[i : i + 1], 5, search)
            assert translation.words == expected.words
            assert translation.score == pytest.approx(expected.score, rel=1e-4)
            lengths_found.add(len(expected.words))
    assert len(lengths_found) > 1


def test_a_batch_is_searched_as_each_sentence_alone() -> None:
    net = network()
    net.hybridize()
    search = BeamSearch(net, BEGIN, END, beam=3)
    source, lengths, _ = batch()
    limits = [9, 4, 6, 1]
    together = search.translate(source, lengths, limits)
    for i, length in enumerate(LENGTHS):
        alone = search.translate(source[i : i + 1, :length], lengths[i : i + 1], limits[i : i + 1])
        assert alone[0].words == together[i].words
        assert alone[0].score == pytest.approx(together[i].score, rel=1e-4)
        assert len(together[i].words) <= limits[i]


def test_a_wider_beam_than_there_are_words_finds_no_sentence_twice() -> None:
    net = network(words=3)
    search = BeamSearch(net, BEGIN, END, beam=10, alpha=0.0)
    (found,) = search.translate(nd.array([[2, 1]]), nd.array([2]), limits=[1])
    scores = log_softmax(net(nd.array([[2, 1]]), nd.array([2]), nd.array([[BEGIN]])).asnumpy())
    assert found.words == []
    assert found.score == pytest.approx(scores[0, 0, END], rel=1e-4)


def test_it_learns_to_turn_sentences_round() -> None:
    random = np.random.RandomState(0)
    net = network(words=8, embedding=16, hidden=32)
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, kvstore=None)
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(150):
        sentences = random.randint(2, 8, (32, 4))
        begun = np.hstack([np.full((32, 1), BEGIN), sentences[:, ::-1]])
        ended = np.hstack([sentences[:, ::-1], np.full((32, 1), END)])
        with autograd.record():
            scores = net(nd.array(sentences), nd.full((32,), 4), nd.array(begun))
            loss = cross_entropy(scores, nd.array(ended))
        loss.backward()
        trainer.step(32)
    sentences = random.randint(2, 8, (50, 4))
    search = BeamSearch(net, BEGIN, END)
    found = search.translate(nd.array(sentences), nd.full((50,), 4), limits=[6] * 50)
    right = [t.words == s[::-1].tolist() for t, s in zip(found, sentences)]
    assert np.mean(right) > 0.9


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hidden": 7}, "hidden is 7; it must be even"),
        ({"embedding": 0}, "embedding is 0; it must be an integer of at least 1"),
        ({"start": "zero"}, "start is 'zero'; the values allowed are last, dense"),
        ({"attention": "bilinear"}, "attention is 'bilinear'; the values allowed are mlp, dot"),
        ({"tying": "both"}, "tying is 'both'; the values allowed are none, target, all"),
        ({"tying": "target", "embedding": 4}, "needs embedding == hidden, not 4 and 512"),
        ({"tying": "all", "sparse_embedding": True}, "sparse_embedding must be False"),
        ({"hidden_dropout": 1.0}, r"hidden_dropout is 1.0; it must be in \[0, 1\)"),
    ],
)
def test_a_wrong_configuration_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configuration("sockeye", **wrong)


def test_unknown_configurations_and_unequal_vocabularies_are_named() -> None:
    with pytest.raises(ValueError, match="unknown configuration 'big'"):
        configuration("big")
    with pytest.raises(ValueError, match="unknown field 'hiden'; the fields allowed are embedding"):
        configuration("small", hiden=3)
    with pytest.raises(ValueError, match="not 5 source and 6 target words"):
        Sockeye(5, 6, configuration("sockeye", tying="all"))
    with pytest.raises(ValueError, match="beam is 0; it must be at least 1"):
        BeamSearch(network(), BEGIN, END, beam=0)
