"""An action of the scripted agent: ten megabytes of text for terminals."""

from __future__ import annotations

from ralph.agents.acts import Action
from ralph.agents.stage import Stage


class Flood(Action, frozen=True):
    messages: int = 500

    def play(self, stage: Stage) -> None:
        for number in range(self.messages):
            stage.say(f"message {number} " + "\x1b[31mred\x1b[0m\x1b[2J\x08\x9b3J " * 800)


ACTIONS = {"flood": Flood}
