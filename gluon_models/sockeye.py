"""Sockeye's recurrent translation model (Hieber et al. 2017).

"Sockeye: A Toolkit for Neural Machine Translation", https://arxiv.org/abs/1712.05690, sections 3.1
and 4.1: an encoder of a bidirectional LSTM and unidirectional ones above it, and an LSTM decoder
with attention to the encoder's states (Bahdanau, Cho and Bengio 2014,
https://arxiv.org/abs/1409.0473; Luong, Pham and Manning 2015, https://arxiv.org/abs/1508.04025)
whose result is fed to its own next step. The P3 paper trains it because its heaviest layer, the
source embedding, is the first that a forward pass needs.

The decoder starts from the last state of each direction of the encoder (Bahdanau et al., section
A.2.2), where Sockeye takes the states at a sentence's last word. `start` says whether a
dense layer lies between, as in Sockeye, for each hidden state and memory cell: 525,312 parameters
more for a layer of 512 units.

The encoder's LSTMs are MXNet's fused ones. The decoder's steps depend on each other through the
attention, so it runs step by step inside one graph (`foreach`), of any length once hybridized.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import Any

from mxnet.gluon import HybridBlock, ParameterDict, nn, rnn
from mxnet.initializer import Uniform
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol

ATTENTIONS = ("mlp", "dot")
STARTS = ("last", "dense")
TYINGS = ("none", "target", "all")


@dataclass(frozen=True)
class Configuration:
    """The shape of a network; the defaults are the configuration `sockeye`.

    Attributes
    ----------
    embedding
        Numbers a word is embedded in.
    hidden
        Units of every layer of the encoder and the decoder; even, as the bidirectional
        layer has half of them for each direction.
    encoder_layers
        The bidirectional layer and those above it.
    decoder_layers
        LSTM layers, all below the attention.
    start
        "last" gives every layer of the decoder the encoder's last state and an empty memory
        cell, "dense" passes that state through a dense layer with tanh for each of the two.
    attention
        "mlp", v . tanh(W key + U query), or "dot", key . query.
    tying
        "target" uses the target embedding as the output layer's weights too, "all" the
        source embedding as well (the two languages then have one vocabulary); both need
        `embedding == hidden`. "none" ties nothing.
    sparse_embedding
        Gradients of embeddings are row-sparse; not for tied ones.
    embedding_dropout
        The part of the embeddings dropped in training.
    layer_dropout
        Of what one LSTM layer passes to the next.
    hidden_dropout
        Of what the output layer sees.

    Raises
    ------
    ValueError
        A value is outside of what is said here.
    """

    embedding: int = 512
    hidden: int = 512
    encoder_layers: int = 1
    decoder_layers: int = 1
    start: str = "last"
    attention: str = "mlp"
    tying: str = "none"
    sparse_embedding: bool = False
    embedding_dropout: float = 0.0
    layer_dropout: float = 0.0
    hidden_dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("embedding", "hidden", "encoder_layers", "decoder_layers"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}; it must be an integer of at least 1")
        for name in ("embedding_dropout", "layer_dropout", "hidden_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be in [0, 1)")
        if self.hidden % 2:
            raise ValueError(f"hidden is {self.hidden}; it must be even")
        for name, allowed in (
            ("start", STARTS),
            ("attention", ATTENTIONS),
            ("tying", TYINGS),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; the values allowed are "
                    f"{', '.join(allowed)}"
                )
        if self.tying != "none" and self.embedding != self.hidden:
            raise ValueError(
                f"tying {self.tying!r} needs embedding == hidden, not {self.embedding} and "
                f"{self.hidden}"
            )
        if self.tying != "none" and self.sparse_embedding:
            raise ValueError(
                f"tying {self.tying!r} makes an embedding the output layer, whose gradient is "
                f"dense, so sparse_embedding must be False"
            )


# `sockeye`: the defaults that Sockeye had from 1.5, of August 2017, to 1.16, of December, but with
# 512 instead of 1024 hidden units and without the dense layers of `start`: 22 million parameters
# with the P3 paper's vocabularies. `p3`: what its authors' script trains, github.com/anandj91/p3,
# apart from the reversed source. `small` trains within minutes on two cores.
CONFIGURATIONS = {
    "sockeye": Configuration(),
    "p3": Configuration(encoder_layers=2, decoder_layers=2, start="dense"),
    "small": Configuration(
        embedding=128, hidden=128, attention="dot", embedding_dropout=0.1, hidden_dropout=0.1
    ),
}


def configuration(name: str, **changes: Any) -> Configuration:
    """The configuration of a name, with some fields changed.

    Raises
    ------
    ValueError
        No configuration has this name or field, or a field does not allow its value.
    """
    if name not in CONFIGURATIONS:
        allowed = ", ".join(sorted(CONFIGURATIONS))
        raise ValueError(f"unknown configuration {name!r}; the names allowed are {allowed}")
    known = [field.name for field in fields(Configuration)]
    for field in changes:
        if field not in known:
            raise ValueError(f"unknown field {field!r}; the fields allowed are {', '.join(known)}")
    return replace(CONFIGURATIONS[name], **changes)


def embedding(words: int, shape: Configuration, params: ParameterDict | None) -> nn.Embedding:
    """Words (any shape) to numbers (..., embedding), with `params` as its own if there are any.

    They start from a uniform distribution, whatever `initialize` is given: Xavier's would take so
    long a table for a layer of as many inputs, and start it near zero, where little is learned.
    Half as large where it has to serve as output layer too.
    """
    initial = Uniform(0.5 if shape.tying == "none" else 0.25)
    return nn.Embedding(
        words,
        shape.embedding,
        weight_initializer=initial,
        sparse_grad=shape.sparse_embedding,
        params=params,
    )


class Encoder(HybridBlock):
    """Source words to states.

    Words (batch, length), any numeric type, and the sentences' lengths (batch,) become: states
    (batch, length, hidden), zero where a sentence has ended; keys for the attention, of the same
    shape; what is added to the attention's scores (batch, length), 0 or -1e9 where a sentence has
    ended; and the decoder's first hidden state (batch, hidden).
    """

    def __init__(self, shape: Configuration, words: int) -> None:
        super().__init__()
        half = shape.hidden // 2
        with self.name_scope():
            self.embedding = embedding(words, shape, None)
            self.dropout = nn.Dropout(shape.embedding_dropout)
            self.forwards = rnn.LSTM(half, input_size=shape.embedding)
            self.backwards = rnn.LSTM(half, input_size=shape.embedding)
            self.above = None
            if shape.encoder_layers > 1:
                self.between = nn.Dropout(shape.layer_dropout)
                self.above = rnn.LSTM(
                    shape.hidden,
                    shape.encoder_layers - 1,
                    dropout=shape.layer_dropout,
                    input_size=shape.hidden,
                )
            self.keys = None
            if shape.attention == "mlp":
                self.keys = nn.Dense(
                    shape.hidden, use_bias=False, flatten=False, in_units=shape.hidden
                )

    def hybrid_forward(
        self, F: ModuleType, words: NDArray | Symbol, lengths: NDArray | Symbol
    ) -> tuple[NDArray | Symbol, ...]:
        # MXNet's fused LSTM knows no lengths on a CPU: a sentence is turned round within its own
        # length instead, so that either direction meets the padding after its last word.
        where = {"sequence_length": lengths, "use_sequence_length": True}
        embedded = self.dropout(self.embedding(F.transpose(words)))
        ahead = self.forwards(embedded)
        back = self.backwards(F.SequenceReverse(embedded, **where))
        last = F.concat(F.SequenceLast(ahead, **where), F.SequenceLast(back, **where), dim=1)
        states = F.concat(ahead, F.SequenceReverse(back, **where), dim=2)
        if self.above is not None:
            states = self.above(self.between(states))
            last = F.SequenceLast(states, **where)
        states = F.transpose(F.SequenceMask(states, **where), axes=(1, 0, 2))
        position = F.contrib.arange_like(words, axis=1)
        ended = F.broadcast_greater_equal(position.expand_dims(0), lengths.expand_dims(1))
        keys = states if self.keys is None else self.keys(states)
        return states, keys, ended * -1e9, last


class Step(HybridBlock):
    """A step of the decoder.

    It takes an embedded word (batch, embedding), the encoder's first three results, and the
    decoder's own state: what the attention gave in the step before (batch, hidden), then the hidden
    state and the memory cell (batch, hidden) of each layer. It returns its state after the step;
    the first array of it is what the output layer sees.
    """

    def __init__(self, shape: Configuration) -> None:
        super().__init__()
        size = shape.hidden
        with self.name_scope():
            self.cells = rnn.HybridSequentialRNNCell()
            for layer in range(shape.decoder_layers):
                below = size if layer else shape.embedding + size
                self.cells.add(rnn.LSTMCell(size, input_size=below))
                if shape.layer_dropout and layer < shape.decoder_layers - 1:
                    self.cells.add(rnn.DropoutCell(shape.layer_dropout))
            self.mlp = shape.attention == "mlp"
            if self.mlp:
                self.query = nn.Dense(size, use_bias=False, in_units=size)
                self.score = nn.Dense(1, use_bias=False, flatten=False, in_units=size)
            self.combine = nn.Dense(size, activation="tanh", in_units=2 * size)

    def hybrid_forward(
        self,
        F: ModuleType,
        word: NDArray | Symbol,
        states: NDArray | Symbol,
        keys: NDArray | Symbol,
        ended: NDArray | Symbol,
        fed: NDArray | Symbol,
        *layers: NDArray | Symbol,
    ) -> tuple[NDArray | Symbol, ...]:
        top, layers = self.cells(F.concat(word, fed, dim=1), list(layers))
        if self.mlp:
            compared = F.tanh(F.broadcast_add(keys, self.query(top).expand_dims(1)))
            scores = self.score(compared).squeeze(axis=2)
        else:
            scores = F.batch_dot(keys, top.expand_dims(2)).squeeze(axis=2)
        # Without BlockGrad the graph of a loop would add this sum's gradient for `ended`, over all
        # steps, into the memory that holds its gradient for `scores`.
        weights = F.softmax(scores + F.BlockGrad(ended))
        context = F.batch_dot(weights.expand_dims(1), states).squeeze(axis=1)
        return (self.combine(F.concat(top, context, dim=1)), *layers)


class Sockeye(HybridBlock):
    """Source words and the target words so far to the scores of the next target words.

    `net(source, lengths, target)`: source words (batch, source length), padded with anything, the
    lengths of the sentences without it (batch,), at least 1, and the target words (batch, target
    length), which begin with the word that begins every sentence. It returns scores before the
    softmax, (batch, target length, target words), float32: those at i are for word i + 1.

    Parameters
    ----------
    source_words
        Size of the source vocabulary.
    target_words
        Size of the target vocabulary.
    shape
        See `Configuration`.

    Raises
    ------
    ValueError
        Everything is tied and the vocabularies differ in size.
    """

    def __init__(self, source_words: int, target_words: int, shape: Configuration) -> None:
        if shape.tying == "all" and source_words != target_words:
            raise ValueError(
                f"tying 'all' needs one vocabulary for both languages, not {source_words} source "
                f"and {target_words} target words"
            )
        super().__init__()
        self.shape = shape
        with self.name_scope():
            self.encoder = Encoder(shape, source_words)
            self.starts = None
            if shape.start == "dense":
                self.starts = nn.HybridSequential()
                for _ in range(2 * shape.decoder_layers):
                    self.starts.add(nn.Dense(shape.hidden, "tanh", in_units=shape.hidden))
            shared = self.encoder.embedding.params if shape.tying == "all" else None
            self.embedding = embedding(target_words, shape, shared)
            self.dropout = nn.Dropout(shape.embedding_dropout)
            self.step = Step(shape)
            self.hidden_dropout = nn.Dropout(shape.hidden_dropout)
            self.output = nn.Dense(
                target_words,
                flatten=False,
                in_units=shape.hidden,
                prefix="output_",
                params=None if shape.tying == "none" else self.embedding.params,
            )

    def begin(self, F: ModuleType, last: NDArray | Symbol) -> list[NDArray | Symbol]:
        """The decoder's state before the first step, given the encoder's last result."""
        state = [F.zeros_like(last)]
        if self.starts is not None:
            return state + [start(last) for start in self.starts]
        # foreach wants a node of its own for each array.
        for _ in range(self.shape.decoder_layers):
            state += [F.identity(last), F.zeros_like(last)]
        return state

    def hybrid_forward(
        self,
        F: ModuleType,
        source: NDArray | Symbol,
        lengths: NDArray | Symbol,
        target: NDArray | Symbol,
    ) -> NDArray | Symbol:
        *encoded, last = self.encoder(source, lengths)
        words = self.dropout(self.embedding(F.transpose(target)))

        def step(word: Any, state: list[Any]) -> tuple[Any, list[Any]]:
            state = self.step(word, *encoded, *state)
            return state[0], list(state)

        hidden, _ = F.contrib.foreach(step, words, self.begin(F, last))
        return F.transpose(self.output(self.hidden_dropout(hidden)), axes=(1, 0, 2))
