"""The scripted agent's YAML script: its format, and which part of it is played."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from ralph.agents.acts import ACTIONS, Action
from ralph.config.document import Mapping, Node, Scalar, Sequence, decode, describe, parse
from ralph.core.errors import ConfigError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Mode
from ralph.core.problems import Place, Problem

ANY = "*"
_KEYS = ("acts", "model", "pace", "setup", "stories")
_MODES = tuple(mode.value for mode in Mode)
_TYPE_ERROR = lazy_pattern(r"Expected `(.+)`, got `(.+?)`(?: - at `\$\.(.+)`)?")


class Step(Struct, frozen=True):
    name: str
    line: int
    action: Action


Steps = tuple[Step, ...]


class Script(Struct, frozen=True):
    stories: dict[str, tuple[dict[Mode, Steps], ...]]
    """Story → its attempts → actions by mode."""
    setup: Steps = ()
    model: str = "scripted"
    pace: float = 0
    """Seconds before each action, for people who watch."""
    acts: str = ""
    """A Python file with actions of its own."""

    def select(self, story: str, mode: Mode, attempt: int) -> Steps:
        """The actions to play now. The last attempt repeats; for a mode that a story does not define, `*` is used."""
        if mode is Mode.SETUP and self.setup:
            return self.setup
        for name in (story, ANY):
            plays = [modes[mode] for modes in self.stories.get(name, ()) if mode in modes]
            if plays:
                return plays[min(max(attempt, 1), len(plays)) - 1]
        return ()


def read(source: bytes, file: str, *, load: bool = False) -> Script:
    """Strict. Raises ConfigError with file and line. `load`: import the script's own actions, to play them.

    Only the player does: the process of the loop does not run code that a script names, so there an action of such a
    script that Ralph does not know is not checked."""
    return _Reader(file, load).script(parse(decode(source, file), file))


class _Reader:
    def __init__(self, file: str, load: bool) -> None:
        self.file = file
        self.load = load
        self.actions = ACTIONS
        self.own = ""
        self.is_open = False
        """The script has actions of its own, which are not loaded."""

    def acts(self, node: Node) -> None:
        """Import the Python file `acts`, relative to the script. Its `ACTIONS` add to ours."""
        path = Path(self.file).parent / self.convert(_value(node), str, "acts", node)
        self.own = str(path)
        self.is_open = not self.load
        if not self.load:
            return
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location("scripted_acts", path)
        if spec is None or spec.loader is None:
            self.refuse(node, f"{path} is not a Python file")
        module = sys.modules["scripted_acts"] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            self.actions = {**ACTIONS, **module.ACTIONS}
        except Exception as error:  # noqa: BLE001 - whatever the file does
            self.refuse(node, f"{path} cannot be imported: {error}")

    def script(self, root: Mapping) -> Script:
        values: dict[str, Any] = {}
        if own := root.get("acts"):
            self.acts(own[1])
        for name, node in root.items:
            match name.text:
                case "stories":
                    stories = self.mapping(node, "stories", "a story's id")
                    values["stories"] = {key.text: self.attempts(value, key.text) for key, value in stories.items}
                case "setup":
                    values["setup"] = self.steps(node, "setup")
                case "model" | "pace":
                    kind: Any = str if name.text == "model" else float
                    values[name.text] = self.convert(_value(node), kind, name.text, node)
                case "acts":
                    pass
                case unknown:
                    self.refuse_name(name, "key", unknown, _KEYS)
        if not values.get("stories") and not values.get("setup"):
            self.refuse(root, "the script has no stories", "see docs/scripted-agent.md for the format")
        return Script(**{"stories": {}, **values}, acts=self.own)

    def attempts(self, node: Node, story: str) -> tuple[dict[Mode, Steps], ...]:
        if not isinstance(node, Sequence) or not node.items:
            hint = "start each attempt with `- implement:`"
            self.refuse(node, f"story {story} has {describe(node)}, expected a list of attempts", hint)
        return tuple(self.attempt(item, story) for item in node.items)

    def attempt(self, node: Node, story: str) -> dict[Mode, Steps]:
        """A bare list of actions is an implementation."""
        if isinstance(node, Sequence):
            return {Mode.IMPLEMENT: self.steps(node, story)}
        modes: dict[Mode, Steps] = {}
        for name, value in self.mapping(node, f"an attempt of story {story}", "a mode").items:
            if name.text in self.actions:
                hint = "put the action in the list of a mode, e.g. `implement: [...]`"
                self.refuse(name, f"found action {name.text} where a mode is expected", hint)
            if name.text not in _MODES:
                self.refuse_name(name, "mode", name.text, _MODES)
            modes[Mode(name.text)] = self.steps(value, f"{story} {name.text}")
        return modes

    def steps(self, node: Node, what: str) -> Steps:
        if not isinstance(node, Sequence):
            self.refuse(node, f"{what} is {describe(node)}, expected a list of actions")
        return tuple(self.step(item) for item in node.items)

    def step(self, node: Node) -> Step:
        """`name: settings`, or only the name."""
        name: Node = node
        given: Node = Scalar(text="")
        if isinstance(node, Mapping):
            if len(node.items) != 1:
                names = ", ".join(key.text for key, _ in node.items) or "none"
                self.refuse(node, f"an action has one name, but this one has: {names}", "start each action with `- `")
            name, given = node.items[0]
        if not isinstance(name, Scalar):
            self.refuse(node, f"{describe(node)} is not an action")
        kind = self.actions.get(name.text)
        if kind is None and self.is_open:
            return Step(name.text, name.line, Action())
        if kind is None:
            self.refuse_name(name, "action", name.text, tuple(self.actions))
        return Step(name.text, name.line, self.action(name.text, kind, given))

    def action(self, name: str, kind: type[Action], given: Node) -> Action:
        fields = kind.__struct_fields__
        if isinstance(given, Mapping):
            for key, _ in given.items:
                if key.text not in fields:
                    self.refuse_name(key, f"setting of {name}", key.text, fields)
            values = _value(given)
        elif isinstance(given, Scalar) and given.is_null:
            values = {}
        elif not fields:
            self.refuse(given, f"{name} takes no settings")
        else:
            values = {fields[0]: _value(given)}
        action: Action = self.convert(values, kind, name, given)
        return action

    def convert(self, value: Any, kind: Any, name: str, node: Node) -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            message, at = str(error), node
            if found := _TYPE_ERROR.fullmatch(message):
                wanted, got, path = found.groups()
                first = (path or "").split(".")[0].split("[")[0]
                if isinstance(node, Mapping) and (item := node.get(first)):
                    at = item[1]
                name = f"{name}.{path}" if path else name
                message = f"expected {wanted}, got {got}"
                if (wanted, isinstance(at, Scalar)) == ("str", True):
                    self.refuse(at, f"{name}: {message}", "quote it")
            self.refuse(at, f"{name}: {message.replace('Object missing required field', 'it needs')}")

    def mapping(self, node: Node, what: str, key: str) -> Mapping:
        if not isinstance(node, Mapping):
            self.refuse(node, f"{what} is {describe(node)}, but each entry needs {key} as its key")
        return node

    def refuse_name(self, node: Node, kind: str, name: str, known: tuple[str, ...]) -> NoReturn:
        from difflib import get_close_matches  # only when something is wrong

        close = get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known) or 'none'}"
        self.refuse(node, f"unknown {kind} {name!r}", hint)

    def refuse(self, node: Node, message: str, hint: str = "") -> NoReturn:
        place = Place(self.file, node.line or None, node.column or None)
        raise ConfigError.of([Problem("script", message, place, hint)])


def _value(node: Node) -> Any:
    if isinstance(node, Mapping):
        return {key.text: _value(value) for key, value in node.items}
    if isinstance(node, Sequence):
        return [_value(item) for item in node.items]
    assert isinstance(node, Scalar)
    return node.resolve()
