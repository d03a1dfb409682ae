"""Ignored files that an agent wrote, for the reason of a rejection."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ralph.host.git.repo import identify
from ralph.proof.place import ignored_work


def test_code_is_named_and_caches_are_not(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    texts = {
        ".gitignore": "build/\n__pycache__/\n*.local.py\n",
        "build/tripling.py": "x = 1\n",
        "lib/settings.local.py": "x = 1\n",
        "lib/__pycache__/cart.py": "x = 1\n",
        ".pytest_cache/.gitignore": "*\n",  # as pytest writes it
        ".pytest_cache/v/cache/lastfailed": "{}\n",
        ".pytest_cache/v/cache/nodeids": "[]\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert ignored_work(identify(tmp_path), since=0) == ("build/tripling.py", "lib/settings.local.py")
    assert ignored_work(identify(tmp_path), since=2**40) == ()
