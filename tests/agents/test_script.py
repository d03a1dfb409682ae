from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.agents.acts import ACTIONS, Claim, Run, Say, Write
from ralph.agents.script import Script, read
from ralph.core.errors import ConfigError
from ralph.core.evidence import Claim as Claimed
from ralph.core.plan import Mode


def script(text: str) -> Script:
    return read(text.encode(), "demo.yaml")


def said(chosen: Script, story: str, mode: Mode, attempt: int) -> list[str]:
    return [step.action.text for step in chosen.select(story, mode, attempt) if isinstance(step.action, Say)]


BY_ATTEMPT = """
setup: [say: set up]
stories:
  US-001:
    - implement: [say: first]
      review: [say: look]
    - implement: [say: second]
    - - say: third
  US-002:
    - fix: [say: mend]
  "*":
    - implement: [say: any]
      setup: [say: never]
    - review: [say: any review]
"""


@pytest.mark.parametrize(
    ("story", "mode", "attempt", "words"),
    [
        ("US-001", Mode.IMPLEMENT, 1, ["first"]),
        ("US-001", Mode.IMPLEMENT, 2, ["second"]),
        ("US-001", Mode.IMPLEMENT, 3, ["third"]),
        ("US-001", Mode.IMPLEMENT, 99, ["third"]),
        ("US-001", Mode.IMPLEMENT, 0, ["first"]),
        ("US-001", Mode.REVIEW, 1, ["look"]),
        ("US-001", Mode.REVIEW, 2, ["look"]),
        ("US-002", Mode.FIX, 1, ["mend"]),
        ("US-002", Mode.IMPLEMENT, 4, ["any"]),
        ("US-777", Mode.IMPLEMENT, 1, ["any"]),
        ("US-777", Mode.REVIEW, 1, ["any review"]),
        ("US-777", Mode.FIX, 1, []),
        ("", Mode.SETUP, 1, ["set up"]),
    ],
)
def test_story_mode_and_attempt_choose_what_is_played(story: str, mode: Mode, attempt: int, words: list[str]) -> None:
    assert said(script(BY_ATTEMPT), story, mode, attempt) == words


def test_the_first_setting_needs_no_name_and_no_setting_no_value() -> None:
    chosen = script("stories: {A: [[{run: make}, {write: {path: a, text: b}}, claim, {claim: already-satisfied}]]}")
    assert [step.action for step in chosen.select("A", Mode.IMPLEMENT, 1)] == [
        Run("make"),
        Write("a", "b"),
        Claim(),
        Claim(Claimed.ALREADY),
    ]


def test_actions_know_their_line() -> None:
    chosen = script("stories:\n  A:\n    - implement:\n        - say: x\n        - say: y\n")
    assert [step.line for step in chosen.select("A", Mode.IMPLEMENT, 1)] == [4, 5]


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ("", "demo.yaml", "has no stories", "docs/scripted-agent.md"),
        ("[]", "demo.yaml:1", "expected keys with values, found a list", ""),
        ("stories: [", "demo.yaml", "not valid YAML", ""),
        ("storys: {}", "demo.yaml:1:1", "unknown key 'storys'", "did you mean stories?"),
        ("pace: fast\nstories: {A: [[claim]]}", "demo.yaml:1:7", "pace: expected float, got str", ""),
        ("stories: 3", "demo.yaml:1:10", "the number 3", ""),
        (
            "stories:\n  A: {implement: []}",
            "demo.yaml:2:6",
            "A has a mapping, expected a list of attempts",
            "- implement:",
        ),
        ("stories:\n  A:\n", "demo.yaml:2", "A has nothing, expected a list of attempts", ""),
        ("stories:\n  A:\n    - implment: []", "demo.yaml:3:7", "unknown mode 'implment'", "did you mean implement?"),
        ("stories:\n  A:\n    - write: {path: a}", "demo.yaml:3:7", "found action write where a mode", "implement:"),
        ("stories:\n  A:\n    - implement: go", "demo.yaml:3:18", "A implement is the text 'go', expected a list", ""),
        ("stories:\n  A:\n    - - wirte: {}", "demo.yaml:3:9", "unknown action 'wirte'", "did you mean write?"),
        ("stories:\n  A:\n    - - [say]", "demo.yaml:3:9", "a list is not an action", ""),
        ("stories:\n  A:\n    - - {say: a, claim: done}", "demo.yaml:3:9", "but this one has: say, claim", "- "),
        ("stories:\n  A:\n    - - write: {pth: a}", "demo.yaml:3:17", "unknown setting of write 'pth'", "mean path?"),
        ("stories:\n  A:\n    - - write:\n          text: x", "demo.yaml:4:11", "write: it needs `path`", ""),
        (
            "stories:\n  A:\n    - - write: {path: a,\n               text: 5}",
            "demo.yaml:4:22",
            "write.text",
            "quote it",
        ),
        ("stories:\n  A:\n    - - sleep: long", "demo.yaml:3:16", "sleep.seconds: expected float, got str", ""),
        ("stories:\n  A:\n    - - claim: maybe", "demo.yaml:3:16", "claim: Invalid enum value 'maybe'", ""),
        ("acts: 3\nstories: {A: [[claim]]}", "demo.yaml:1:7", "acts: expected str, got int", "quote it"),
        ("stories:\n  A: [[claim]]\n  A: [[claim]]", "demo.yaml:3:3", "duplicate key 'A'", ""),
        ("stories: {A: [[say: \x01]]}", "demo.yaml:1", "U+0001 is not allowed", ""),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_to_do(text: str, where: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        script(text)
    assert str(caught.value.where).startswith(where)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.exit_code == 65


def test_own_actions_are_imported_by_the_player_alone(tmp_path: Path) -> None:
    own = tmp_path / "acts.py"
    own.write_text(
        "from pathlib import Path\nfrom ralph.agents.acts import Action\n"
        "class Wave(Action, frozen=True): pass\nclass Say(Action, frozen=True):\n    loud: bool = True\n"
        "ACTIONS = {'wave': Wave, 'say': Say}\nPath(__file__).with_name('imported').touch()\n"
    )
    file = str(tmp_path / "demo.yaml")
    source = b"stories:\n  A: [[wave, claim, {say: true}]]\nacts: acts.py\n"
    with pytest.raises(ConfigError, match=r"say.text: expected str"):  # what Ralph has is checked
        read(source, file)
    read(source.replace(b"{say: true}", b"{nod: 5}"), file)
    assert not (tmp_path / "imported").exists()
    chosen = read(source, file, load=True).select("A", Mode.IMPLEMENT, 1)
    assert [type(step.action).__name__ for step in chosen] == ["Wave", "Claim", "Say"]
    with pytest.raises(ConfigError, match="wave takes no settings"):
        read(source.replace(b"wave", b"{wave: 5}"), file, load=True)
    with pytest.raises(ConfigError, match="unknown action 'nod'"):
        read(source.replace(b"wave", b"nod"), file, load=True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("acts.py", "", "has no attribute 'ACTIONS'"),
        ("acts.py", "1 / 0", "cannot be imported: division by zero"),
        ("acts.txt", "", "is not a Python file"),
        ("missing.py", None, "No such file"),
    ],
)
def test_own_actions_that_cannot_be_loaded(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(f"stories: {{A: [[claim]]}}\nacts: {name}\n".encode(), str(tmp_path / "demo.yaml"), load=True)
    assert message in caught.value.message
    assert str(caught.value.where) == f"{tmp_path}/demo.yaml:2:7"


YAML = st.recursive(
    st.sampled_from([*ACTIONS, "implement", "*", "US-001", "path", "text", "~", "1", "true", "'x'"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(["implement", "review", *ACTIONS, "path", "A"]), inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=10,
)


@settings(max_examples=150)
@given(YAML)
def test_a_script_is_read_or_refused_with_a_sentence(text: str) -> None:
    with contextlib.suppress(ConfigError):
        chosen = script(f"stories: {{A: [{text}]}}")
        assert all(step.name in ACTIONS for step in chosen.select("A", Mode.IMPLEMENT, 1))
