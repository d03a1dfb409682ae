"""The shell parser: words and statements are what bash makes of them."""

from __future__ import annotations

import shlex
import subprocess
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.guard.expansion import expand
from ralph.guard.parser import parse
from ralph.guard.syntax import Redirect, Script, Simple, Unreadable
from support.guard_corpus import load

LINES = [line.command for line in (*load("dangerous"), *load("harmless"))]


def test_everything_that_people_write_can_be_parsed() -> None:
    failed = []
    for command in LINES:
        try:
            parse(command)
        except Unreadable:
            failed.append(command)
    assert failed == []


def words_of(script: Script) -> list[list[str]]:
    from ralph.guard.paths import Places
    from ralph.guard.state import Rules, Shell
    from ralph.guard.taint import Names

    names = Names()
    shell = Shell(Places("/work", "/home/me", (), names), names, Rules({}))
    return [
        [field for word in node.words for field in expand(shell, word)] for node in script if isinstance(node, Simple)
    ]


@pytest.mark.parametrize(
    "command",
    [
        "echo a b",
        "echo 'a b' \"c d\" e\\ f",
        "echo a'b'\"c\"d",
        "echo $'a\\tb\\x41\\101' x",
        'echo "a\\"b\\\\c\\$d\\`e\\f"',
        "echo {a,b}{1,2} x{3..5}y {a..c} {a} {,x}",
        "echo \"{a,b}\" '{c,d}' \\{e,f\\}",
        "x=1; echo $x${x}y \"$x z\" '$x'",
        "x='a b'; echo $x \"$x\" end",
        "x=abcdef; echo ${x:1:2} ${x#ab} ${x%ef} ${x/cd/-} ${x^^} ${#x} ${y:-def} ${x:+alt}",
        "a=(1 '2 3' 4); echo ${a[1]} \"${a[@]}\" ${#a[@]}",
        'set -- p q; echo $1 $2 "$@" $#x',
        'echo $(echo a b) "$(echo c d)" `echo e`',
        "echo a;echo b&&echo c",
        "echo x # not this",
        "echo a#b",
        "echo one \\\n two",
        "IFS=,; x=a,b; echo $x",
        "x=5; y=x; echo ${!y}",
        "printf '%s-%s\\n' a b c d",
        "echo \"$(printf '\\x72\\x6d')\" $(echo cm0= | base64 -d) $(echo abc | rev) $(echo abc | tr a-c b-d)",
    ],
)
def test_words_become_what_bash_makes_of_them(command: str) -> None:
    """The program is replaced by one that shows its arguments."""
    from ralph.guard.decision import _shell
    from ralph.guard.evaluator import run_script

    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd="/").stdout
    found = run_script(_shell("/", {}), parse(command))
    assert found.split() == shown.split()


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12), min_size=1, max_size=4))
@settings(max_examples=150)
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    """Marks of our own are no text of anybody's; the guard takes them out before it reads."""
    from ralph.guard.taint import without_marks

    words = [without_marks(word) for word in words]
    command = shlex.join(["echo", *words])
    assert words_of(parse(command)) == [["echo", *words]]


@pytest.mark.parametrize(
    ("command", "body"),
    [
        ("cat <<EOF\nhello\nEOF", "hello\n"),
        ("cat <<'EOF'\n$x `y`\nEOF", "$x `y`\n"),
        ("cat <<-EOF\n\ta\n\t\tb\n\tEOF", "a\nb\n"),
        ("cat <<EOF\n\n\nlate\nEOF", "\n\nlate\n"),
        ("cat <<A\nEOF\nA", "EOF\n"),
    ],
)
def test_a_here_document_is_read_to_its_end(command: str, body: str) -> None:
    node = parse(command)[0]
    assert isinstance(node, Simple)
    assert _text(node.redirects[0]) == body


def _text(redirect: Redirect) -> str:
    from ralph.guard.parser import plain_text

    return plain_text(redirect.word)


@pytest.mark.parametrize(
    "command", ["echo 'open", 'echo "open', "echo $(open", "(open", "if true", "case x in", "echo `open"]
)
def test_what_does_not_end_is_unreadable(command: str) -> None:
    with pytest.raises(Unreadable):
        parse(command)


@given(st.text(st.sampled_from("rm -f/~$(){}[]<>|&;'\"`\\\n=!*?#ab1"), max_size=60))
@settings(max_examples=400)
def test_no_text_breaks_the_parser(text: str) -> None:
    with suppress(Unreadable):
        parse(text)
