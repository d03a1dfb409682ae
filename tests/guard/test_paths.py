"""Where paths lead, seen from a workspace."""

from __future__ import annotations

import pytest

from ralph.guard import paths as at
from ralph.guard.paths import Places, normal
from ralph.guard.taint import LOCAL, OUTPUT, UNKNOWN, Names

NAMES = Names()
PLACES = Places("/home/me/app", "/home/me", ("/scratch/tmp",), NAMES)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/a.py", at.INSIDE),
        ("/home/me/app/dist", at.INSIDE),
        ("~/app/dist", at.INSIDE),
        ("*.log", at.INSIDE),
        ("src/*", at.INSIDE),
        (f"build/{UNKNOWN}", at.INSIDE),
        (LOCAL, at.UNSURE),
        (".", at.ROOT),
        ("./", at.ROOT),
        ("/home/me/app", at.ROOT),
        ("..", at.ROOT),
        ("/", at.ROOT),
        ("/*", at.ROOT),
        ("/h*", at.ROOT),
        ("~", at.ROOT),
        ("~/*", at.ROOT),
        ("src/../..", at.ROOT),
        ("*", at.ALL),
        ("./*", at.ALL),
        (".[!.]*", at.ALL),
        ("*/", at.ALL),
        (".git", at.GIT),
        (".git/objects/ab", at.GIT),
        ("lib/.git", at.GIT),
        (".g*", at.GIT),
        (".git/hooks/pre-commit", at.GIT_HOOK),
        (".git/config", at.GIT_HOOK),
        (".git/index.lock", at.INSIDE),
        (".git/info/exclude", at.INSIDE),
        (".ralph", at.OWN),
        (".ralph/config.yaml", at.OWN),
        (".ralph/login/progress.txt", at.INSIDE),
        (".claude/settings.local.json", at.OWN),
        (".claude/commands/x.md", at.INSIDE),
        ("~/.claude/settings.json", at.OWN),
        ("~/.local/state/ralph/x", at.OWN),
        ("../other", at.OUTSIDE),
        ("/home/you/x", at.OUTSIDE),
        ("/srv/data", at.SYSTEM),
        ("/data/x", at.OUTSIDE),
        ("/etc/hosts", at.SYSTEM),
        ("/tmp/../etc/hosts", at.SYSTEM),
        ("/etc/sudoers.d/x", at.RIGHTS),
        ("/etc/cron.d/x", at.STARTUP),
        ("~/.bashrc", at.STARTUP),
        ("~/.ssh/authorized_keys", at.STARTUP),
        ("~/.bash_history", at.HISTORY),
        ("/var/log/syslog", at.LOG),
        ("/tmp/x", at.TEMP),
        ("/scratch/tmp/x", at.TEMP),
        ("/tmp", at.TEMP_ROOT),
        ("/tmp/*", at.TEMP_ROOT),
        ("/dev/null", at.NULL),
        ("/dev/sda", at.DEVICE),
        ("/dev/tcp/host/80", at.NET),
        ("/sys/x", at.KERNEL),
        ("", at.NOTHING),
        (f"{NAMES.mark('X')}/*", at.MAYBE_ROOT),
        (f"{NAMES.mark('X')}/usr", at.MAYBE_ROOT),
        (f"{NAMES.mark('X')}/mine", at.UNSURE),
        (f"{OUTPUT}/lib", at.UNSURE),
    ],
)
def test_a_path_has_its_place(path: str, kind: str) -> None:
    assert PLACES.locate(path, "/home/me/app").kind == kind


@pytest.mark.parametrize(
    ("path", "expected"), [("/a/./b//c/", "/a/b/c"), ("/a/../../b", "/b"), ("/", "/"), ("/..", "/"), ("", "/")]
)
def test_a_path_is_made_plain(path: str, expected: str) -> None:
    assert normal(path) == expected


def test_a_folder_below_is_seen_from_where_the_command_is() -> None:
    assert PLACES.locate("..", "/home/me/app/src").kind == at.ROOT
    assert PLACES.locate("../dist", "/home/me/app/src").kind == at.INSIDE
    assert PLACES.locate("*", "/home/me/app/src").kind == at.INSIDE
    assert PLACES.locate("*", "/tmp/x").kind == at.TEMP


def test_a_workspace_in_a_temporary_folder_is_no_less_a_workspace() -> None:
    inside = Places("/tmp/work", "/home/me", (), Names())
    assert inside.locate("*", "/tmp/work").kind == at.ALL
    assert inside.locate("dist", "/tmp/work").kind == at.INSIDE


def test_a_home_that_is_the_workspace_still_has_its_start_up_files() -> None:
    home = Places("/home/me", "/home/me", (), Names())
    assert home.locate(".bashrc", "/home/me").kind == at.STARTUP
    assert home.locate("*", "/home/me").kind == at.ALL
