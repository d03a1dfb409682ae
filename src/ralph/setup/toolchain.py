"""Finds the commands that test, lint and type-check a project, to propose them as checks. Runs nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from ralph.setup.ecosystems import ECOSYSTEMS, RUNNERS, Found
from ralph.setup.project_files import Folder, Tree

_MOST_FOLDERS = 8
# Folders whose projects are not this project: dependencies, output, and examples.
_OTHERS = frozenset(
    {
        *("build", "dist", "env", "node_modules", "out", "site-packages", "target", "third_party", "vendor", "venv"),
        *("archive", "doc", "docs", "example", "examples", "fixtures", "sample", "samples", "templates"),
        *("test", "testdata", "tests"),
    }
)


class ProposedCheck(Struct, frozen=True):
    name: str
    command: str
    why: str
    file: str
    """The file that declares it, relative to the project."""
    cwd: str = ""
    """The folder the command runs in, relative to the project; empty for the project itself."""

    @property
    def line(self) -> str:
        """One shell line that works from the project folder."""
        return f"cd {shlex.quote(self.cwd)} && {self.command}" if self.cwd else self.command


class Toolchain(Struct, frozen=True):
    checks: tuple[ProposedCheck, ...] = ()
    also: tuple[ProposedCheck, ...] = ()
    """Also found, but another command does the same job."""
    warnings: tuple[str, ...] = ()
    off: tuple[ProposedCheck, ...] = ()
    """Found but not proposed: `why` says why, and what would change that."""


_TEST = re.compile(r"(?:.+-)?(?:test|check)(?:-\d+)?")


def has_tests(toolchain: Toolchain) -> bool:
    return any(_TEST.fullmatch(check.name) for check in toolchain.checks)


def with_test_command(toolchain: Toolchain, command: str) -> Toolchain:
    """The user's command instead of the test commands that were detected."""
    rest = (check for check in toolchain.checks if not _TEST.fullmatch(check.name))
    own = ProposedCheck(name="test", command=command, why="named when the plan was made", file="")
    return msgspec.structs.replace(toolchain, checks=(own, *rest))


class _Item(Struct, frozen=True):
    cwd: str
    kind: str
    found: Found


def find(tree: Tree) -> Toolchain:
    """Every check the project seems to have, in its own folder and one level below.

    A folder below counts only for kinds of project that the folder above does not already check: the root of a
    workspace runs its members.
    """
    warnings: list[str] = []
    here = Folder(tree, "", warnings)
    items: list[_Item] = []
    for kind, look in ECOSYSTEMS.items():
        results = [_Item("", kind, found) for found in look(here)]
        for below in () if results else _below(tree, here.names, warnings):
            results += [_Item(below.path, kind, found) for found in look(below)]
        items += results
    chosen, also = _prefer_declared(items)
    checks = _named(chosen)
    rest = _named(also, {check.name for check in checks})
    return Toolchain(checks, rest, tuple(dict.fromkeys(warnings)))


def _below(tree: Tree, names: Iterable[str], warnings: list[str]) -> Iterator[Folder]:
    folders = sorted(n[:-1] for n in names if n.endswith("/") and not n.startswith("."))
    for name in [n for n in folders if n.lower() not in _OTHERS][:_MOST_FOLDERS]:
        yield Folder(tree, name, warnings)


def _prefer_declared(items: list[_Item]) -> tuple[list[_Item], list[_Item]]:
    """A target of a justfile or Makefile is what developers type; it takes precedence over a tool's configuration.

    One at the top is for the whole project, one in a folder for that folder.
    """
    chosen: list[_Item] = []
    also: list[_Item] = []
    for item in items:
        rivals = RUNNERS[: RUNNERS.index(item.kind)] if item.kind in RUNNERS else RUNNERS
        beaten = any(
            other.kind in rivals and other.found.role == item.found.role and other.cwd in ("", item.cwd)
            for other in items
        )
        (also if beaten else chosen).append(item)
    return chosen, also


def _named(items: list[_Item], others: Iterable[str] = ()) -> tuple[ProposedCheck, ...]:
    """`test` if there is only one, else `python-test`, `frontend-test` …"""
    checks: list[ProposedCheck] = []
    taken = set(others)
    for cwd, kind, found in ((item.cwd, item.kind, item.found) for item in items):
        alone = sum(other.found.role == found.role for other in items) == 1 and found.role not in taken
        first = found.role if alone else f"{_slug(cwd) or kind}-{found.role}"
        name, number = first, 1
        while name in taken:
            number += 1
            name = f"{first}-{number}"
        taken.add(name)
        file = f"{cwd}/{found.file}" if cwd else found.file
        checks.append(ProposedCheck(name=name, command=found.command, why=found.why, file=file, cwd=cwd))
    return tuple(checks)


def _slug(folder: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", folder).strip("-")
