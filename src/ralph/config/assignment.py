"""`ralph config set` and `unset` on the text of a file: the right spelling, a valid value, one changed key."""

from __future__ import annotations

from collections.abc import Mapping as Map

from msgspec import Struct
from msgspec import inspect as shapes

from ralph.config.display import shape_of
from ralph.config.document import Mapping, Node, Scalar, parse
from ralph.config.durations import BARE_NUMBERS, format_duration
from ralph.config.editing import remove_key, set_key
from ralph.config.keys import ALIASES, canonical, options
from ralph.config.reading import node_of_text
from ralph.config.values import NOTHING, Reader
from ralph.core.errors import ConfigError, UsageError


class Target(Struct, frozen=True):
    """A key as the user names it: an option in some spelling, or one entry of an option that is a mapping."""

    key: str
    spelled: str
    entry: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        return (*self.spelled.split("."), self.entry) if self.entry else tuple(self.spelled.split("."))


def target(spelled: str) -> Target:
    for key, option in options().items():
        if (
            isinstance(shape_of(option), shapes.DictType)
            and spelled.startswith(f"{key}.")
            and len(spelled) > len(key) + 1
        ):
            return Target(key, key, spelled.removeprefix(f"{key}."))
    return Target(canonical(spelled), spelled)


def assign(text: str, file: str, wanted: Target, value: str, env: Map[str, str]) -> str:
    """The text of a config file with one option set. The value is validated first."""
    node = _valid(wanted, value, env)
    there = _spelling_in(parse(text, file), wanted)
    if _is_switch(there.spelled):  # true and false cannot express every value of the key
        text = remove_key(text, file, there.path) if _is_set(parse(text, file), there.spelled) else text
        return set_key(text, file, tuple(wanted.key.split(".")), node)
    if there.spelled != wanted.spelled:
        node = _respelled(node, wanted, there)
    return set_key(text, file, there.path, node)


def _is_switch(spelled: str) -> bool:
    return spelled in ALIASES and ALIASES[spelled].switch is not None


def unassign(text: str, file: str, wanted: Target) -> str:
    """The text without the option; unchanged if it is not set there."""
    return remove_key(text, file, _spelling_in(parse(text, file), wanted).path)


def _valid(wanted: Target, value: str, env: Map[str, str]) -> Node:
    if wanted.entry:
        node: Node = Scalar(text=value, plain=False)
        whole: Node = Mapping(items=((Scalar(text=wanted.entry, plain=False), node),))
    else:
        node = whole = node_of_text(value, wanted.spelled, "the value")
    reader = Reader("the value", env)
    read = reader.option(whole, wanted.spelled)
    if reader.problems:
        raise ConfigError.of(reader.problems)
    if read is NOTHING:
        raise UsageError(
            f"{wanted.spelled} cannot be null", hint=f"to remove it, use `ralph config unset {wanted.spelled}`"
        )
    if _is_switch(wanted.spelled):
        return Scalar(text=str(read))
    if isinstance(read, bool):  # `yes` and `on` are fine here, but a JSON file needs the real word
        return Scalar(text=str(read).lower())
    return node


def _spelling_in(root: Mapping, wanted: Target) -> Target:
    """The spelling that the file already uses, so that no option is set twice in it."""
    others = [spelled for spelled, alias in ALIASES.items() if alias.key == wanted.key]
    for spelled in (wanted.spelled, wanted.key, *others):
        if _is_set(root, spelled):
            return Target(wanted.key, spelled, wanted.entry)
    return wanted


def _is_set(root: Mapping, spelled: str) -> bool:
    node: Node = root
    for name in spelled.split("."):
        item = node.get(name) if isinstance(node, Mapping) else None
        if item is None:
            return False
        node = item[1]
    return True


def _respelled(node: Node, wanted: Target, there: Target) -> Node:
    """A value given for one spelling, converted to another."""
    from_minutes, to_minutes = wanted.spelled in BARE_NUMBERS, there.spelled in BARE_NUMBERS
    if from_minutes == to_minutes:
        return node
    seconds = Reader("the value").option(node, wanted.spelled)
    if to_minutes and seconds % 60 == 0:
        return Scalar(text=str(int(seconds // 60)))
    return Scalar(text=format_duration(seconds))
