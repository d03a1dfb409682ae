"""Check a wheel and an sdist before they are published: complete, small, pure Python, and of one version.

.venv/bin/python scripts/check_dist.py [FOLDER [VERSION]]      (default: dist, and any version)
"""

from __future__ import annotations

import email
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

NAME = "ralph_loop_engine"
LARGEST_WHEEL = 2_100_000
"""Against growing by accident. The aim is 1.5 MB: comments and docstrings, which stay because people read what they
install, are 0.3 MB of it, and the rest is code."""
WANTED = (
    "ralph/py.typed",
    "ralph/tui/app.tcss",
    "ralph/web/static/index.html",
    "ralph/sandbox/Containerfile",
)
"""One of each kind of file that is no Python. A test compares all of them with `src/`."""
FIELDS = {"Name": "ralph-loop-engine", "License-Expression": "MIT", "Requires-Python": ">=3.11"}


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0] if arguments else "dist")
    problems = list(check(folder, *arguments[1:2]))
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if not problems:
        for path in sorted(folder.iterdir()):
            print(f"{path.stat().st_size:>9,} {path.name}")
    return 1 if problems else 0


def check(folder: Path, version: str = "") -> Iterator[str]:
    """The problems. `version`: the one it must have."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        yield f"{folder} has {len(wheels)} wheels and {len(sdists)} sdists; there must be one of each"
        return
    with zipfile.ZipFile(wheels[0]) as wheel:
        yield from _check_wheel(wheels[0], wheel, version)
        names = set(wheel.namelist())
    with tarfile.open(sdists[0]) as sdist:
        root = sdists[0].name.removesuffix(".tar.gz")
        files = {member.name.removeprefix(f"{root}/") for member in sdist if member.isfile()}
    yield from (f"the sdist lacks {name}" for name in ("pyproject.toml", "LICENSE", "PKG-INFO") if name not in files)
    sources = {name.removeprefix("src/") for name in files if name.startswith("src/ralph/")}
    packaged = {name for name in names if name.startswith("ralph/")}
    yield from (f"the wheel lacks {name}, which the sdist has" for name in sorted(sources - packaged))
    yield from (f"the sdist lacks {name}, which the wheel has" for name in sorted(packaged - sources))


def _check_wheel(path: Path, wheel: zipfile.ZipFile, version: str) -> Iterator[str]:
    names = wheel.namelist()
    if not path.name.endswith("-py3-none-any.whl"):
        yield f"{path.name} is not a pure Python wheel"
    if (size := path.stat().st_size) > LARGEST_WHEEL:
        yield f"{path.name} has {size:,} bytes; the most is {LARGEST_WHEEL:,}"
    yield from (f"the wheel lacks {name}" for name in WANTED if name not in names)
    yield from (f"the wheel has {name}" for name in names if name.endswith((".pyc", ".so", ".orig", "~")))
    if not any(name.endswith("/share/man/man1/ralph-run.1") for name in names):
        yield "the wheel has no man pages"
    try:
        metadata = email.message_from_bytes(wheel.read(f"{path.name.rsplit('-', 3)[0]}.dist-info/METADATA"))
    except KeyError:
        yield "the wheel has no metadata"
        return
    for field, value in (FIELDS | ({"Version": version} if version else {})).items():
        if metadata[field] != value:
            yield f"{field} of the wheel is {metadata[field]!r}, not {value!r}"
    if not metadata.get_payload() or metadata["Description-Content-Type"] != "text/markdown":
        yield "the wheel has no description in Markdown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
