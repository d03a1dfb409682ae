"""Settings that an agent leaves in its clone, by ways around the read-only files: they never reach the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli import ralph
from support.clients import Project

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.defaults]
CLAIM = 'echo \'{"claim": "done"}\' > .ralph/work/request.json'
WAYS = {
    "moved": "mv .ralph .aside; cp -r .aside .ralph; echo 'sandbox: none' > .ralph/config.yaml",
    "linked": "mv .ralph .aside; cp -r .aside other; echo 'sandbox: none' > other/config.yaml; ln -s other .ralph",
    "file-linked": "mv .ralph .aside; cp -r .aside .ralph; rm .ralph/config.yaml; echo 'sandbox: none' > evil.yaml; "
    "ln -s ../evil.yaml .ralph/config.yaml",
    "committed": "mv .ralph .aside; cp -r .aside .ralph; echo 'sandbox: none' > .ralph/config.yaml; git add -f .ralph; "
    "git commit -qm 'Change the settings'",
}


@pytest.mark.parametrize("way", WAYS)
def test_the_users_settings_stay(tmp_path: Path, way: str) -> None:
    script = f"{WAYS[way]}; echo x > s1.txt; {CLAIM}"
    agent = {"name": "command", "command": ["/bin/sh", "-c", script]}
    project = Project(tmp_path, agent=agent, sandbox={"network": "none"})
    (project.home / ".gitconfig").write_text("[user]\n\tname = Somebody\n\temail = somebody@example.com\n")
    settings = project.root / ".ralph/config.yaml"
    before = settings.read_text()
    done = ralph("run", "--plain", "-n", "2", cwd=project.root, env=project.env)
    assert "everything inside its sandbox" in done.out, done.out + done.err
    assert not (project.root / ".ralph").is_symlink(), done.out + done.err
    assert not settings.is_symlink()
    assert settings.read_text() == before, done.out + done.err
    assert "agents do not change the rules" in done.out, "it did change them in its clone"
