import numpy as np
from kvstore_ext.report import words
from kvstore_ext.report.spans import common, length, union, until


def test_a_union_joins_spans_that_touch_and_leaves_out_empty_ones() -> None:
    spans = union(np.array([5, 0, 9, 3, 20]), np.array([7, 4, 9, 5, 30]))
    assert spans.tolist() == [[0, 7], [20, 30]]
    assert length(spans) == 17
    assert length(union(np.zeros(0), np.zeros(0))) == 0


def test_how_much_lies_before_a_time() -> None:
    spans = np.array([[0, 7], [20, 30]])
    assert until(spans, np.array([-1, 0, 3, 7, 10, 25, 99])).tolist() == [0, 0, 3, 7, 7, 12, 17]


def test_what_spans_have_in_common() -> None:
    assert common(np.array([[0, 7], [20, 30]]), np.array([[5, 21], [29, 40]])) == 4
    assert common(np.zeros((0, 2)), np.array([[5, 21]])) == 0


def test_numbers_have_three_digits_and_a_unit_that_fits() -> None:
    assert [words.seconds(value) for value in (12.34, 0.9999, 0.04567, 2.5e-6, 0)] == [
        "12.3 s", "1.00 s", "45.7 ms", "2.50 µs", "0"]  # fmt: skip
    assert [words.amount(value) for value in (999, 25_560_000, 3e9)] == [
        "999 bytes", "25.6 MB", "3.00 GB"]  # fmt: skip
    assert [words.per_cent(value) for value in (0, 0.001, 0.974, float("nan"))] == [
        "0 %", "under 1 %", "97 %", words.NOTHING]  # fmt: skip
    assert [words.gigabits(value) for value in (0.0123, 9.41)] == ["12.3 Mbit/s", "9.41 Gbit/s"]


def test_many_names_are_counted() -> None:
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b"]) == "a and b"
    assert words.listed(list("abcdef")) == "a, b, c and 3 more"
