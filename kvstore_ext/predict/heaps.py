"""The order in which ps-lite takes messages from its queues by priorities."""
from __future__ import annotations

from typing import Any, List, Tuple

Entry = Tuple[int, Any]  # lower numbers are more urgent


class PsLiteHeap:
    """ps-lite's ThreadsafePQueue, a std::priority_queue whose comparison holds for equals too.

    So of equally urgent messages the newest is taken first, and after it the one at the array's
    end: neither their order nor its reverse.
    """

    def __init__(self) -> None:
        self._entries: List[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, priority: int, message: Any) -> None:
        """Puts a message in: it rises above those that are as urgent (std::push_heap)."""
        self._entries.append((priority, message))
        self._rise(len(self._entries) - 1, (priority, message))

    def pop(self) -> Any:
        """Takes the first one out (std::pop_heap)."""
        entries = self._entries
        first, last = entries[0], entries.pop()
        if not entries:
            return first[1]
        place, count = 0, len(entries)
        while 2 * place + 2 < count:
            left, right = entries[2 * place + 1], entries[2 * place + 2]
            child = 2 * place + (2 if right[0] < left[0] else 1)
            entries[place] = entries[child]
            place = child
        if 2 * place + 1 < count:
            entries[place] = entries[2 * place + 1]
            place = 2 * place + 1
        self._rise(place, last)
        return first[1]

    def _rise(self, place: int, entry: Entry) -> None:
        entries = self._entries
        while place and entries[(place - 1) // 2][0] >= entry[0]:
            entries[place] = entries[(place - 1) // 2]
            place = (place - 1) // 2
        entries[place] = entry
