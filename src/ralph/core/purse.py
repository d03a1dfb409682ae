"""What this run and others have spent, as far as the budgets need it. A fold. Pure."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ralph.core.events import AnyEvent, Charged, Foreseen, SpendingSeen
from ralph.core.spending import NOTHING, Amount, Elsewhere, Need, micros, whole_tokens


class Purse(Struct, frozen=True):
    run: Amount = NOTHING
    stories: dict[str, Amount] = {}
    """Of this run and earlier ones."""
    needs: dict[str, Need] = {}
    """What one session of a story needs at least."""
    elsewhere: Elsewhere = Elsewhere()
    chance: float | None = None
    """Of finishing within the budget."""

    def of(self, story: str) -> Amount:
        return self.stories.get(story, NOTHING)


def pay(purse: Purse, event: AnyEvent) -> Purse:
    change = msgspec.structs.replace
    match event:
        case Charged(story=story, extent=extent):
            amount = amount_of(event)
            if not story:
                return change(purse, run=purse.run + amount)
            stories = purse.stories | {story: purse.of(story) + amount}
            needs = purse.needs | {story: purse.needs.get(story, Need()).after(amount, extent)}
            return change(purse, run=purse.run + amount, stories=stories, needs=needs)
        case SpendingSeen(elsewhere=elsewhere, stories=earlier, needs=needs):
            stories = purse.stories | {name: purse.of(name) + amount for name, amount in earlier.items()}
            stories = stories if earlier else purse.stories
            return change(purse, elsewhere=elsewhere, stories=stories, needs=needs | purse.needs)
        case Foreseen(chance=chance):
            return change(purse, chance=chance)
        case _:
            return purse


def amount_of(charged: Charged) -> Amount:
    known = micros(charged.usd)
    return Amount(known or 0, whole_tokens(charged.tokens), int(known is None))
