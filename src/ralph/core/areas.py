"""The area of a story: files, folders and patterns that it will probably change, and where two areas meet. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.paths_in_text import paths_in
from ralph.core.plan import Story

_WILD = lazy_pattern(r"[*?\[]")
_ANY = "**"


def areas_of(stories: Sequence[Story], touched: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """By story, what it will probably change, where anything is known. A file that the checks of several stories name,
    such as a script that runs the tests, is one that they read."""
    named = Counter(path for story in stories for path in {*_tested(story)})
    shared = frozenset(path for path, count in named.items() if count > 1)
    areas = {story.id: likely(story, touched.get(story.id, ()), shared) for story in stories}
    return {story: area for story, area in areas.items() if area}


def _tested(story: Story) -> list[str]:
    return [path for command in story.verify for path in paths_in(command, files_only=True)]


def likely(story: Story, touched: Iterable[str] = (), shared: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """What a story will probably change: its `touches`, the paths that its text names, and `touched`, the files of
    earlier attempts. Without doubles, and sorted.

    Commands of `verify` count only where they name a file that is not `shared`: `ruff check src/` says nothing about
    the story.
    """
    texts = (story.title, story.description, *story.criteria, story.notes)
    named = [path for text in texts for path in paths_in(text)]
    tested = [path for path in _tested(story) if path not in shared]
    paths = {normal(path) for path in (*story.touches, *named, *tested, *touched)}
    return tuple(sorted(filter(None, paths)))


def normal(path: str) -> str:
    """Without `./` and a trailing slash; the root itself is `.`."""
    parts = [part for part in path.strip().split("/") if part not in ("", ".")]
    return "/".join(parts) or ("." if path.strip() else "")


def bad_area(path: str) -> str:
    """What is wrong with an entry of `touches`; empty if nothing is."""
    if not path.strip():
        return "is empty"
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:[\\/]", path):
        return "is an absolute path"
    if ".." in path.split("/"):
        return "leads out of the repository"
    if "\\" in path:
        return "has a backslash; separate folders with a slash"
    return "has a line break" if "\n" in path else ""


def collide(a: Iterable[str], b: Iterable[str]) -> str:
    """The path that both areas include; empty if there is none, or if nothing is known about one of them."""
    claims = Claims()
    claims.add("", a)
    found = claims.meeting(b)
    return found[1] if found else ""


class Claims:
    """The areas of stories that are in progress. Looking one up does not depend on how many there are, except for
    patterns."""

    def __init__(self, areas: Mapping[str, Iterable[str]] | None = None) -> None:
        self._holders: dict[str, str] = {}
        """By path and by each folder above it: the first story that claims something there."""
        self._paths: dict[str, str] = {}
        self._patterns: list[tuple[str, str]] = []
        for story, area in (areas or {}).items():
            self.add(story, area)

    def add(self, story: str, area: Iterable[str]) -> None:
        for path in map(normal, area):
            if _WILD.search(path):
                self._patterns.append((path, story))
            elif path:
                self._paths.setdefault(path, story)
                for folder in _above(path):
                    self._holders.setdefault(folder, path)

    def meeting(self, area: Iterable[str]) -> tuple[str, str] | None:
        """The story whose claim this area meets, and the path: the more exact one of the two."""
        for path in map(normal, area):
            if path and (found := self._pattern(path) if _WILD.search(path) else self._path(path)):
                return found
        return None

    def _path(self, path: str) -> tuple[str, str] | None:
        for each in (path, *_above(path)):
            if each in self._paths:
                return self._paths[each], path
        if inside := self._holders.get(path):
            return self._paths[inside], inside
        return next(((story, path) for pattern, story in self._patterns if _meet(pattern, path)), None)

    def _pattern(self, pattern: str) -> tuple[str, str] | None:
        for path, story in self._paths.items():
            if _meet(pattern, path):
                return story, path
        return next(((story, pattern) for other, story in self._patterns if _meet(other, pattern)), None)


def _above(path: str) -> Iterator[str]:
    """The folders above a path, the nearest first; the root is `.`."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
    if path != ".":
        yield "."


def _meet(a: str, b: str) -> bool:
    """Whether some path can be matched by both, or lie in a folder that one of them matches."""
    return _parts_meet(_parts(a), _parts(b))


def _parts(path: str) -> tuple[str, ...]:
    """A pattern without a slash matches in every folder, as in .gitignore."""
    if path == ".":
        return ()
    parts: list[str] = [_ANY] if _WILD.search(path) and "/" not in path else []
    for part in path.split("/"):
        if part != _ANY or parts[-1:] != [_ANY]:
            parts.append(part)
    return tuple(parts)


def _parts_meet(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Row by row, because recursion would take exponential time on several `**`."""
    a_holds, b_holds = _may_be_folder(a), _may_be_folder(b)
    row = [a_holds or all(part == _ANY for part in b[at:]) for at in range(len(b) + 1)]
    for depth in reversed(range(len(a))):
        left = a[depth]
        new = [b_holds or all(part == _ANY for part in a[depth:])] * (len(b) + 1)
        for at in reversed(range(len(b))):
            if _ANY in (left, b[at]):
                new[at] = row[at] or new[at + 1]
            else:
                new[at] = row[at + 1] and _names_meet(left, b[at])
        row = new
    return row[0]


def _may_be_folder(parts: tuple[str, ...]) -> bool:
    """What has an extension is taken for a file: `**/*.md` and `src/a.py` do not meet in a folder `src/a.py`."""
    return not parts or parts[-1] == _ANY or "." not in parts[-1].lstrip(".")


def _names_meet(a: str, b: str) -> bool:
    if not _WILD.search(a):
        return a == b or (bool(_WILD.search(b)) and fnmatchcase(a, b))
    if not _WILD.search(b):
        return fnmatchcase(b, a)
    return _wild_meet(a, b)


def _wild_meet(a: str, b: str) -> bool:
    """Whether two patterns of one name can match the same name. A set in brackets counts as any character."""
    a, b = (re.sub(r"\[!?\]?[^\]]*\]", "?", each) for each in (a, b))
    row = [all(c == "*" for c in b[at:]) for at in range(len(b) + 1)]
    for left in reversed(a):
        new = [left == "*" and row[len(b)]] * (len(b) + 1)
        for at in reversed(range(len(b))):
            right = b[at]
            if "*" in (left, right):
                new[at] = row[at] or new[at + 1]
            else:
                new[at] = row[at + 1] and (left == right or "?" in (left, right))
        row = new
    return row[0]
