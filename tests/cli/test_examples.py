"""The examples of `--help`, which are also those of docs/cli.md, do what they say in a project with a finished run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.doc_projects import DocProject, blocks

EXAMPLES = blocks("docs/cli.md")
LEFT_OUT = {
    "it needs an account or a service": (
        *("ralph agents test", "ralph bench", "ralph doctor notify", "ralph pr", "ralph runs trace", "ralph cluster"),
        "ralph sandbox exec -- npm",
    ),
    "it needs another program": ("gh ", "ssh ", "ralph record 20260115-0930 --gif", "eval ", "ralph config completion"),
    "it waits for a person, or runs until it is stopped": (
        *(
            'ralph plan "',
            "ralph plan  #",
            "ralph plan requirements.md",
            'ralph add "',
            'ralph fix "',
            "ralph ui",
            "ralph serve",
        ),
        *("ralph sandbox shell", "ralph stream merge 1  #"),
    ),
    "it takes minutes": ("ralph sandbox test",),
    "it needs a file of its own": (
        *("ralph plan --answer", "ralph plan import .beads", "ralph plan import docs", "ralph plan import @fix_plan"),
        *("ralph add work.md", "ralph add -", "ralph fix report.md", "ralph fix --answer", "ralph answer US-003 -"),
        *("ralph check path", "ralph record events.jsonl", "ralph guard --jsonl", "ralph build", "MAX_ITERATIONS"),
        *("ralph doctor preflight --agent", "ralph init --from", "ralph plan convert --layout tasks.json"),
    ),
    "it needs something that another command makes": (
        *("ralph plan export --status", "ralph plan archive restore", "ralph plan sync", "ralph task finding"),
        *("ralph pause", "ralph resume", "ralph stop", "ralph retry US-003", "ralph stream", "ralph log --worker"),
        *(
            "ralph log US-004",
            "ralph log --story US-004",
            "ralph log --check pytest",
            "ralph task split",
            "ralph sandbox log shell",
            "ralph plan archive --label",
        ),
        *("ralph memory compact --force", "ralph task set US-001 --priority 1"),
    ),
}
PREFIXES = tuple(prefix for prefixes in LEFT_OUT.values() for prefix in prefixes)
SHARES = 4


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(PREFIXES)]


def test_what_is_left_out_is_there() -> None:
    every = [line for block in EXAMPLES for line in block.text.splitlines()]
    assert [prefix for prefix in PREFIXES if not any(line.startswith(prefix) for line in every)] == []
    assert sum(not line.startswith(PREFIXES) for line in every) > len(every) / 2


@pytest.mark.defaults
@pytest.mark.parametrize("share", range(SHARES))
def test_the_examples_of_help_run(share: int, tmp_path: Path) -> None:
    project = DocProject(tmp_path / "there", "a finished run")
    adding = (f'ralph task add "{title}" --criterion "GET / answers 200"' for title in ("Export orders", "Dark mode"))
    project.do(*adding, "git commit -qam 'More stories'")
    shutil.copytree(project.folder, tmp_path / "before", symlinks=True)
    for block in EXAMPLES[share::SHARES]:
        if wanted := lines(block.text):
            project.play(block._replace(text="\n".join(wanted)))
            project.wait()
            shutil.rmtree(project.folder)
            shutil.copytree(tmp_path / "before", project.folder, symlinks=True)
