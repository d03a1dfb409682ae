"""What a story will probably change, and where two areas meet."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.areas import Claims, areas_of, bad_area, collide, likely
from ralph.core.paths_in_text import paths_in
from ralph.core.plan import Story


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("Fix src/login.py:12 and `docs/`.", ["src/login.py", "docs/"]),
        ("See lib/a.rb:3:7, lib/b.rb#L4 and tests/test_c.py::test_d", ["lib/a.rb", "lib/b.rb", "tests/test_c.py"]),
        (
            "Change **src/a.ts**, (src/b.ts), [c](src/c.ts) and “src/d.ts”!",
            ["src/a.ts", "src/b.ts", "src/c.ts", "src/d.ts"],
        ),
        ("Both `src/{one,two}.go`", ["src/one.go", "src/two.go"]),
        ("`make -C tools` reads Makefile and .gitignore", ["Makefile", ".gitignore"]),
        ("`pytest tests/test_a.py --cov=src/shop`", ["tests/test_a.py", "src/shop"]),
        ("All of src/*.css and `docs/**/*.md`", ["src/*.css", "docs/**/*.md"]),
        ("The package `shop/cart/prices`, the folder internal/loop", ["shop/cart/prices", "internal/loop"]),
        ("Written ./scripts/run.sh or /src/main.rs", ["scripts/run.sh", "src/main.rs"]),
        ("`__init__.py` and pkg/__init__.py", ["__init__.py", "pkg/__init__.py"]),
        ("https://example.com/a/b.py and www.example.com/x.html, github.com/a/b/c.py", []),
        ("and/or, read/write, client/server, I/O, TCP/IP, CI/CD, n/a, 2/3, 12/05/2026, w/o", []),
        ("e.g. this, i.e. that, etc. Version 1.2.3, v2.0.1-rc1, 3.11.x", []),
        ("Node.js, Vue.js and Next.js with ASP.NET; console.log(x.json())", []),
        ("Answers application/json at GET /api/users/{id} and /health", []),
        ("On branch feature/login, rebased on origin/main; actions/checkout@v4, @babel/core", []),
        ("/etc/hosts, /tmp/x.py, ~/.config/a.toml, ../other/b.py, C:\\x\\y.py", []),
        ("node_modules/left-pad/index.js and .venv/lib/a.py", []),
        ("All *.py files; nothing in particular.", []),
    ],
)
def test_paths_in_a_text(text: str, paths: list[str]) -> None:
    assert list(paths_in(text)) == paths


def test_a_script_that_checks_of_several_stories_name_is_in_no_area() -> None:
    first = Story(id="A", title="First", verify=("sh check.sh 1", "pytest tests/test_a.py"))
    second = Story(id="B", title="Second", verify=("sh check.sh 2",))
    third = Story(id="C", title="Change check.sh")
    assert areas_of([first, second, third], {"B": ["src/b.py"]}) == {
        "A": ("tests/test_a.py",),
        "B": ("src/b.py",),
        "C": ("check.sh",),
    }
    assert areas_of([first], {}) == {"A": ("check.sh", "tests/test_a.py")}


def test_the_area_of_a_story_has_every_source_once() -> None:
    story = Story(
        id="US-001",
        title="Fix src/login.py",
        description="As `docs/login.md` says.",
        criteria=("src/login.py has no TODO",),
        notes="Look at lib/.",
        verify=("pytest tests/test_login.py", "ruff check src/"),
        touches=("./web/", "src/login.py"),
    )
    expected = ("docs/login.md", "lib", "setup.cfg", "src/login.py", "tests/test_login.py", "web")
    assert likely(story, ["setup.cfg"]) == expected
    assert likely(Story(id="US-002", title="Make it faster")) == ()


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        ("src/a.py", "src/a.py", "src/a.py"),
        ("src/a.py", "./src/a.py", "src/a.py"),
        ("src/", "src/a.py", "src/a.py"),
        ("src", "src/deep/er/a.py", "src/deep/er/a.py"),
        (".", "anything", "anything"),
        ("src/*.py", "src/a.py", "src/a.py"),
        ("*.md", "docs/x.md", "docs/x.md"),
        ("src/**", "src/x/y.py", "src/x/y.py"),
        ("src/**/x.py", "src/a", "src/a"),
        ("src/*.py", "src", "src"),
        ("src/a*.py", "src/*b.py", "src/*b.py"),
        ("**/test_*.py", "tests/**", "tests/**"),
        ("src", "srcs/a.py", ""),
        ("src/a.py", "src/b.py", ""),
        ("A.py", "a.py", ""),
        ("*.md", "docs/x.py", ""),
        ("**/*.md", "src/a.py", ""),
        ("src/*.py", "src/*.md", ""),
        ("src/*.py", "src/deep/a.py", ""),
        ("a/*/c", "a/b/d", ""),
    ],
)
def test_where_two_areas_meet(one: str, other: str, where: str) -> None:
    assert collide([one], [other]) == where
    assert bool(collide([other], [one])) == bool(where)


def test_nothing_known_meets_nothing() -> None:
    assert collide([], ["."]) == ""
    assert collide(["."], []) == ""


names = st.sampled_from(["a", "b", "ab", "a.py", "b.py"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
patterns = st.lists(st.sampled_from(["*", "**", "a*", "?", "*.py", "a", "a.py"]), min_size=2, max_size=3).map("/".join)


@settings(max_examples=400, deadline=None)
@given(paths, paths)
def test_paths_meet_exactly_when_one_is_the_other_or_inside_it(one: str, other: str) -> None:
    inside = one == other or one.startswith(other + "/") or other.startswith(one + "/")
    assert bool(collide([one], [other])) == inside


@settings(max_examples=400, deadline=None)
@given(patterns, paths)
def test_a_pattern_meets_every_path_that_it_matches(pattern: str, path: str) -> None:
    parts, wanted = path.split("/"), pattern.split("/")
    if _ANY not in wanted and len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted)):
        assert collide([pattern], [path])
        assert collide([pattern], [pattern])


_ANY = "**"


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from("ABC"), st.lists(st.one_of(paths, patterns), max_size=3)), st.lists(paths))
def test_the_index_finds_what_pairs_find(areas: dict[str, list[str]], area: list[str]) -> None:
    pairs = {story for story, each in areas.items() if collide(each, area)}
    meeting = Claims(areas).meeting(area)
    assert (meeting is None) == (not pairs)
    if meeting:
        assert meeting[0] in pairs


def test_many_stars_take_no_time() -> None:
    many = "/".join(["**", "a*"] * 20)
    assert not collide([many], ["/".join(["b"] * 40) + ".py"])


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/hosts", "is an absolute path"),
        ("~/x", "is an absolute path"),
        ("C:\\x", "is an absolute path"),
        ("a/../../b", "leads out of the repository"),
        ("src\\a.py", "has a backslash; separate folders with a slash"),
        (" ", "is empty"),
        ("src/a..b.py", ""),
        ("docs/", ""),
    ],
)
def test_entries_that_name_nothing_in_the_repository(path: str, why: str) -> None:
    assert bad_area(path) == why
