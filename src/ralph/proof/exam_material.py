"""What an exam is written from: the stories, the requirements, the README, and the exported names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ralph.core.errors import RalphError
from ralph.core.plan import Plan, Story
from ralph.core.ports import Locations, PlanRef
from ralph.core.text import clean, one_line, without_comments
from ralph.host.git.command import git
from ralph.host.git.repo import find_repository
from ralph.prompts.foreign import cut_middle, fenced, has_markup
from ralph.proof.exam import TITLE
from ralph.proof.files import Role, role_of
from ralph.proof.interface import interface
from ralph.state.places import home

_MOST_STORIES = 40_000
_MOST_PAGE = 20_000
_MOST_INTERFACE = 16_000
_LARGEST = 500_000
_MOST_FILES = 2_000
_READMES = ("README.md", "README.rst", "README.txt", "README")


def exam_material(ref: PlanRef, where: Locations, plan: Plan, env: Mapping[str, str]) -> str:
    return "\n\n".join(_parts(ref, where, plan, env))


def _parts(ref: PlanRef, where: Locations, plan: Plan, env: Mapping[str, str]) -> Iterator[str]:
    stories = "\n\n".join(_story(story) for story in plan.stories if not story.title.startswith(TITLE))
    told = "\n\n".join(filter(None, (_material(plan.description.strip()), stories)))
    yield f"## The stories\n\n{cut_middle(told, _MOST_STORIES)}"
    pages = [where.requirements] if where.requirements else []
    pages += sorted(where.specs.glob("*.md")) if where.specs and where.specs.is_dir() else []
    for path in pages:
        if path != where.plan and (text := _text(path)):
            yield _page(f"## {os.path.relpath(path, ref.root)}", text, _MOST_PAGE)
    readme = next((ref.root / name for name in _READMES if (ref.root / name).is_file()), None)
    if readme is not None and (text := _text(readme)):
        yield _page(f"## {readme.name}", text, _MOST_PAGE)
    if names := interface(_sources(ref.root, env), _MOST_INTERFACE):
        yield f"## Exported names\n\n{fenced(names)}"


def _story(story: Story) -> str:
    criteria = (f"- {one_line(each)}" for each in story.criteria)
    lines = [f"### {story.id}: {one_line(story.title)}", _material(story.description.strip()), *criteria]
    return "\n".join(line for line in lines if line)


def _page(heading: str, text: str, most: int) -> str:
    cut = f"\n\n({len(text) - most} characters are left out)" if len(text) > most else ""
    return f"{heading}\n\n{_material(text[:most].strip())}{cut}"


def _material(text: str) -> str:
    """Fenced if it has headings of its own: a page of the project is no part of the prompt."""
    return fenced(text) if has_markup(text) else text


def _text(path: Path) -> str:
    """Empty for a template of which only the headings are left."""
    try:
        text = clean(path.read_bytes()[: 10 * _MOST_PAGE].decode("utf-8-sig", "replace"))
    except OSError:
        return ""
    own = without_comments(text)
    return own if any(line.strip() and not line.startswith("#") for line in own.splitlines()) else ""


def _sources(root: Path, env: Mapping[str, str]) -> dict[str, bytes]:
    """The files in git that are neither tests nor documentation."""
    try:
        repository = find_repository(root, None, home(env))
        listed = git(repository, "ls-files", "-z")
    except (RalphError, OSError):
        return {}
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    wanted = [name for name in names if role_of(name) is Role.SOURCE][:_MOST_FILES]
    files = {}
    for name in wanted:
        path = repository / name
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST:
            files[name] = path.read_bytes()
    return files
