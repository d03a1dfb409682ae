"""Which settings of which tools affect strictness, and what would weaken each of them."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

Way = Literal["least", "most", "grows", "shrinks", "on", "off", "level", "options", "commands", "changes"]
"""What would be a weakening: a number falls, a number rises, a list grows, a list shrinks, a switch goes off, a switch
goes on, a level falls, options leave something out, commands check less, any other value."""


class Rule(Struct, frozen=True):
    code: str
    way: Way
    pattern: re.Pattern[str]


# Keys as `settings.settings_of` writes them, in lower case. The first match counts.
_TABLE: dict[tuple[str, Way], tuple[str, ...]] = {
    ("coverage-loosened", "least"): (
        r"coverage\.report\.fail_under",
        r".*coverage_?thresholds?\..*",
        r"(?:nyc|vitest|jest)\.(?:.*\.)?(?:branches|functions|lines|statements|perfile)",
        r"codecov\..*target",
        r".*minimum_?coverage.*",
        r"build\.(?:.*\.)?minimum",
        r"build\.threshold",
        r"rspec\.line",
    ),
    ("coverage-loosened", "most"): (r"codecov\..*threshold",),
    ("coverage-loosened", "grows"): (
        r"coverage\.(?:run|report)\.(?:omit|exclude_lines|exclude_also|partial_branches)",
        r".*coveragepathignorepatterns",
        r"nyc\.exclude",
        r"vitest\.(?:test\.)?coverage\.exclude",
        r"codecov\..*ignore",
    ),
    ("coverage-loosened", "shrinks"): (
        r"coverage\.run\.(?:source|source_pkgs|include)",
        r".*collectcoveragefrom",
        r"vitest\.(?:.*\.)?coverage\.include",
        r"nyc\.include",
    ),
    ("coverage-loosened", "on"): (
        r"coverage\.run\.branch",
        r"nyc\.(?:check-coverage|all)",
        r"jest\.collectcoverage",
        r"codecov\..*require_ci_to_pass",
    ),
    ("coverage-loosened", "off"): (r"codecov\..*informational",),
    ("tests-narrowed", "options"): (r"pytest\.addopts",),
    ("tests-narrowed", "commands"): (
        r"testenv.*\.commands(?:_pre|_post)?",
        r"(?:.*\.)?(?:taskipy|poe|hatch)\.(?:.*\.)?(?:tasks|scripts)\..*",
        r"pdm\.scripts\..*",
    ),
    ("tests-narrowed", "shrinks"): (
        r"pytest\.testpaths",
        r"jest\.(?:roots|projects)",
        r"vitest\.(?:test\.)?include",
        r"mocha\.(?:spec|testdir)",
        r"phpunit\.(?:directory|file)",
    ),
    ("tests-narrowed", "changes"): (
        r"pytest\.python_(?:files|functions|classes)",
        r"jest\.(?:testmatch|testregex|runner|testrunner)",
        r"mocha\.(?:grep|fgrep|testmatch)",
    ),
    ("tests-narrowed", "grows"): (
        r"pytest\.norecursedirs",
        r".*testpathignorepatterns",
        r".*modulepathignorepatterns",
        r"vitest\.(?:test\.)?exclude",
        r"mocha\.(?:ignore|exclude|testignore)",
        r"phpunit\.exclude",
    ),
    ("tests-narrowed", "off"): (
        r".*passwithnotests",
        r"build\.(?:.*\.)?(?:skiptests|maven\.test\.skip|skip)",
        r"mocha\.(?:allowuncaught|passonfailingtestsuite)",
    ),
    ("failure-hidden", "off"): (
        r"build\.(?:.*\.)?(?:testfailureignore|ignorefailures|maven\.test\.failure\.ignore)",
        r"testenv.*\.ignore_(?:outcome|errors)",
    ),
    ("tests-narrowed", "on"): (
        r"pytest\.xfail_strict",
        r"cargo\.(?:.*\.)?(?:autotests|test|doctest)",
        r"phpunit\.phpunit\.failon.*",
        r"mocha\.forbidonly",
        r"build\.(?:.*\.)?enabled",
    ),
    ("lint-loosened", "shrinks"): (
        r"(?:ruff|flake8|pycodestyle)\.(?:extend-)?select",
        r"eslint\.(?:extends|plugins)",
        r"golangci\.linters\.enable",
        r"pre-commit\.repos\.hooks\.id",
        r".*filterwarnings",
        r"isort\.profile",
    ),
    ("lint-loosened", "grows"): (
        r"(?:ruff|flake8|pycodestyle)\.(?:(?:extend-)?ignore|(?:extend-)?exclude|(?:extend-)?per-file-ignores.*)",
        r"eslint\.(?:ignorepatterns|ignores)(?:\.line)?",
        r"pylint\..*disable",
        r"master\.disable",
        r"messages control\.disable",
        r"bandit\.skips",
        r"golangci\.linters\.disable",
        r"golangci\..*exclude.*",
        r"rubocop\..*exclude",
        r"biome\.(?:files|linter)\.ignore",
        r"pre-commit\..*exclude",
        r"pre-commit\.ci\.skip",
        r"phpstan\..*(?:ignoreerrors|excludepaths).*",
    ),
    ("lint-loosened", "most"): (
        r"(?:flake8|ruff\.mccabe)\.max-complexity",
        r"rubocop\..*\.max",
        r"eslint\..*max-warnings",
    ),
    ("lint-loosened", "least"): (
        r"pylint\..*fail-under",
        r"phpstan\..*level",
    ),
    ("lint-loosened", "on"): (
        r"rubocop\..*\.enabled",
        r"biome\.linter\.(?:enabled|rules\.recommended)",
        r"golangci\.linters\.enable-all",
    ),
    ("lint-loosened", "off"): (r"golangci\.linters\.disable-all",),
    ("lint-loosened", "level"): (
        r"eslint\.(?:.*\.)?rules\..*",
        r"eslint\.rules.*",
        r"biome\.linter\.rules\..*",
        r"cargo\.(?:workspace\.)?lints\..*",
        r"eslint\.[\w@/-]+",
    ),
    ("types-loosened", "on"): (
        r"mypy\.(?:.*\.)?(?:strict.*|disallow_.*|warn_.*|check_untyped_defs|no_implicit_.*|extra_checks|local_partial_types)",
        r"mypy-.*\.(?:disallow_.*|check_untyped_defs)",
        r"tsconfig\.compileroptions\.(?:strict.*|alwaysstrict|noimplicit.*|nounused.*|nofallthrough.*|nounchecked.*|noproperty.*|exactoptional.*|useunknown.*|forceconsistent.*)",
    ),
    ("types-loosened", "off"): (
        r"mypy.*\.(?:ignore_errors|ignore_missing_imports|allow_.*)",
        r"tsconfig\.compileroptions\.(?:suppress.*|allowunreachablecode|allowunusedlabels|noemitonerrordisabled)",
    ),
    ("types-loosened", "grows"): (
        r"mypy\.(?:exclude|disable_error_code)",
        r"pyright\.(?:exclude|ignore)",
    ),
    ("types-loosened", "shrinks"): (
        r"mypy\.(?:files|packages|enable_error_code)",
        r"pyright\.(?:include|strict)",
    ),
    ("types-loosened", "changes"): (r"mypy.*\.follow_imports",),
    ("types-loosened", "level"): (r"pyright\.(?:typecheckingmode|report.*)",),
}
RULES = tuple(Rule(code, way, re.compile("|".join(patterns))) for (code, way), patterns in _TABLE.items())

TOPICS: dict[str, tuple[str, ...]] = {
    "coverage-loosened": (
        r"coverage",
        r"fail[_-]under",
        r"threshold",
        r"codecov",
        r"nyc",
    ),
    "tests-narrowed": (
        r"pytest(?:\.ini)?",
        r"jest",
        r"vitest",
        r"mocha",
        r"testpaths",
        r"test (?:runner|config\w*|settings?|discovery|collection)",
        r"slow tests?",
    ),
    "failure-hidden": (
        r"build",
        r"ci",
        r"pipeline",
    ),
    "lint-loosened": (
        r"lint\w*",
        r"ruff",
        r"eslint",
        r"flake8",
        r"pylint",
        r"rubocop",
        r"golangci\S*",
        r"biome",
        r"phpstan",
        r"pre-commit",
        r"rules?",
        r"warnings?",
    ),
    "types-loosened": (
        r"mypy",
        r"pyright",
        r"typescript",
        r"tsconfig",
        r"type[- ]?check\w*",
        r"strict\w*",
        r"typing",
    ),
}
"""Words with which a story refers to the subject of a finding."""
