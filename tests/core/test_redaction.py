"""Secrets are replaced, everything else stays, however the text arrives. The tokens are made at random."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.environment import secret_values
from ralph.core.redaction import Redactor, Stream

_spec = importlib.util.spec_from_file_location("redaction_bench", Path(__file__).parents[2] / "bench" / "redaction.py")
assert _spec is not None
assert _spec.loader is not None
bench = importlib.util.module_from_spec(_spec)
sys.modules["redaction_bench"] = bench
_spec.loader.exec_module(bench)

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + (
    "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n" * 5
)


@pytest.mark.parametrize("name", bench.FORMATS)
def test_a_token_is_replaced_in_text_and_in_json_and_across_reads(name: str) -> None:
    dice = random.Random(name)
    for _ in range(12):
        token = bench.secret(bench.FORMATS[name], dice)
        context = dice.choice(bench.CONTEXTS).format(token)
        line = json.dumps({"text": f"before\n{context}\nafter"}).encode() + b"\n"
        for data in (context.encode() + b"\n", line):
            out = bench.in_pieces(data, Redactor(), dice)
            assert b"[redacted]" in out, data
            assert token.encode() not in out
        assert json.loads(bench.in_pieces(line, Redactor(), dice))["text"].startswith("before\n")


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "123e4567-e89b-12d3-a456-426614174000",
        "risk-assessment-of-the-task-dispatcher-and-more",
        "task-0123456789abcdef0123456789abcdef",
        "sk-learn-contrib-and-other-packages",
        "if '-----BEGIN PRIVATE KEY-----' in text:",
        "secret_name_of_the_variable_that_holds_it",
        "eyJust a word",
        "Authorization: Bearer ${GITHUB_TOKEN}",
        "use a Bearer token-with-a-very-long-kebab-name",
        "key-0123",
        "npm_config_registry_with_a_long_name_of_thirty_six",
    ],
)
def test_what_only_looks_a_little_like_a_secret_stays(text: str) -> None:
    assert Redactor().text(text) is text


def test_a_private_key_over_many_lines_and_reads_is_one_secret() -> None:
    stream = Stream(Redactor())
    key = KEY + "AAAAB3NzaC1yc2EAAAADAQABAAABAQ==\n-----END OPENSSH PRIVATE KEY-----\n"
    out = b"".join(stream.feed(bytes([byte])) for byte in f"cat key\n{key}done\n".encode()) + stream.flush()
    assert out == b"cat key\n[redacted]\ndone\n"


def test_a_private_key_that_is_cut_off_is_replaced_too() -> None:
    out = Redactor().text("x\n" + KEY + "more text")
    assert "b3Blbn" not in out
    assert out.startswith("x\n[redacted]")
    assert out.endswith("more text")


def test_known_values_are_replaced_by_their_names_in_every_form() -> None:
    redactor = Redactor({"DB_PASSWORD": 'p"ä\\ss w0rd', "API_TOKEN": "0123456789abcdefghijklmn"})
    assert redactor.text('login p"ä\\ss w0rd ok') == "login [redacted DB_PASSWORD] ok"
    line = json.dumps({"a": 'x p"ä\\ss w0rd', "b": "0123456789abcdefghijklmn"})
    assert json.loads(redactor.text(line)) == {"a": "x [redacted DB_PASSWORD]", "b": "[redacted API_TOKEN]"}
    assert redactor.text("https://u:0123456789abcdefghijklmn@h") == "https://u:[redacted API_TOKEN]@h"


@given(st.lists(st.binary(max_size=30), max_size=20), st.integers(1, 50), st.booleans())
def test_pieces_of_any_size_give_what_the_whole_gives(parts: list[bytes], size: int, has_patterns: bool) -> None:
    secrets = [b"ghp_" + b"a1B2" * 9, b"hunter2!", b"\n", b"AKIA" + b"Q7" * 8, b"ticket 12345"]
    data = b"".join(part + secrets[at % len(secrets)] for at, part in enumerate(parts))
    redactor = Redactor({"P": "hunter2!"}, ["ticket ([0-9]+)"] if has_patterns else [])
    stream = Stream(redactor)
    out = b"".join(stream.feed(data[at : at + size]) for at in range(0, len(data), size)) + stream.flush()
    assert out == redactor.data(data)


def test_a_line_without_end_is_passed_on_and_still_hides_a_token_at_the_cut() -> None:
    stream = Stream(Redactor())
    token = b"ghp_" + b"a1B2" * 9
    out = b""
    for at in range(40):
        out += stream.feed(b"x" * (1000 + at) + b" " + token + b",")
    assert len(out) > 20_000
    out += stream.flush()
    assert out.count(b"[redacted]") == 40
    assert b"a1B2a1B2" not in out


def test_patterns_hide_their_group_and_never_break_a_line_of_json() -> None:
    redactor = Redactor(patterns=['password="([^"]+)"', "card .*"])
    line = json.dumps({"text": 'set password="blue" and', "n": 1, "card 12 34": ["card 12 34", None]})
    assert json.loads(redactor.text(line)) == {
        "text": 'set password="[redacted]" and',
        "n": 1,
        "card 12 34": ["[redacted]", None],
    }
    assert redactor.text('password="blue"\nnext') == 'password="[redacted]"\nnext'


def test_only_distinct_values_of_variables_are_secrets() -> None:
    env = {
        "GITHUB_TOKEN": "abcdefgh12345678",
        "PGPASSWORD": "Tr0ub4dor",
        "SECRET_KEY": "development",
        "AUTH": "enabled1",
        "SSH_AUTH_SOCK": "/tmp/ssh-XXXX1234/agent.99",
        "MAX_OUTPUT_TOKENS": "100000000000000000000",
        "TOKEN_LIMIT": "123456789",
        "DATABASE_URL": "postgres://app:s3cretpw@db/app",
        "API_KEY": "xxxxxxxxxxxxxxxxxxxxxxxx",
        "NOTIFY_WEBHOOK": "https://example.com/hook",
        "LONG_SECRET": "correct-horse-battery-staple",
        "PATH": "/usr/bin",
    }
    assert secret_values(env) == {
        "GITHUB_TOKEN": "abcdefgh12345678",
        "PGPASSWORD": "Tr0ub4dor",
        "AUTH": "enabled1",
        "DATABASE_URL": "s3cretpw",
        "LONG_SECRET": "correct-horse-battery-staple",
    }
