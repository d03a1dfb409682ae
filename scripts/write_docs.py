"""Write the pages of docs/ that are made from the code: commands, exit codes, settings.

.venv/bin/python scripts/write_docs.py [--check]
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from commands_page import cli_page, exit_codes_page, other_names
from msgspec import inspect as shapes

from ralph.agents.registry import AGENTS, agent
from ralph.cli.grammar import read_all
from ralph.config.display import kind, show
from ralph.config.keys import ALIASES, BUILD_VARIABLES, RESERVED_VARIABLES, Option, default_of, meaning, options
from ralph.config.profiles import NAMED_CONFIG, PROFILES
from ralph.config.schema import Check, Step, StepBreaker
from ralph.core.agent_traits import traits_of
from ralph.core.ports import Agent
from ralph.plans.registry import LAYOUTS
from ralph.state.names import FILES
from ralph.trial.scenarios import SCENARIOS, Scenario
from ralph.trial.suite import load_recording, why_not
from ralph.tui.keys import EDITOR_KEYS, FORM_KEYS, KEYS, MOVES, sign

DOCS = Path(__file__).resolve().parent.parent / "docs"


def main(arguments: list[str]) -> int:
    LAYOUTS.group = ""  # the pages are about the built-in layouts, whatever is installed here
    ralph = read_all()
    commands = cli_page(ralph) + other_names(ralph)
    pages = {"cli.md": commands, "exit-codes.md": exit_codes_page(), "config.md": settings_page()}
    pages["agents.md"] = agents_page((DOCS / "agents.md").read_text())
    pages["ui.md"] = keys_page((DOCS / "ui.md").read_text())
    pages["../ARCHITECTURE.md"] = architecture_page((DOCS.parent / "ARCHITECTURE.md").read_text())
    stale = 0
    for name, text in pages.items():
        path = DOCS / name
        found = path.read_text() if path.exists() else ""
        if found == text:
            continue
        stale = 1
        if "--check" in arguments:
            ours, theirs = text.splitlines(keepends=True), found.splitlines(keepends=True)
            sys.stdout.writelines(difflib.unified_diff(theirs, ours, f"docs/{name}", "as the code has it"))
        else:
            path.write_text(text)
            print(f"wrote docs/{name}")
    return stale if "--check" in arguments else 0


def architecture_page(page: str) -> str:
    """The page with the current rooms and the current state folder, each between its two marks."""
    rows = [(f"`{file.path}`", f"`{file.writer}`", file.what) for file in FILES]
    page = _between(page, "state", _table(("file or folder/", "written by", "what it is"), rows))
    return _between(page, "rooms", _table(("room", "what is in it"), list(_rooms())))


def keys_page(page: str) -> str:
    """The page with the keys of `ralph ui`, each table between its two marks."""
    run = [(f"`{sign(key)}`", key.meaning) for key in KEYS] + [(f"`{key}`", meaning) for key, meaning in MOVES]
    page = _between(page, "keys", _table(("key", "what it does"), run))
    keys = [(f"`{sign(key)}`", key.meaning) for key in (*EDITOR_KEYS, FORM_KEYS[0])]
    return _between(page, "editor keys", _table(("key in the editor", "what it does"), keys))


def agents_page(page: str) -> str:
    """The page with the clients and what the conformance suite found, each between its two marks."""
    AGENTS.group = ""
    found = [agent(name) for name in sorted(AGENTS.built_in()) if traits_of(agent(name)).install]
    recorded = {one.NAME: _recorded(one.NAME) for one in found}
    rows = []
    for one in found:
        traits = traits_of(one)
        version = next(iter(recorded[one.NAME].values()), traits.tried)
        guard = f"yes, except {traits.unguarded}" if one.HOOKS and traits.unguarded else "yes" if one.HOOKS else "no"
        cost = "yes" if traits.reports_cost else "estimated" if traits.reports_usage else "no"
        tokens = "yes" if traits.reports_usage else "no"
        rows.append((f"`{one.NAME}`", one.TITLE, version, f"`{traits.install}`", guard, tokens, cost))
    head = ("`agent.name`", "client", "tested version", "installed by", "guarded by hooks", "tokens", "cost")
    page = _between(page, "clients", _table(head, rows))
    notes: list[str] = []
    marks = []
    for scenario in SCENARIOS:
        cells = [_passed(one, scenario, recorded[one.NAME], notes) for one in found]
        marks.append((f"`{scenario.name}`", scenario.title, *cells))
    table = _table(("scenario", "", *(f"`{one.NAME}`" for one in found)), marks)
    listed = "".join(f"{number}. {note}\n" for number, note in enumerate(notes, 1))
    return _between(page, "conformance", f"{table}\n{listed}" if notes else table)


def _passed(one: Agent, scenario: Scenario, recorded: dict[str, str], notes: list[str]) -> str:
    if reason := why_not(one, scenario):
        text = f"{reason[0].upper()}{reason[1:].rstrip('.')}."
        if text not in notes:
            notes.append(text)
        return f"({notes.index(text) + 1})"
    return "✓" if scenario.name in recorded else ""


def _recorded(name: str) -> dict[str, str]:
    """Scenario → the client's version that passed it."""
    folder = DOCS.parent / "tests" / "agents" / "recorded" / name
    return {path.stem: load_recording(path).version for path in sorted(folder.glob("*.json"))}


def _between(page: str, name: str, text: str) -> str:
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, _, rest = page.partition(start)
    return before + start + text + end + rest.partition(end)[2]


def _rooms() -> Iterator[tuple[str, str]]:
    """The packages from the top to the bottom, as the import contract has them, with the first line of each."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    for layer in project["tool"]["importlinter"]["contracts"][0]["layers"]:
        for room in re.findall(r"\w+", layer):
            page = DOCS.parent / "src" / "ralph" / room / "__init__.py"
            if page.exists():
                yield f"`{room}`", (ast.get_docstring(ast.parse(page.read_text())) or "").splitlines()[0]


_INTRODUCTION = """\
# Settings

<!-- Written by scripts/write_docs.py from the schema. -->

Every setting is one key. It can be set in a file, by an environment variable or by a flag; a later source wins:

1. the built-in default
2. the profile of the plan's layout (below)
3. `~/.ralph/config.yaml`
4. `.ralph/config.yaml` in the workspace
5. `.ralph/configs/NAME.yaml` or `.json`, with `--config NAME`
6. `RALPH_*` variables
7. flags

`ralph config show --origin` shows the origin of each value. `ralph config set KEY VALUE` changes one key and
leaves every other byte of the file alone, or refuses and shows the line to write by hand. `ralph config schema`
prints a JSON Schema for editors.

The files are YAML; JSON is YAML, and `.json` files may have `//` comments. Dots in a key are levels in a file:
`review.cap` is

```yaml
review:
  cap: 3
```

An unknown key or a wrong type is an error that names the file, the line and the closest valid key. In values,
`${NAME}` is replaced by the environment variable, `${NAME:-text}` has a default, and `$${` stands for `${`.
A duration has a unit: `90s`, `20m`, `1h30m`. A number without one is an error, except in `-t` and
`defaults.timeout_minutes` (minutes) and in the variable `TIMEOUT_AGENT` of `ralph build` (seconds); `0` needs none.
A setting that is null counts as not set.

Commands that a workspace names in its files run only after `ralph trust`.
"""


def settings_page() -> str:
    """docs/config.md, from the schema."""
    return "\n".join([_INTRODUCTION, _keys(), _aliases(), _lists(), _profiles(), _variables()])


def _keys() -> str:
    rows = [
        (f"`{o.key}`", _cell(kind(o)), f"`{show(o.default, o)}`" if show(o.default, o) else "", _flags(o), _cell(o.doc))
        for o in options().values()
    ]
    return "## Keys\n\n" + _table(("key", "type", "default", "flags", "meaning"), rows)


def _flags(option: Option) -> str:
    return ", ".join(f"`{flag}`" for flag in (*option.flags, *option.off, *dict(option.constants)))


def _aliases() -> str:
    rows = [(f"`{s}`", f"`{a.key}`{meaning(a)}") for s, a in ALIASES.items()]
    return "## Other spellings\n\n" + _table(("key", "same as"), rows)


_PLAIN_CHECK = 'A plain string is a check named after its command: `checks: ["pytest -q", "ruff check ."]`.\n\n'


def _lists() -> str:
    parts = []
    for title, cls in (("checks", Check), ("steps", Step), ("steps[].circuit_breaker", StepBreaker)):
        info = shapes.type_info(cls)
        assert isinstance(info, shapes.StructType)
        rows = [_field(field) for field in info.fields]
        note = _PLAIN_CHECK if cls is Check else ""
        parts.append(f"## `{title}`\n\n{note}" + _table(("key", "default", "meaning"), rows))
    return "\n".join(parts)


def _field(field: shapes.Field) -> tuple[str, ...]:
    assert isinstance(field.type, shapes.Metadata)
    doc = (field.type.extra_json_schema or {})["description"]
    shown = show(default_of(field))
    return (f"`{field.name}`", "required" if field.required else f"`{shown}`" if shown else "", _cell(doc))


def _profiles() -> str:
    rows = [
        (f"`{layout}`", ", ".join(f"`{key}: {_plain(value)}`" for key, value in values.items()))
        for layout, values in PROFILES.items()
    ]
    named = "; ".join(f"the `{layout}` layout reads `{name}`" for layout, name in NAMED_CONFIG.items())
    return (
        "## Profiles\n\n" + _table(("layout", "values"), rows) + f"\nWithout `--config`, {named} if that file exists.\n"
    )


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _variables() -> str:
    example = options()["max_iterations"].variable
    return (
        "## Variables\n\n"
        f"`RALPH_` and the key in capitals, dots as underscores: `{example}`, `{options()['review.cap'].variable}`. "
        "Lists and mappings are written as YAML. An empty variable counts as not set; an unknown `RALPH_*` variable "
        "causes a warning.\n\n"
        "`ralph build` also reads "
        + ", ".join(f"`{name}` (`{key}`)" for name, key in BUILD_VARIABLES.items())
        + ".\n\nNot settings: "
        + ", ".join(f"`{name}`" for name in sorted(RESERVED_VARIABLES))
        + ".\n"
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
