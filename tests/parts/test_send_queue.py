"""The send queue: order, window and closing (csrc/send_queue.h)."""
from __future__ import annotations

import threading
from typing import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kvstore_ext import _core

from tests.support.cluster import LIMIT

SIZES = st.integers(0, 100)


class QueueMachine(RuleBasedStateMachine):
    """Compares the queue with a sorted list, whatever is done to it and in whatever order."""

    @initialize(window=st.integers(0, 200))
    def begin(self, window: int) -> None:
        self.queue = _core.SendQueue(window)
        self.window = window
        self.waiting: list[tuple[int, int, int]] = []  # (-priority, sequence = item, bytes)
        self.in_flight = 0
        self.pushed = 0
        self.closed = False

    @rule(priority=st.integers(-3, 3) | st.sampled_from([-(2**31), 2**31 - 1]), size=SIZES)
    def push(self, priority: int, size: int) -> None:
        self.queue.push(priority, size, self.pushed)
        if not self.closed:
            self.waiting.append((-priority, self.pushed, size))
            self.waiting.sort()
        self.pushed += 1

    @rule(blocking=st.booleans())
    def pop(self, blocking: bool) -> None:
        found = self.queue.pop(0.0) if blocking else self.queue.try_pop()
        assert found == self._expected()
        if found is not None:
            self.in_flight += self.waiting.pop(0)[2]

    def _expected(self) -> int | None:
        """The first come of the highest priority, if it fits or would not fit any window."""
        if not self.waiting:
            return None
        _, item, size = self.waiting[0]
        fits = self.in_flight == 0 or size <= max(0, self.window - self.in_flight)
        return item if fits else None

    @rule(size=SIZES)
    def release(self, size: int) -> None:
        self.queue.release(size)
        self.in_flight = max(0, self.in_flight - size)

    @rule(window=st.integers(0, 200))
    def set_window(self, window: int) -> None:
        self.queue.set_window(window)
        self.window = window

    @rule()
    def close(self) -> None:
        self.queue.close()
        self.closed = True
        self.waiting = []

    @invariant()
    def counts_are_right(self) -> None:
        assert len(self.queue) == len(self.waiting)
        assert self.queue.in_flight() == self.in_flight


TestQueueAgainstASortedList = QueueMachine.TestCase


def assert_wakes(
    queue: _core.SendQueue, act: Callable[[], None], expected: list[int | None]
) -> None:
    """Asserts that as many threads, about to pop or popping, all return with these after `act`."""
    results: list[int | None] = []
    begun = threading.Barrier(len(expected) + 1)

    def pop() -> None:
        begun.wait()
        results.append(queue.pop(LIMIT))

    threads = [threading.Thread(target=pop) for _ in expected]
    for thread in threads:
        thread.start()
    begun.wait()
    act()
    for thread in threads:
        thread.join(LIMIT / 2)
        assert not thread.is_alive()
    assert sorted(results, key=str) == sorted(expected, key=str)


def test_closing_wakes_every_blocked_pop() -> None:
    for _ in range(100):
        queue = _core.SendQueue(10)
        assert_wakes(queue, queue.close, [None] * 4)


def test_a_closed_queue_lets_nothing_in_or_out() -> None:
    queue = _core.SendQueue(10)
    queue.push(0, 1, 1)
    queue.close()
    queue.push(0, 1, 2)
    assert len(queue) == 0
    assert queue.pop(LIMIT) is None
    assert queue.try_pop() is None


def test_pushing_wakes_as_many_as_there_are_items() -> None:
    for _ in range(100):
        queue = _core.SendQueue(10)

        def push(queue: _core.SendQueue = queue) -> None:
            for item in range(4):
                queue.push(item, 1, item)

        assert_wakes(queue, push, [0, 1, 2, 3])


def test_releasing_and_widening_the_window_wake_those_who_wait_for_room() -> None:
    for _ in range(100):
        queue = _core.SendQueue(10)
        for item in range(4):
            queue.push(0, 5, item)
        assert (queue.try_pop(), queue.try_pop()) == (0, 1)
        assert_wakes(queue, lambda queue=queue: queue.release(5), [2])
        assert_wakes(queue, lambda queue=queue: queue.set_window(15), [3])


def test_an_item_larger_than_the_window_goes_alone() -> None:
    queue = _core.SendQueue(10)
    queue.push(0, 4, 1)
    queue.push(0, 100, 2)
    queue.push(-1, 4, 3)
    assert queue.try_pop() == 1
    assert queue.try_pop() is None
    queue.release(4)
    assert queue.try_pop() == 2
    assert queue.try_pop() is None
    queue.release(100)
    assert queue.try_pop() == 3


def test_many_threads_take_every_item_once_and_never_exceed_the_window() -> None:
    window, size, each, threads = 35, 10, 500, 3
    queue = _core.SendQueue(window)
    taken: list[int] = []
    most = []

    def push(first: int) -> None:
        for item in range(first, first + each):
            queue.push(item % 5, size, item)

    def pop() -> None:
        while (item := queue.pop(LIMIT)) is not None:
            most.append(queue.in_flight())
            taken.append(item)
            queue.release(size)
            if len(taken) == each * threads:
                queue.close()

    running = [threading.Thread(target=push, args=(i * each,)) for i in range(threads)]
    running += [threading.Thread(target=pop) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(LIMIT)
        assert not thread.is_alive()
    assert sorted(taken) == list(range(each * threads))
    assert max(most) <= window
