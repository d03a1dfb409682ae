"""Each way to tell a person: what arrives, and what is said when it does not."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from ralph.core.secrets import masked, sealed
from ralph.host.process.signals import StopSignal
from ralph.notify.channels import Apprise, Command, Desktop, Webhook
from ralph.notify.message import Message, Moment, NotSent
from support.webhooks import SECRET, webhook

MESSAGE = Message(event=Moment.DONE, title="Ralph, shop: every story is done", text="2/2 stories", run="r", total=2)
NEVER = StopSignal()


def complaint(way: Webhook | Command | Desktop | Apprise, timeout: float = 5) -> str:
    with pytest.raises(NotSent) as caught:
        way.send(MESSAGE, timeout, NEVER)
    said = str(caught.value)
    assert SECRET not in said
    return said


def test_a_webhook_gets_the_message_as_json() -> None:
    with webhook() as hook:
        Webhook(hook.url).send(MESSAGE, 5, NEVER)
    (got,) = hook.got
    assert (got["event"], got["title"], got["text"], got["total"]) == ("done", MESSAGE.title, MESSAGE.text, 2)
    assert got["content"] == f"{MESSAGE.title}: {MESSAGE.text}"
    assert SECRET in hook.paths[0]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_webhook_that_answers_otherwise_is_told_by_its_status(status: int) -> None:
    with webhook(status) as hook:
        assert complaint(Webhook(hook.url)) == f"responded with status {status}"
        assert len(hook.got) == 1, "no redirection is followed"


def test_a_webhook_that_hangs_or_is_not_there_is_told() -> None:
    with webhook(hangs=True) as hook:
        begun = time.monotonic()
        assert complaint(Webhook(hook.url), 0.2) == "did not respond in time"
        assert time.monotonic() - begun < 10
        url = hook.url
    assert "could not be reached" in complaint(Webhook(url))


@pytest.mark.parametrize(
    "url",
    [f"ftp://x/{SECRET}", f"http://[{SECRET}", f"http://x:{SECRET}/", f"http://h/{SECRET}\nX: 1", SECRET, "http:///"],
)
def test_an_address_that_is_none_is_never_quoted(url: str) -> None:
    assert complaint(Webhook(url)) == "its address is not a valid http(s) URL"


def test_a_command_gets_the_message_by_environment_and_stdin(tmp_path: Path) -> None:
    script = "import os, sys; open('got', 'w').write(sys.stdin.read() + os.environ['RALPH_NOTIFY_TITLE'])"
    Command((sys.executable, "-c", script), tmp_path, os.environ).send(MESSAGE, 20, NEVER)
    got, _, title = (tmp_path / "got").read_text().partition("}")
    assert json.loads(got + "}")["event"] == "done"
    assert title == MESSAGE.title


def test_a_command_sees_only_the_variables_it_is_given(tmp_path: Path) -> None:
    env = {**os.environ, "TOKEN": "t", "OTHER": "o"}
    Command(("sh", "-c", 'echo "$TOKEN-$OTHER" > got'), tmp_path, env, ("TOKEN",)).send(MESSAGE, 20, NEVER)
    assert (tmp_path / "got").read_text() == "t-\n"


def test_a_command_that_fails_is_told_without_its_words(tmp_path: Path) -> None:
    assert complaint(Command(("sh", "-c", f"echo {SECRET}; exit 3"), tmp_path, os.environ)) == "exited with code 3"
    assert complaint(Command(("sleep", "60"), tmp_path, os.environ), 0.2) == "timed out"
    assert "is not installed" in complaint(Command(("no-such-program",), tmp_path, os.environ))


@pytest.mark.parametrize("program", ["notify-send", "osascript"])
def test_the_desktop_is_told_by_the_program_that_is_there(program: str, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / program
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word" >> {tmp_path}/got; done\n')
    tool.chmod(0o755)
    way = Desktop({"PATH": str(tool.parent)})
    assert way.problem() == ""
    way.send(MESSAGE, 20, NEVER)
    assert (tmp_path / "got").read_text().splitlines()[-2:] == [MESSAGE.title, MESSAGE.text]


def test_without_a_program_the_desktop_cannot_be_told(tmp_path: Path) -> None:
    assert complaint(Desktop({"PATH": str(tmp_path)})) == "neither notify-send nor osascript is on PATH"


def test_without_apprise_it_is_said_how_to_get_it() -> None:
    try:
        import apprise  # noqa: F401
    except ImportError:
        assert "[notify]" in complaint(Apprise((f"slack://{SECRET}",), os.environ))
    else:
        assert complaint(Apprise((f"nonsense://{SECRET}",), os.environ), 30) == "not delivered to: nonsense"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"https://hooks.example/services/{SECRET}", "https://hooks.example/…"),
        (f"https://me:{SECRET}@hooks.example:8443?x={SECRET}", "https://hooks.example:8443/…"),
        (f"slack://{SECRET}/{SECRET}", "slack://…"),
        (f"{SECRET}", "…"),
        ("${HOOK}", "${HOOK}"),
    ],
)
def test_a_secret_address_is_shown_masked(address: str, shown: str) -> None:
    assert masked(address) == shown


def test_what_is_agreed_to_names_the_variables_and_differs_for_each_address() -> None:
    one, two = sealed(f"https://h/{SECRET}/${{KEY}}"), sealed("https://h/other/${KEY}")
    assert one.startswith("https://h/… with ${KEY} (sha256 ")
    assert SECRET not in one
    assert one != two
    assert sealed("${HOOK}") == "${HOOK}"
