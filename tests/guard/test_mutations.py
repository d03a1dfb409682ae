"""Whatever is dangerous stays so in any wrapping; whatever is harmless too; and what is only quoted is never run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.guard_corpus import AS_DATA, PREFIXES, WRAPPERS, judge, load, quoted, some

DANGEROUS = [line for line in load("dangerous") if line.category != "unreadable"]
HARMLESS = load("harmless")
_EACH = 30


def test_there_are_many_wrappers() -> None:
    assert len(WRAPPERS) >= 25


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapped_dangerous_command_is_denied(wrapper: str) -> None:
    wrapped = [(line, WRAPPERS[wrapper](line.command)) for line in some(DANGEROUS, _EACH, wrapper)]
    assert [command for line, command in wrapped if not judge(command, line.cwd).denied] == []


SIMPLE = ["rm -rf /", "rm -rf ~", "git push --force origin main", "dd if=/dev/zero of=/dev/sda", "git reset --hard"]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_nothing_before_a_dangerous_command_hides_it(prefix: str) -> None:
    blank = "" if prefix == "\\" else " "
    assert [command for command in SIMPLE if not judge(f"{prefix}{blank}{command}").denied] == []
    assert not judge(f"{prefix}{blank}echo rm -rf /").denied


def test_a_program_whose_name_starts_with_a_blank_hides_nothing_after_it() -> None:
    r"""`\ rm` runs a program called " rm"."""
    assert [line.command for line in DANGEROUS if not judge(f"\\ true; {line.command}", line.cwd).denied] == []
    assert [line.command for line in HARMLESS if judge(f"\\ true; {line.command}", line.cwd).denied] == []


@pytest.mark.parametrize("runner", ["noglob", "chronic", "nyc --reporter text", "rbenv exec", "nvm exec", "fnm exec"])
def test_what_a_runner_runs_is_judged(runner: str) -> None:
    assert judge(f"{runner} rm -rf ~").denied
    assert not judge(f"{runner} npm test").denied


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapped_harmless_command_is_allowed(wrapper: str) -> None:
    wrapped = [(line, WRAPPERS[wrapper](line.command)) for line in some(HARMLESS, _EACH, wrapper)]
    answers = [(command, judge(command, line.cwd)) for line, command in wrapped]
    assert [(command, answer.reason) for command, answer in answers if answer.denied] == []


@pytest.mark.parametrize("context", AS_DATA)
def test_a_quoted_dangerous_command_is_only_data(context: str) -> None:
    mentions = [(line, AS_DATA[context](line.command)) for line in some(DANGEROUS, 2 * _EACH, context)]
    answers = [(command, judge(command, line.cwd)) for line, command in mentions]
    assert [(command, answer.reason) for command, answer in answers if answer.denied] == []


@given(st.sampled_from(DANGEROUS), st.lists(st.sampled_from(sorted(WRAPPERS)), min_size=2, max_size=3))
@settings(max_examples=150)
def test_a_dangerous_command_is_denied_in_wrappers_within_wrappers(line: object, names: list[str]) -> None:
    command = line.command  # type: ignore[attr-defined]
    if "%" in command or "{}" in command or "\\" in command:
        return  # these mean something else to some wrapper, and the outer one would change them
    for name in names:
        command = WRAPPERS[name](command)
    assert judge(command, line.cwd).denied, command  # type: ignore[attr-defined]


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_text_may_be_printed(text: str) -> None:
    assert not judge(f"printf %s {quoted(text)}").denied
    assert not judge(f"git commit -m {quoted(text)}").denied
