"""The options by key, from the schema; their other spellings; and the closest key for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec import inspect as shapes

from ralph.config.schema import Config
from ralph.core.errors import UsageError
from ralph.core.text import one_line


class Option(Struct, frozen=True):
    """One option, as declared in the schema."""

    key: str
    type: shapes.Type
    default: Any
    doc: str
    flags: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    metavar: str = ""
    secret: bool = False
    constants: tuple[tuple[str, str], ...] = ()
    """Flags without a value, each with the value it sets."""
    bare: str = ""
    """What its flag sets without a value."""

    @property
    def variable(self) -> str:
        return variable_of(self.key)


def variable_of(key: str) -> str:
    return "RALPH_" + key.upper().replace(".", "_")


class Alias(Struct, frozen=True):
    """Another spelling of a key."""

    key: str
    minutes: bool = False
    """A number without a unit is in minutes; see `durations.BARE_NUMBERS`."""
    switch: tuple[str, str] | None = None
    """It is a boolean: the values that `true` and `false` set."""
    short: bool = False
    """It is the name of a section: a text there instead of a mapping sets this key, and `RALPH_NAME` does."""


def meaning(alias: Alias) -> str:
    """How its values differ from those of the key."""
    if alias.switch:
        return f": true is {alias.switch[0]}, false is {alias.switch[1]}"
    return ", in minutes" if alias.minutes else ""


ALIASES = {
    "defaults.max_iterations": Alias("max_iterations"),
    "defaults.timeout_minutes": Alias("timeout", minutes=True),
    "defaults.rate_limit_per_hour": Alias("rate_limit_per_hour"),
    "agent.dangerously_skip_permissions": Alias("permissions", switch=("skip", "guard")),
    "claude.dangerously_skip_permissions": Alias("permissions", switch=("skip", "guard")),
    "claude.allowed_tools": Alias("agent.allowed_tools"),
    "review.enabled": Alias("review.when", switch=("always", "never")),
    "reviewers": Alias("review.reviewers"),
    "on_cap": Alias("review.on_cap"),
    "on_stalemate": Alias("review.on_stalemate"),
    "sandbox": Alias("sandbox.use", short=True),
}

RESERVED_VARIABLES = frozenset(
    {
        "RALPH_STATE_HOME",
        "RALPH_TRUST",
        "RALPH_VERDICT_ONLY",
        "RALPH_LOOP",
        "RALPH_RUN",
        "RALPH_STORY",
        "RALPH_ITERATION",
        "RALPH_MODE",
        "RALPH_ATTEMPT",
        "RALPH_REQUEST_FILE",
        "RALPH_REVIEWER",
        "RALPH_NONCE",
    }
)
"""Ralph's variables that are not settings."""

BUILD_VARIABLES = {
    "MAX_ITERATIONS": "max_iterations",
    "MAX_ALLOWED_ITERATIONS": "max_allowed_iterations",
    "TIMEOUT_AGENT": "timeout",
    "PRD_NUMBER": "prd",
}
"""Variables that only `ralph build` reads."""


@cache
def options() -> dict[str, Option]:
    """Key → option, in the order of the schema."""
    return {option.key: option for option in _options(Config, "")}


def _options(section: type[Struct], prefix: str) -> Iterable[Option]:
    info = shapes.type_info(section)
    assert isinstance(info, shapes.StructType)
    for field in info.fields:
        name = prefix + field.name
        if isinstance(field.type, shapes.StructType):
            yield from _options(field.type.cls, f"{name}.")
            continue
        assert isinstance(field.type, shapes.Metadata), f"{name} has no key()"
        extra = dict(field.type.extra or {})
        extra.pop("form", None)
        doc = (field.type.extra_json_schema or {})["description"]
        yield Option(key=name, type=field.type, default=default_of(field), doc=doc, **extra)


def default_of(field: shapes.Field) -> Any:
    if field.default is not NODEFAULT:
        return field.default
    return field.default_factory() if field.default_factory is not NODEFAULT else None


def canonical(spelled: str) -> str:
    """The canonical key for a key or another spelling of it. Raises UsageError for an unknown one."""
    if spelled in options():
        return spelled
    if alias := ALIASES.get(spelled):
        return alias.key
    raise UsageError(
        f"unknown key {one_line(repr(spelled), 60)}",
        hint=nearest_hint(spelled) or "`ralph config show` lists the keys",
    )


def option(spelled: str) -> Option:
    return options()[canonical(spelled)]


def nearest_hint(wrong: str, known: Iterable[str] | None = None) -> str:
    """`did you mean …?`, or empty if nothing is close. Without `known`: among all keys."""
    from difflib import get_close_matches  # for mistakes only

    wrong = wrong[:100]
    if known is not None:
        close = get_close_matches(wrong, list(known), 1)
        return f"did you mean {close[0]}?" if close else ""
    candidates = [*options(), *ALIASES, *_sections()]
    wrong = wrong.lower().replace("-", "_")
    same_end = [key for key in candidates if key.rpartition(".")[2] == wrong.rpartition(".")[2]]
    close = same_end if len(same_end) == 1 else get_close_matches(wrong, candidates, 1)
    return f"did you mean {close[0]}?" if close else ""


def _sections() -> list[str]:
    return sorted({key.partition(".")[0] for key in (*options(), *ALIASES) if "." in key})
