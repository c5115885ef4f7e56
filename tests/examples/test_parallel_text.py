"""Parallel text: what is read, how sentences are cut and shared out, and what bad input gets."""

from __future__ import annotations

from pathlib import Path

import cldr_text
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parallel_text import (
    BEGIN,
    END,
    PADDING,
    SPECIAL,
    UNKNOWN,
    Batches,
    Vocabulary,
    cut,
    encode_pairs,
    fitting,
    join,
    read_pairs,
    read_sentences,
    to_batch,
)


@given(st.text(st.characters(blacklist_characters="▁", blacklist_categories=("Cs",))))
def test_a_cut_sentence_joins_to_itself_with_plain_spaces(sentence: str) -> None:
    assert join(cut(sentence)) == " ".join(sentence.split())


def test_numbers_are_cut_into_digits_and_words_kept() -> None:
    assert cut("Mon, 12.5 km²") == ["▁Mon", ",", "▁1", "2", ".", "5", "▁km²"]


def test_rare_words_are_spelled_and_come_back() -> None:
    vocabulary = Vocabulary.build(["a cat", "a cat", "the tac"], least=2, most=100)
    assert {"▁a", "▁cat"} < set(vocabulary.words)
    assert "▁the" not in vocabulary.words
    assert vocabulary.words[:4] == list(SPECIAL)
    numbers = vocabulary.encode("the cat")
    assert [vocabulary.words[n] for n in numbers] == ["▁t", "h", "e", "▁cat", SPECIAL[END]]
    assert vocabulary.decode([BEGIN, *numbers]) == "the cat"
    assert vocabulary.encode("▁")[:-1] == [UNKNOWN]


def test_a_vocabulary_is_cut_off_after_the_most_frequent() -> None:
    text = ["one two two three three three"] * 2
    whole = Vocabulary.build(text, least=1, most=1000)
    assert whole.words[-3:] == ["▁three", "▁two", "▁one"]
    assert Vocabulary.build(text, least=1, most=len(whole) - 1).words == whole.words[:-1]


@pytest.mark.parametrize(("batch_size", "workers", "width"), [(8, 2, 4), (6, 3, 10), (64, 4, 3)])
def test_every_worker_gets_equal_steps_of_every_sentence(
    batch_size: int, workers: int, width: int
) -> None:
    random = np.random.RandomState(0)
    pairs = [
        ([10 + i] * random.randint(1, 30) + [END], [10 + i] * random.randint(1, 30) + [END])
        for i in range(101)
    ]
    batches = Batches(pairs, width, batch_size, seed=3)
    shares = [list(batches.of_worker(1, rank, workers)) for rank in range(workers)]
    assert {len(share) for share in shares} == {batches.steps}
    assert all(len(b.source) == batch_size // workers for share in shares for b in share)
    seen = {int(row[0]) - 10 for share in shares for b in share for row in b.source}
    assert seen == set(range(101))
    alone = [sorted(batch) for batch in batches.order(1)]
    together = [sorted(int(row[0]) - 10 for share in shares for row in share[step].source)
                for step in range(batches.steps)]
    assert together == alone
    assert alone != [sorted(batch) for batch in batches.order(2)]


def test_sentences_of_a_batch_are_of_like_length() -> None:
    pairs = [([5] * (1 + i % 40), [5] * (1 + i % 40)) for i in range(4000)]
    for batch in Batches(pairs, 10, 32, seed=0).of_worker(1, 0, 1):
        lengths = batch.lengths
        # A bucket of ten, and what the bucket before it left over.
        assert lengths.max() - lengths.min() < 20
    assert sum(len(set((order // 10 % 4).tolist())) > 1
               for order in Batches(pairs, 10, 32, seed=0).order(1)) <= 4


def test_targets_are_shifted_and_padded() -> None:
    batch = to_batch([([7, END], [8, 9, END]), ([7, 7, END], [8, END])])
    assert batch.source.tolist() == [[7, END, PADDING], [7, 7, END]]
    assert batch.lengths.tolist() == [2, 3]
    assert batch.begun.tolist() == [[BEGIN, 8, 9], [BEGIN, 8, PADDING]]
    assert batch.ended.tolist() == [[8, 9, END], [8, END, PADDING]]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\n", b"a\nb\nc\n", r"target:3: .*source has no such line: it has 2, the other 3"),
        (b"a\n\nb\n", b"a\nb\nc\n", "source:2: the line is empty"),
        (b"a\nb\n", b"a\n\xff\xfeb\n", "target:2: not UTF-8: byte 0xff at place 1"),
        (b"", b"", "source:1: there is no sentence"),
        (b"a\nb \n \n", b"a\nb\nc\n", "source:3: the line is empty"),
    ],
)
def test_bad_files_are_named_with_their_line(
    tmp_path: Path, source: bytes, target: bytes, message: str
) -> None:
    for name, content in (("source", source), ("target", target)):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_pairs(str(tmp_path / "source"), str(tmp_path / "target"))


def test_a_last_line_without_an_end_and_windows_ends_are_read(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("eins\r\nzwölf".encode())
    assert read_sentences(str(tmp_path / "text")) == ["eins", "zwölf"]


def test_too_long_a_sentence_is_named_with_its_line() -> None:
    vocabulary = Vocabulary.build(["a b c"], 1, 100)
    pairs = [("a b", "a"), ("a", "a b c c c")]
    assert len(encode_pairs(pairs, [vocabulary] * 2, 6, ["s", "t"])) == 2
    with pytest.raises(ValueError, match="t:2: the sentence has 6 words, more than the 5"):
        encode_pairs(pairs, [vocabulary] * 2, 5, ["s", "t"])


def test_pairs_that_do_not_fit_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("a b\n\na\nb\n")
    (tmp_path / "target").write_text("a\nb\na b c c c\n\n")
    pairs = read_pairs(str(tmp_path / "source"), str(tmp_path / "target"), may_be_empty=True)
    assert pairs == [("a b", "a"), ("", "b"), ("a", "a b c c c"), ("b", "")]
    vocabulary = Vocabulary.build(["a b c"], 1, 100)
    assert fitting(pairs, [vocabulary] * 2, 6) == [pairs[0], pairs[2]]
    assert fitting(pairs, [vocabulary] * 2, 5) == [pairs[0]]


def test_another_vocabulary_is_named_with_its_line(tmp_path: Path) -> None:
    path = str(tmp_path / "words")
    vocabulary = Vocabulary.build(["a b c"], 1, 100)
    vocabulary.save(path)
    vocabulary.check_equals(path)
    with pytest.raises(ValueError, match=r"words:7: .* has '▁c' where the text's has '▁d'"):
        Vocabulary.build(["a b d"], 1, 100).check_equals(path)
    with pytest.raises(ValueError, match=r"words:8: .* it has 7 words, the text's 8"):
        Vocabulary.build(["a b c d"], 1, 100).check_equals(path)


def test_the_held_out_part_of_the_cldr_text_is_new() -> None:
    training, held_out = cldr_text.parallel_text("en", "de", scale=0.2)
    assert len(training) > 2000
    assert len(held_out) > 100
    assert not {source for source, _ in training} & {source for source, _ in held_out}
    assert cldr_text.parallel_text("en", "de", scale=0.2) == (training, held_out)
    assert cldr_text.parallel_text("en", "de", seed=1, scale=0.2) != (training, held_out)
    pairs = dict(training + held_out)
    assert pairs["Finland"] == "Finnland"
    for sentence in [*pairs, *pairs.values()]:
        assert sentence == " ".join(sentence.split()) != ""


@pytest.mark.parametrize("languages", [("de", "en"), ("fr", "pt_BR"), ("ja", "ar")])
def test_any_pair_of_languages_has_text(languages: tuple[str, str]) -> None:
    training, held_out = cldr_text.parallel_text(*languages, scale=0.02)
    assert len(training) > 1000
    assert len(held_out) > 50


def test_an_unknown_language_is_named() -> None:
    with pytest.raises(ValueError, match="Babel knows no locale 'xx'"):
        cldr_text.parallel_text("en", "xx")
