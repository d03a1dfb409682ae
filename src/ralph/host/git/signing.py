"""Signed commits, if the user's git signs them and the key needs no passphrase: at night nobody can type one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ralph.host.git.command import ask, git, identity_from_environment, line, try_ask
from ralph.host.git.repo import Repo

_TIMEOUT = 20.0
"""Seconds. A signing program that takes longer waits for somebody."""
_NO = ("false", "no", "off", "0")
_NO_PROMPT = {
    "GPG_TTY": "",
    "DISPLAY": "",
    "WAYLAND_DISPLAY": "",
    "SSH_ASKPASS": "/bin/false",
    "SSH_ASKPASS_REQUIRE": "force",  # otherwise ssh-keygen asks at the terminal
}


class Signing(Struct, frozen=True):
    """Settings and environment for one git command that signs. `is_wanted`: the user's git signs commits."""

    is_wanted: bool = False
    settings: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


@contextmanager
def signing(repo: Repo) -> Iterator[Signing]:
    """How to sign without a prompt. The programs are those of the user's settings when the run started."""
    settings = repo.settings
    if settings.get("commit.gpgsign", "false").lower() in _NO:
        yield Signing()
        return
    kind = settings.get("gpg.format", "openpgp")
    if kind == "ssh":
        yield Signing(is_wanted=True, env=_NO_PROMPT)
        return
    from tempfile import TemporaryDirectory  # 5 ms that no run has to wait for at its start

    program, options = ("gpgsm", "--batch") if kind == "x509" else ("gpg", "--batch --no-tty --pinentry-mode error")
    program = (
        settings.get(f"gpg.{kind}.program") or (settings.get("gpg.program") if kind == "openpgp" else "") or program
    )
    with TemporaryDirectory(prefix="ralph-sign-") as folder:
        wrapper = Path(folder) / "sign"
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(program)} {options} "$@"\n')
        wrapper.chmod(0o700)
        yield Signing(is_wanted=True, settings=("-c", f"gpg.{kind}.program={wrapper}"), env=_NO_PROMPT)


def commit_tree(repo: Repo, args: tuple[str, ...], text: bytes, fallback: Mapping[str, str]) -> tuple[str, bool, str]:
    """Make a commit: its name, whether it has the `fallback` identity because git has none, and why it is not signed.

    `args` are those of `git commit-tree`, `text` is the message.
    """
    settings = ("-c", "user.useConfigOnly=true", "-c", "i18n.commitEncoding=utf-8")
    identity, why = identity_from_environment(), ""
    with signing(repo) as sign:
        if sign.is_wanted:
            signed = (*settings, *sign.settings, "commit-tree", "-S", *args)
            made = try_ask(repo, *signed, stdin=text, env_extra={**identity, **sign.env}, timeout=_TIMEOUT)
            if made.code == 0:
                return line(made.out), False, ""
            why = made.complaint
    made = ask(repo, *settings, "commit-tree", *args, stdin=text, env_extra=identity)
    if made.code == 0:
        return line(made.out), False, why
    return line(git(repo, *settings, "commit-tree", *args, stdin=text, env_extra=fallback)), True, why
