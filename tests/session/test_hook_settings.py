"""Ralph's hooks in the text of a client's settings: nothing else changes, and all of it can be taken out again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ralph.core.errors import BadData
from ralph.session.hook_policy import EVENTS, client_settings, hook_command
from ralph.session.hook_settings import find_hooks, is_ours, with_hooks, without_hooks

FOREIGN = {"hooks": [{"type": "command", "command": "notify-send 'ralph.hooks PreToolUse'"}]}
SETTINGS = """{
    "model": "opus",   "permissions": {"allow": ["Bash(ls:*)", "Read"]},
\t"hooks" : {
        "Stop": [
            { "hooks": [ {"type":"command", "command":"say done"} ] }
        ],
        "Notification": [],
        "PreToolUse": [ {"matcher":"Bash","hooks":[{"type":"command","command":"/usr/bin/true"}]} ]
    },
    "caf\\u00e9": "é"
}
"""


def as_values(data: bytes) -> Any:
    return json.loads(data.decode("utf-8-sig"))


def test_everything_else_keeps_its_bytes() -> None:
    before = SETTINGS.encode()
    after = with_hooks(before, "f")
    for line in before.splitlines():
        assert line.strip().rstrip(b" ]},") in after
    hooks = as_values(after)["hooks"]
    assert hooks["Stop"][0] == {"hooks": [{"type": "command", "command": "say done"}]}
    assert hooks["PreToolUse"][0]["matcher"] == "Bash"
    assert hooks["Notification"] == []
    assert [find_hooks(after, "f").commands[event] for event in EVENTS] == [f"{hook_command()} {e}" for e in EVENTS]


def test_what_was_put_in_is_taken_out_again() -> None:
    before = SETTINGS.encode()
    assert without_hooks(with_hooks(before, "f"), "f", before) == before


@pytest.mark.parametrize(
    "before", ['{"a":1}', '{\r\n\t"a": 1\r\n}\r\n', '\ufeff {"a": [1, 2]} \n\n', '{"hooks": {"Stop": []}}']
)
def test_any_way_of_writing_comes_back(before: str) -> None:
    data = before.encode()
    after = with_hooks(data, "f")
    assert as_values(after)["hooks"].keys() == set(EVENTS)
    assert without_hooks(after, "f", data) == data


def test_new_lines_are_indented_as_their_neighbours_are() -> None:
    after = with_hooks(b'{\n\t"a": 1\n}\n', "f").decode()
    assert '\n\t"hooks": {\n\t\t"PreToolUse": [\n\t\t\t{\n\t\t\t\t"matcher": "*",\n' in after
    assert with_hooks(b"{}", "f").decode().splitlines()[1:3] == ['  "hooks": {', '    "PreToolUse": [']
    assert "\n" not in with_hooks(b'{"a": 1}', "f").decode()


def test_an_empty_file_gets_the_hooks_and_nothing_else() -> None:
    assert as_values(with_hooks(b"", "f")) == client_settings() == as_values(with_hooks(b" \n", "f"))


entries = st.lists(st.sampled_from([FOREIGN, FOREIGN | {"matcher": "Edit|Write"}]), max_size=2)
documents = st.dictionaries(
    st.sampled_from(["model", "env", "permissions", "hooks"]),
    st.recursive(st.none() | st.booleans() | st.text(max_size=5) | st.integers(), lambda v: st.lists(v, max_size=3)),
    max_size=3,
).flatmap(
    lambda d: st.dictionaries(st.sampled_from(["Stop", "PreToolUse", "Notification"]), entries, max_size=3).map(
        lambda h: {k: h if k == "hooks" else v for k, v in d.items()}
    )
)


@settings(max_examples=120)
@given(documents, st.sampled_from([None, 1, 2, "\t"]), st.booleans())
@example({"hooks": {}}, None, False)
def test_putting_in_and_taking_out_gives_back_any_settings(value: Any, indent: Any, escape: bool) -> None:
    before = json.dumps(value, indent=indent, ensure_ascii=escape).encode()
    after = with_hooks(before, "f")
    found = find_hooks(after, "f")
    assert found.missing == []
    assert {k: v for k, v in as_values(after).items() if k != "hooks"} == {
        k: v for k, v in value.items() if k != "hooks"
    }
    assert without_hooks(after, "f", before) == before


def test_what_people_added_afterwards_stays() -> None:
    after = as_values(with_hooks(SETTINGS.encode(), "f"))
    after["hooks"]["Stop"].append(FOREIGN)
    after["hooks"]["SessionEnd"][0]["hooks"].insert(0, FOREIGN["hooks"][0])
    after["theme"] = "dark"
    edited = json.dumps(after, indent=2).encode()
    back = as_values(without_hooks(edited, "f", SETTINGS.encode()))
    assert find_hooks(json.dumps(back).encode(), "f").commands == {}
    assert back["theme"] == "dark"
    assert back["hooks"]["Stop"] == [as_values(SETTINGS.encode())["hooks"]["Stop"][0], FOREIGN]
    assert back["hooks"]["SessionEnd"] == [{"hooks": FOREIGN["hooks"]}]
    assert set(back["hooks"]) == {"Stop", "Notification", "PreToolUse", "SessionEnd"}


def test_taking_out_what_is_not_there_changes_nothing() -> None:
    for text in (SETTINGS, "{}", "", '{"hooks": "odd"}', '{"hooks": {"Stop": "odd", "PreToolUse": [1, {"hooks": 2}]}}'):
        assert without_hooks(text.encode(), "f") == text.encode()


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        (f"{hook_command()} Stop", True),
        ("/opt/py/bin/python3 -I -m ralph.hooks PreToolUse", True),
        ("'/a b/python' -I -m ralph.hooks Stop", True),
        ("python -I -m ralph.hooks", False),
        ("python -I -m ralph.hooks Stop | tee log", False),
        ("my-wrapper python -I -m ralph.hooks Stop", False),
        ("grep ralph.hooks log", False),
        ("echo 'ralph.hooks Stop", False),
        (None, False),
        (["ralph.hooks"], False),
    ],
)
def test_only_ralphs_own_commands_are_taken_for_ralphs(command: object, ours: bool) -> None:
    assert is_ours(command) is ours


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "f:1:2: not valid JSON"),
        ('{\n  "a": 1, // note\n}', "f:2:11: not valid JSON"),
        ("[]", "settings must be a JSON object"),
        ('"x"', "settings must be a JSON object"),
        ('{"hooks": "/path/pre-tool.sh"}', "f:1:11 (hooks): hooks must be an object"),
        ('{"hooks": null}', "hooks must be an object"),
        ('{"hooks": {\n"PreToolUse": "/path/pre-tool.sh"}}', "f:2:15 (hooks.PreToolUse): must be a list"),
        ('{"hooks": {"Stop": [{"type": "command"}]}}', "(hooks.Stop[0]): must be an object with a list"),
        ('{"hooks": {"Stop": []}, "hooks": {}}', "(hooks): duplicate key"),
        ('{"hooks": {"Stop": [], "Stop": []}}', "(hooks.Stop): duplicate key"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": "\udcff"}', "not valid JSON"),
    ],
)
def test_settings_that_a_client_would_not_take_are_refused(text: str, words: str) -> None:
    with pytest.raises(BadData) as caught:
        with_hooks(text.encode("utf-8", "surrogateescape"), "f")
    assert words in str(caught.value)
    assert "nothing was written" in caught.value.hint
