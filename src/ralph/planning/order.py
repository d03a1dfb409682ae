"""The order of new stories: dependencies first, then the layers of a system from the bottom up."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ralph.planning.answer import LAYERS, DraftStory


def in_order(stories: Sequence[DraftStory]) -> list[DraftStory]:
    """Dependencies first. Among independent stories the layer decides if every story names one, else the given order.

    There are no cycles: an answer with one is rejected.
    """
    by_layer = all(story.layer for story in stories)
    labels = {story.id: number for number, story in enumerate(stories)}
    waits = [{labels[d] for d in story.depends_on if d in labels} for story in stories]
    needed_by: dict[int, list[int]] = {}
    for number, needs in enumerate(waits):
        for need in needs:
            needed_by.setdefault(need, []).append(number)

    def rank(number: int) -> tuple[int, int]:
        return (LAYERS.index(stories[number].layer) if by_layer else 0, number)

    free = [rank(number) for number, needs in enumerate(waits) if not needs]
    heapq.heapify(free)
    ordered: list[DraftStory] = []
    while free:
        _, number = heapq.heappop(free)
        ordered.append(stories[number])
        for other in needed_by.get(number, ()):
            waits[other].discard(number)
            if not waits[other]:
                heapq.heappush(free, rank(other))
    return ordered
