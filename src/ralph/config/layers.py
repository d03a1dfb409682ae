"""Settings from all their sources, each value with its origin.

built-in < profile of the layout < ~/.ralph/config.yaml < .ralph/config.yaml < .ralph/configs/NAME < RALPH_* < flags
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from ralph.config.document import decode, parse
from ralph.config.keys import canonical, options
from ralph.config.profiles import NAMED_CONFIG, PROFILES
from ralph.config.reading import Found, Values, read_file, read_given, read_variables
from ralph.config.schema import Config, all_checks
from ralph.core.errors import ConfigError, UsageError
from ralph.core.names import safe_name
from ralph.core.problems import Place, Problem, Severity
from ralph.host.files import read_bytes
from ralph.host.redaction import configure
from ralph.state.places import user_config

LIMIT = 1_000_000
SUFFIXES = (".yaml", ".yml", ".json")


def project_config(root: Path) -> Path:
    return root / ".ralph" / "config.yaml"


def is_user_config(path: Path, env: Mapping[str, str]) -> bool:
    """In the home folder, the project's config would be the user's own file."""
    return os.path.realpath(path) == os.path.realpath(user_config(env))


def named_config(root: Path, name: str) -> Path | None:
    """`.ralph/configs/NAME.*`, or None if it does not exist. The name may include its suffix."""
    folder = root / ".ralph" / "configs"
    stem = next((name.removesuffix(s) for s in SUFFIXES if name.endswith(s)), name)
    safe_name(stem, "config name")
    names = [name] if stem != name else [stem + suffix for suffix in SUFFIXES]
    found = [folder / each for each in names if os.path.lexists(folder / each)]
    if len(found) > 1:
        listed = " and ".join(path.name for path in found)
        raise UsageError(f"{listed} in {folder} have the same name", hint="keep one of them, or include the suffix")
    return found[0] if found else None


def missing_config(root: Path, name: str) -> UsageError:
    from difflib import get_close_matches

    folder = root / ".ralph" / "configs"
    there = sorted(path.stem for path in folder.glob("*") if path.suffix in SUFFIXES) if folder.is_dir() else []
    close = get_close_matches(name, there, 1)
    hint = f"did you mean {close[0]}?" if close else f"available: {', '.join(there) or 'none'}"
    return UsageError(f"no config {name!r} in {folder}", hint=hint)


def read_config(path: Path, env: Mapping[str, str], within: Path | None) -> tuple[Values, list[Problem]]:
    """The values of a config file. A missing file sets nothing."""
    if not os.path.lexists(path):
        return {}, _misnamed(path)
    source = read_bytes(path, within=within, limit=LIMIT)
    return read_file(parse(decode(source, str(path)), str(path)), str(path), env)


def _misnamed(path: Path) -> list[Problem]:
    """`config.yml` and `config.json` are easily mistaken for the real name."""
    others = [path.with_suffix(suffix) for suffix in SUFFIXES if suffix != path.suffix]
    return [
        Problem(
            "not-read",
            f"this file is ignored; the expected name is {path.name}",
            Place(str(other)),
            f"rename it to {path.name}",
            Severity.WARNING,
        )
        for other in others
        if other.exists()
    ]


class Kind(StrEnum):
    """The layers, lowest first."""

    DEFAULT = "default"
    PROFILE = "profile"
    USER = "user"
    PROJECT = "project"
    NAMED = "named"
    ENVIRONMENT = "environment"
    FLAG = "flag"


WORKSPACE = frozenset({Kind.PROJECT, Kind.NAMED})
"""Layers that come with the workspace and may be untrusted."""


class Origin(Struct, frozen=True):
    kind: Kind
    file: str = ""
    line: int = 0
    name: str = ""
    """The profile, the variable, the flag, or the key as spelled in the file."""

    def __str__(self) -> str:
        if self.file:
            return f"{self.file}:{self.line}" if self.line else self.file
        return f"profile {self.name}" if self.kind is Kind.PROFILE else self.name or self.kind.value


class Layer(Struct, frozen=True):
    kind: Kind
    values: Values
    file: str = ""

    def origin(self, found: Found) -> Origin:
        return Origin(self.kind, self.file, found.line, found.spelled)


class Settings(Struct, frozen=True):
    config: Config
    layers: tuple[Layer, ...]
    warnings: tuple[Problem, ...] = ()

    def origin(self, key: str) -> Origin:
        """Where the effective value of a key was set."""
        return self.history(key)[0][1]

    def history(self, key: str) -> list[tuple[Any, Origin]]:
        """Every value that was set for a key, the effective one first, the built-in default last."""
        key = canonical(key)
        set_by = [layer for layer in reversed(self.layers) if key in layer.values]
        return [(layer.values[key].value, layer.origin(layer.values[key])) for layer in set_by]

    def value(self, key: str) -> Any:
        return reduce(getattr, canonical(key).split("."), self.config)

    def items(self) -> Iterator[tuple[str, Any, Origin]]:
        for key in options():
            yield key, self.value(key), self.origin(key)


def load(
    *,
    root: Path | None,
    layout: str,
    name: str | None,
    env: Mapping[str, str],
    flags: Mapping[str, Any],
    extra_env: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of a workspace (`root`), for a layout, with the named config `name`.

    Raises ConfigError with every problem of every source, UsageError when a flag is wrong.
    """
    layers = [Layer(Kind.DEFAULT, {key: Found(o.default, o.default, "") for key, o in options().items()})]
    problems: list[Problem] = []

    def add(kind: Kind, read: tuple[Values, list[Problem]], file: str = "") -> None:
        layers.append(Layer(kind, read[0], file))
        problems.extend(read[1])

    add(Kind.PROFILE, read_given(PROFILES.get(layout, {}), layout))
    add(Kind.USER, read_config(user_config(env), env, None), str(user_config(env)))
    for kind, file in _workspace_files(root, layout, name, env):
        add(kind, read_config(file, env, root), str(file))
    add(Kind.ENVIRONMENT, read_variables(env, extra_env or {}))
    given, wrong = read_given({canonical(key): value for key, value in flags.items()}, "")
    if wrong:
        raise UsageError(str(wrong[0]), hint=wrong[0].hint)
    add(Kind.FLAG, (given, []))

    if errors := [problem for problem in problems if problem.severity is Severity.ERROR]:
        raise ConfigError.of(errors)
    effective = {key: found.value for layer in layers for key, found in layer.values.items()}
    settings = Settings(_build(effective), tuple(layers), tuple(problems))
    settings = Settings(settings.config, settings.layers, (*settings.warnings, *_contradictions(settings)))
    config = settings.config
    configure(env, config.redact, filter(None, (config.notify.webhook, *config.notify.apprise)))
    return settings


def _workspace_files(
    root: Path | None, layout: str, name: str | None, env: Mapping[str, str]
) -> Iterator[tuple[Kind, Path]]:
    if root is None:
        if name is not None:
            raise UsageError(f"no workspace here that could hold the config {name!r}")
        return
    if not is_user_config(project_config(root), env):
        yield Kind.PROJECT, project_config(root)
    wanted = name if name is not None else NAMED_CONFIG.get(layout)
    if wanted is None:
        return
    if file := named_config(root, wanted):
        yield Kind.NAMED, file
    elif name is not None:
        raise missing_config(root, name)


def _build(values: Mapping[str, Any]) -> Config:
    """The nested structs, from values by dotted key."""
    return cast(Config, _filled(Config(), values))


def _filled(defaults: Struct, values: Mapping[str, Any]) -> Struct:
    own: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        head, _, tail = key.partition(".")
        if tail:
            sections.setdefault(head, {})[tail] = value
        else:
            own[head] = value
    return type(defaults)(**own, **{head: _filled(getattr(defaults, head), inner) for head, inner in sections.items()})


def _contradictions(settings: Settings) -> list[Problem]:
    """Values that are valid separately but not together."""
    config = settings.config
    names = [check.name for check in all_checks(config)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError.of([_at(settings, "checks", "duplicate-check", f"two checks have the name {twice!r}")])
    if any(os.path.normpath(path).strip("/") == "" for path in config.allow_paths):
        message = "/ is the whole file system"
        hint = "list individual folders, or run Ralph in a container with `permissions: skip`"
        raise ConfigError.of([_at(settings, "allow_paths", "too-much", message, hint)])
    for pattern in config.redact:
        try:
            re.compile(pattern)
        except re.error as error:
            message = f"{pattern!r} is not a regular expression: {error}"
            raise ConfigError.of([_at(settings, "redact", "bad-pattern", message)]) from None
    if 0 < config.max_allowed_iterations < config.max_iterations:
        most = config.max_allowed_iterations
        message = f"{config.max_iterations} exceeds max_allowed_iterations ({most}): the run stops after {most}"
        hint = "raise max_allowed_iterations to allow more"
        return [_at(settings, "max_iterations", "over-the-cap", message, hint, Severity.WARNING)]
    return []


def _at(
    settings: Settings, key: str, code: str, message: str, hint: str = "", severity: Severity = Severity.ERROR
) -> Problem:
    origin = settings.origin(key)
    return Problem(code, message, Place(origin.file or str(origin), origin.line or None, None, key), hint, severity)
