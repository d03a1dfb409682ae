"""What an agent may do, in one line; and what to type when its client refuses something."""

from __future__ import annotations

import pytest

from ralph.core.agent import Denial
from ralph.core.permissions import Rights, may_line, with_remedies

NEVER = "push, leave the project, touch protected files"
INSIDE = "may: read all, edit inside the project"


@pytest.mark.parametrize(
    ("rights", "may", "may_not"),
    [
        (Rights(), f"{INSIDE}, run commands the guard allows, use the web", NEVER),
        (
            Rights(web=False, allow_paths=("~/data", "/srv/x")),
            f"{INSIDE} and in ~/data, /srv/x, run commands the guard allows",
            f"{NEVER}, use the web tools",
        ),
        (Rights(guards_commands=False), f"{INSIDE}, run any command, use the web", NEVER.removeprefix("push, ")),
        (
            Rights(mode="skip"),
            "may: everything, without asking (permissions: skip), except what Ralph's hooks deny",
            NEVER,
        ),
        (
            Rights(mode="client", allowed_tools=("Write", "Bash(git *)")),
            "may: what the client's own rules allow (permissions: client; agent.allowed_tools: Write, Bash(git *))",
            NEVER,
        ),
    ],
)
def test_the_line_follows_the_settings(rights: Rights, may: str, may_not: str) -> None:
    assert may_line(rights) == f"{may}; may not: {may_not}"


WALL = "bubblewrap 0.8.0, network: listed hosts"
ALL = f"may: everything inside its sandbox ({WALL})"


@pytest.mark.parametrize(
    ("rights", "line"),
    [
        (
            Rights(mode="skip", sandbox=WALL),
            f"{ALL}; commands that the guard denies stay denied; may not: reach anything outside",
        ),
        (
            Rights(mode="skip", sandbox=WALL, web=False, guards_commands=False, allow_paths=("/srv/x",)),
            f"{ALL}, and edit in /srv/x; may not: reach anything outside, use the web tools",
        ),
        (
            Rights(agent="command", has_hooks=False, sandbox=WALL, web=False),
            f"{ALL}; may not: reach anything outside",
        ),
        (Rights(sandbox=WALL), f"{may_line(Rights())}; it runs in a sandbox ({WALL})"),
        (Rights(mode="client", sandbox=WALL), f"{may_line(Rights(mode='client'))}; it runs in a sandbox ({WALL})"),
    ],
)
def test_a_sandbox_replaces_questions_but_not_what_the_user_has_set(rights: Rights, line: str) -> None:
    assert may_line(rights) == line


@pytest.mark.parametrize("mode", ["guard", "skip", "client"])
def test_an_agent_without_hooks_is_not_said_to_be_restricted(mode: str) -> None:
    line = may_line(Rights(agent="command", has_hooks=False, mode=mode, web=False))
    assert "`command` permits itself" in line
    assert "a sandbox is recommended" in line
    assert "may not" not in line


def test_what_the_hooks_of_a_client_do_not_see_is_said() -> None:
    assert may_line(Rights(unguarded="searches of the web")).endswith("; not guarded: searches of the web")


def test_what_the_rules_of_a_client_come_to_is_said_where_they_are_in_force() -> None:
    rule = "it changes nothing"
    assert "agent.allowed_tools: none): it changes nothing; may not" in may_line(Rights(mode="client", own_rules=rule))
    assert rule not in may_line(Rights(mode="guard", own_rules=rule))


def test_what_the_hook_denied_is_no_refusal_of_the_client() -> None:
    denials = (Denial("Bash", "git push", "1"), Denial("Write", "a", "2"))
    assert [d.id for d in with_remedies(denials, {"1": "deny"}, "")] == ["2"]


def test_one_line_allows_everything_that_nobody_granted() -> None:
    denials = (Denial("Write", "a", "1"), Denial("Bash", "x", "2"), Denial("Write", "b", "3"))
    lines = {d.remedy for d in with_remedies(denials, {}, "Read,Bash(git *)")}
    assert lines == {"allow it with `ralph config set agent.allowed_tools 'Read,Bash(git *),Write,Bash'`"}


def test_where_no_setting_helps_no_setting_is_named() -> None:
    protected, ruled, permitted = with_remedies(
        (Denial("Write", ".npmrc", "1", "protected"), Denial("Bash", "x", "2", "rule"), Denial("Bash", "y", "3")),
        {"1": "allow", "2": "allow", "3": "allow"},
        "",
    )
    assert "client protects this file" in protected.remedy
    assert ".claude/settings.json" in ruled.remedy
    assert ".claude/settings.json" in permitted.remedy
    assert not any("allowed_tools" in d.remedy for d in (protected, ruled, permitted))
    [skipped] = with_remedies((Denial("Bash", "y", "3"),), {}, "", mode="skip")
    assert skipped.remedy == permitted.remedy, "where nothing is asked, only a rule can refuse"


def test_a_call_is_reported_once_and_not_without_end() -> None:
    same = [Denial("Write", "a", "1")] * 3
    assert len(with_remedies(same, {}, "")) == 1
    assert len(with_remedies([Denial("Write", str(n), str(n)) for n in range(500)], {}, "")) == 20
