"""The page about safety names commands that are denied and commands that get through. Both are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph.core.permissions import Rights, may_line
from ralph.guard.decision import judge_command

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "safety.md").read_text()


def commands(kind: str) -> list[str]:
    block = re.search(rf"<!-- {kind}: .*?```sh\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    return [re.sub(r"\s+# .*", "", line) for line in block[1].splitlines()]


@pytest.mark.parametrize("command", commands("denied"))
def test_what_the_page_calls_denied_is_denied(command: str) -> None:
    assert judge_command(command, "/home/me/app", {"workspace": "/home/me/app"}).denied


@pytest.mark.parametrize("command", commands("passes"))
def test_what_the_page_says_gets_through_does(command: str) -> None:
    """When one of these is denied one day, the page has to be corrected."""
    assert not judge_command(command, "/home/me/app", {"workspace": "/home/me/app"}).denied


def test_the_line_on_the_page_is_the_one_that_is_printed() -> None:
    assert f"\n{may_line(Rights())}\n" in PAGE
