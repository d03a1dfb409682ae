"""The private folder of a client's process: laid out before it starts, and cleared when all went well."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ralph.core.agent import AgentEvent, Outcome, Result, Trouble
from ralph.core.ports import Agent, ClientEnd, Launch, Reader, Session
from ralph.core.rules import Patience
from ralph.engine.agent_run import AgentRunner
from ralph.host.process.signals import StopSignal
from ralph.journal.records import Journal


class Lines:
    """Its client reports by stderr, its exit code and a file."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, line: bytes) -> list[AgentEvent]:
        return []

    def error(self, line: bytes) -> list[AgentEvent]:
        self.heard.append(line.decode())
        return [Result(ok=False, trouble=Trouble.LIMIT, gives_up=True)] if line == b"give up" else []

    def finish(self, end: ClientEnd) -> Iterator[AgentEvent]:
        said = (end.folder / "said").read_text()
        yield Result(ok=end.code == 0, text=f"{said}, {' '.join(self.heard)}, {end.stderr.strip()}")


def run(tmp_path: Path, script: str, *, keep: bool = False) -> tuple[Outcome, Path]:
    folders: list[Path] = []

    def launch(session: Session, program: str) -> Launch:
        folders.append(session.folder)
        files = {"settings/own.json": "{}", "empty/x": ""}
        links = {"login": str(tmp_path / "login"), "missing": str(tmp_path / "nowhere")}
        return Launch((program, "-c", script), env={"OWN": str(session.folder)}, files=files, links=links)

    parts: dict[str, Any] = {"NAME": "own", "TITLE": "Own", "ENV": (), "HOOKS": False, "REPORTS_CALLS": True}
    parts |= {"find": lambda session, path: "/bin/sh", "launch": launch, "reader": cast("type[Reader]", Lines)}
    (tmp_path / "login").write_text("key")
    journal = Journal(tmp_path / "journal.jsonl", time.time)
    with StopSignal() as stop:
        runner = AgentRunner(
            lambda _: cast(Agent, SimpleNamespace(**parts)),
            journal,
            stop,
            run="r",
            raw_folder=tmp_path / "raw",
            env={"PATH": os.environ["PATH"]},
            wanted_env=(),
            promise="",
        )
        _, outcome = runner(Session(prompt="", cwd=tmp_path, keep=keep), "agent", Patience())
    journal.close()
    return outcome, folders[0]


SAYS = 'cat "$OWN/login" > "$OWN/said"; mkdir "$OWN/data"; echo one >&2; echo two >&2; exit 0'


def test_a_client_finds_its_files_and_is_heard_by_all_it_leaves(tmp_path: Path) -> None:
    outcome, folder = run(tmp_path, f'cp -r "$OWN/settings" "{tmp_path}/copied"; stat -c %a "$OWN/settings"; {SAYS}')
    assert (outcome.ok, outcome.text) == (True, "key, one two, one\ntwo")
    assert (tmp_path / "copied" / "own.json").read_text() == "{}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_a_good_session_left_in_folders_is_removed_and_the_login_stays(tmp_path: Path) -> None:
    _, folder = run(tmp_path, SAYS)
    assert sorted(path.name for path in folder.iterdir()) == ["login", "said"]
    assert (tmp_path / "login").read_text() == "key"


@pytest.mark.parametrize("keep", [True, False])
def test_the_folder_of_a_session_in_trouble_is_kept(tmp_path: Path, keep: bool) -> None:
    script = SAYS if keep else f"{SAYS.replace('exit 0', 'echo give up >&2; sleep 60')}"
    outcome, folder = run(tmp_path, script, keep=keep)
    assert outcome.trouble == (None if keep else Trouble.LIMIT)
    assert (folder / "data").is_dir()


def test_a_client_that_retries_in_vain_is_ended(tmp_path: Path) -> None:
    began = time.monotonic()
    outcome, _ = run(tmp_path, "echo give up >&2; sleep 60")
    assert (outcome.finished, outcome.trouble) == (True, Trouble.LIMIT)
    assert time.monotonic() - began < 30
