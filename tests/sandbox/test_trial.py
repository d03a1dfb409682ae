"""The proof before a run: a sandbox is started, and what does not hold is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ralph.host.process.enclosure import Start
from ralph.host.process.start import Finished, run
from ralph.sandbox import bwrap, trial
from ralph.sandbox.wall import Found, Wall, Walled

BWRAP = pytest.mark.needs("bwrap")


class NoWall:
    """A backend that starts the command as it is."""

    NAME = "none"
    TITLE = "nothing"
    MOUNTS = True

    def find(self, env: Mapping[str, str]) -> Found:
        return Found(program="none")

    def enter(self, program: str, wanted: Start, wall: Wall, label: str) -> Start:
        return wanted

    def end(self, program: str, label: str) -> str:
        return ""


@BWRAP
def test_bubblewrap_holds() -> None:
    found = bwrap.find(os.environ)
    assert found.program
    assert trial.prove(bwrap, found) == found


def test_what_does_not_hold_is_named() -> None:
    reason = trial.prove(NoWall(), Found(program="none")).why_not
    assert reason == (
        "nothing does not hold here: a file outside was written; a secret in the home folder was read; "
        "a service on this machine was reached; processes of this machine can be seen; "
        "there is a way to more privileges"
    )


def test_what_is_missing_is_named_without_a_start() -> None:
    missing = Found(why_not="it is not installed", hint="install it")
    assert trial.prove(bwrap, missing) == missing


@BWRAP
def test_a_sandbox_in_a_sandbox_says_that_namespaces_are_forbidden(tmp_path: Path) -> None:
    """As in a container without privileges: the kernel refuses new namespaces."""
    code = """if True:
        import os
        from ralph.sandbox import bwrap, trial
        found = trial.prove(bwrap, bwrap.find(os.environ))
        print(found.why_not)
        print(found.hint)
    """
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    wall = Wall(home=home, writable=(work,), readable=tuple(Path(place) for place in sys.path if place))
    enclosure = Walled(bwrap, bwrap.find(os.environ).program, wall)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
    done = run((sys.executable, "-c", code), cwd=work, env=env, enclosure=enclosure, timeout=60)
    reason, hint = done.out.decode().splitlines()
    assert reason.startswith("bubblewrap cannot start: "), done
    assert hint


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "AppArmor restricts user namespaces"),
        ({"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "only root may create user namespaces"),
        ({"/proc/sys/user/max_user_namespaces": "0"}, "user namespaces are disabled"),
        ({"/.dockerenv": "(empty)"}, "this is a container that may not create namespaces"),
        ({"/proc/self/status": "Name:\tx\nSeccomp:\t2\n"}, "this process is in a sandbox that forbids new namespaces"),
    ],
)
def test_the_reason_has_a_hint(files: dict[str, str], wanted: str) -> None:
    refusal = b"bwrap: setting up uid map: Permission denied\n"
    done = Finished(argv=(), code=1, out=b"", err=refusal, timed_out=False, duration=0)
    reason, hint = trial.why_not_started("bubblewrap", done, lambda path: files.get(path, ""))
    assert reason.startswith(f"bubblewrap cannot start: {wanted}")
    assert hint


def test_an_unknown_reason_is_passed_on() -> None:
    done = Finished(argv=(), code=1, out=b"", err=b"bwrap: strange\n", timed_out=False, duration=0)
    assert trial.why_not_started("bubblewrap", done, lambda _: "") == ("bubblewrap cannot start: bwrap: strange", "")
