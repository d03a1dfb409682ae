from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ralph.host.git.checkpoint import take
from ralph.host.git.commits import Committed, commit_story
from ralph.host.git.snapshot import snapshot_tree
from support.repositories import Project


def _commit(project: Project) -> Committed:
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    tree = snapshot_tree(project.repo, project.index)
    made = commit_story(project.repo, checkpoint=checkpoint, tree=tree, message="feat: two\n", index_file=project.index)
    assert made is not None
    return made


def _is_signed(project: Project) -> bool:
    return "\ngpgsig " in project.git("cat-file", "commit", "HEAD")


@pytest.mark.parametrize("passphrase", ["", "secret"])
def test_commits_are_signed_by_an_ssh_key_that_needs_no_passphrase(tmp_path: Path, passphrase: str) -> None:
    project, key = Project(tmp_path), tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", key], check=True)
    settings = {"user.name": "Ada", "user.email": "a@example.test", "commit.gpgSign": "true", "gpg.format": "ssh"}
    for name, value in (settings | {"user.signingKey": str(key)}).items():
        project.git("config", name, value)
    made = _commit(project)
    assert _is_signed(project) is (not passphrase)
    assert bool(made.unsigned) is bool(passphrase)
    assert project.git("log", "-1", "--format=%s %an") == "feat: two Ada"


@pytest.mark.parametrize("passphrase", ["", "secret"])
def test_commits_are_signed_by_gpg_without_a_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passphrase: str
) -> None:
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    batch = ["gpg", "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", passphrase]
    made_key = subprocess.run(
        [*batch, "--quick-generate-key", "Ada <ada@example.test>", "ed25519", "sign", "never"],
        capture_output=True,
        check=False,
    )
    if made_key.returncode:
        pytest.skip(f"gpg cannot make a key here: {made_key.stderr.decode()}")
    subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=False)  # it would remember the passphrase
    try:
        project = Project(tmp_path)
        for name, value in {
            "user.name": "Ada",
            "user.email": "ada@example.test",
            "user.signingKey": "ada@example.test",
            "commit.gpgSign": "true",
        }.items():
            project.git("config", name, value)
        made = _commit(project)
        assert _is_signed(project) is (not passphrase)
        assert bool(made.unsigned) is bool(passphrase), made.unsigned
    finally:
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=False, env=os.environ)


def test_a_signing_program_that_fails_or_is_missing_does_not_keep_work_from_being_committed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("config", "commit.gpgSign", "true")
    project.git("config", "gpg.program", "/no/such/program")
    made = _commit(project)
    assert made.commit
    assert made.unsigned
