"""The pages of docs/ that are written from the code say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands_page import cli_page, exit_codes_page, other_names

from ralph.cli.grammar import Argument, Command, Kind, Option, Value, read_all
from ralph.core.exit_codes import ExitCode
from ralph.core.moves import Reason
from ralph.plans.registry import LAYOUTS

DOCS = Path(__file__).resolve().parents[2] / "docs"

SAMPLE = Command(
    (),
    "",
    subcommands=(
        Command(
            ("task",),
            "change stories",
            description="Change the stories.",
            subcommands=(
                Command(
                    ("task", "show"),
                    "one story",
                    options=(
                        Option(("-h", "--help"), "explain"),
                        Option(("-m", "--mode"), "a | b", Value("MODE", Kind.CHOICE, ("a", "b"))),
                    ),
                    arguments=(Argument(Value("ID"), "which one"), Argument(Value("WORD"), "", True, True)),
                    examples=("ralph task show US-001",),
                ),
            ),
        ),
    ),
)

PAGE = """
| command | does |
| --- | --- |
| [`ralph task`](#ralph-task) | change stories |

## ralph task

Change the stories.

```
ralph task ACTION …
```

| action | does |
| --- | --- |
| [`ralph task show`](#ralph-task-show) | one story |

### ralph task show

one story

```
ralph task show [OPTIONS] ID [WORD …]
```

| argument | meaning |
| --- | --- |
| `ID` | which one |
| `-m MODE`, `--mode MODE` | a \\| b |

```sh
ralph task show US-001
```
"""


def test_a_page_tells_commands_actions_arguments_options_and_examples() -> None:
    assert cli_page(SAMPLE).endswith(PAGE)


def test_the_page_of_commands_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LAYOUTS, "group", "")
    ralph = read_all()
    assert (DOCS / "cli.md").read_text() == cli_page(ralph) + other_names(ralph), "run scripts/write_docs.py"


def test_the_page_of_exit_codes_is_up_to_date() -> None:
    assert (DOCS / "exit-codes.md").read_text() == exit_codes_page(), "run scripts/write_docs.py"


@pytest.mark.parametrize("code", ExitCode)
def test_every_exit_code_is_on_the_page(code: ExitCode) -> None:
    assert f"| {int(code)} |" in exit_codes_page()
    assert code.meaning in exit_codes_page()


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_in_the_page_of_exit_codes_with_its_code(reason: Reason) -> None:
    assert f"| {reason.value} | {int(reason.exit_code)} | " in exit_codes_page()
