"""Which files decide what passes, by name and place: a table per ecosystem. The first match counts."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from ralph.core.lazy_pattern import lazy_pattern


class Role(StrEnum):
    TEST = "test"
    FIXTURE = "fixture"
    HELPER = "helper"
    RUNNER = "runner"
    BUILD = "build"
    SCRIPT = "script"
    CI = "ci"
    RULES = "rules"
    DEPENDENCIES = "dependencies"
    DOCS = "docs"
    SOURCE = "source"


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def one_of(patterns: str, flags: int = 0) -> re.Pattern[str]:
    """Patterns separated by white space, as one. A line may end after a `|` inside a pattern."""
    return lazy_pattern("|".join(re.sub(r"(?<=\|)\s+", "", patterns).split()), flags)


# Case matters in names: `makefile` shadows `Makefile`, and both are listed.
_NAMES: tuple[tuple[Role, str], ...] = (
    # What is checked out, committed or enforced.
    (Role.RULES, r"""
        \.git(?:attributes|ignore|modules) \.lfsconfig
        \.pre-commit-(?:config|hooks)\.ya?ml \.?lefthook(?:-local)?\.\w+ \.lintstagedrc.*
        lint-staged\.config\.\w+
    """),
    (Role.CI, r"""
        \.gitlab-ci\.ya?ml azure-pipelines[\w.-]*\.ya?ml Jenkinsfile[\w.-]* \.travis\.ya?ml \.?appveyor\.ya?ml
        bitbucket-pipelines\.ya?ml \.drone\.(?:ya?ml|star|jsonnet) \.woodpecker\.ya?ml \.cirrus\.(?:ya?ml|star)
        \.build\.ya?ml \.zuul\.ya?ml
        cloudbuild\.ya?ml buildspec\.ya?ml wercker\.ya?ml \.?codecov\.ya?ml sonar-project\.properties bors\.toml
        \.semaphore\.ya?ml
    """),
    # Lists of dependencies, restored never.
    (Role.DEPENDENCIES, r"""
        (?:[\w-]*requirements|constraints)[\w.-]*\.(?:txt|in|pip)
        (?:Pipfile|poetry|uv|pdm|pixi|Cargo|composer|flake|deno|mix|pubspec|Gemfile|gems|yarn|bun|Podfile|
        Package|conda)\.(?:lock|resolved|lockb|locked)
        conda-lock\.ya?ml pylock(?:\.[\w-]+)?\.toml
        package-lock\.json npm-shrinkwrap\.json pnpm-(?:lock|workspace)\.ya?ml Gemfile gems\.rb [\w.-]+\.gemspec
        go\.(?:mod|sum|work|work\.sum) packages\.lock\.json Directory\.Packages\.props libs\.versions\.toml
        gradle\.lockfile vcpkg\.json conanfile\.txt environment\.ya?ml \.terraform\.lock\.hcl cpanfile
        (?:[\w-]+\.)?opam stack\.yaml\.lock pubspec\.yaml Podfile
    """),
    # Python
    (Role.RUNNER, r"""
        [\w.-]+\.py[co] (?:site|user)customize\.py [\w.-]+\.pth \.?pytest\.(?:ini|toml) tox\.(?:ini|toml) setup\.cfg
        pyproject\.toml Pipfile hatch\.toml noxfile\.py \.coveragerc[\w.-]* unittest\.cfg nose2?\.cfg \.noserc
        behave\.ini \.?behaverc \.testr\.conf \.stestr\.conf testing\.cfg
        \.?mypy\.ini \.?ruff\.toml \.?flake8 \.?pylintrc(?:\.toml)? \.isort\.cfg \.bandit(?:\.ya?ml)?
        pyrightconfig\.json \.pyre_configuration \.style\.yapf \.yapfignore \.?importlinter(?:\.ini)?
        \.?pyre\.toml ty\.toml \.codespellrc \.pydocstyle \.?yamllint(?:\.ya?ml)?
    """),
    (Role.BUILD, r"""
        setup\.py MANIFEST\.in poetry\.toml uv\.toml \.python-version pip\.conf
        (?:dodo|fabfile|pavement|wscript)\.py BUILD(?:\.bazel)? WORKSPACE(?:\.bazel)? MODULE\.bazel
        \.bazelrc pants\.toml BUCK
    """),
    (Role.HELPER, r"""
        conftest\.py
    """),
    # JavaScript and TypeScript
    (Role.RUNNER, r"""
        package\.json
        (?:jest|vitest|vite|ava|karma|playwright|cypress|wdio|nightwatch|web-test-runner|testem|jasmine|tap|uvu|
        protractor|qunit|stryker|tsup|rollup|webpack|esbuild|babel|swc|svelte|vue|nuxt|next|astro|metro|postcss|
        eslint|prettier|stylelint|nyc|c8|xo|turbo)[\w.-]*\.(?:config|conf|workspace|setup|
        preset)\.(?:[cm]?[jt]sx?|json)
        \.(?:mocharc|nycrc|c8rc|taprc|babelrc|swcrc|eslintrc|stylelintrc|prettierrc|jshintrc|jscsrc|xo-config|
        testcaferc|jasmine|zuul|airtap)(?:\.[\w.]+)?
        (?:nodemon|jasmine|testem|cypress|biome|deno|nx|turbo|lerna|angular|project|rush|tslint|tsdoc|oxlint|
        \.oxlintrc|dprint|jest)\.jsonc?
        (?:ts|js)config[\w.-]*\.json babel\.config\.\w+ mocha\.opts jest[._-](?:setup|preset|globals)[\w.-]*
        vitest[._-](?:setup|shims)[\w.-]* setup-?[tT]ests?\.[cm]?[jt]sx? (?:karma|protractor)\.conf\.\w+
        \.npmrc \.pnpmfile\.c?js \.yarnrc(?:\.yml)? bunfig\.toml \.node-version \.nvmrc \.nodeenv \.npmignore
        \.eslintignore \.prettierignore node\.config\.json
    """),
    (Role.BUILD, r"""
        (?:Grunt|gulp|Jake|Cake|rake)file\.\w+ Jakefile Cakefile binding\.gyp
    """),
    # Go, Rust
    (Role.RUNNER, r"""
        \.golangci\.\w+ \.?(?:clippy|rustfmt)\.toml nextest\.toml tarpaulin\.toml deny\.toml
        rust-toolchain(?:\.toml)? \.?gotestsum\.\w+ \.revive\.toml staticcheck\.conf
    """),
    (Role.BUILD, r"""
        Cargo\.toml build\.rs magefile\.go Cross\.toml Makefile\.toml
    """),
    # Java, Kotlin, Scala, .NET, Swift, Elixir, Dart
    (Role.BUILD, r"""
        pom\.xml [\w.-]+\.gradle(?:\.kts)? gradle(?:-wrapper)?\.properties gradlew(?:\.bat)? mvnw(?:\.cmd)?
        maven\.config jvm\.config build\.(?:sbt|xml|sc|mill|zig|fsx|cake) [\w.-]+\.(?:cs|fs|vb)proj
        [\w.-]+\.sln[xf]? Directory\.Build\.(?:props|targets) global\.json nuget\.config NuGet\.Config
        Package\.swift mix\.exs project\.clj deps\.edn build\.boot stack\.yaml package\.yaml [\w-]+\.cabal
        rebar\.config dune(?:-project)? shard\.yml dub\.(?:json|sdl)
    """),
    (Role.RUNNER, r"""
        [\w.-]+\.runsettings xunit\.runner\.json testng[\w.-]*\.xml junit-platform\.properties
        (?:detekt|checkstyle|pmd|spotbugs)[\w.-]*\.(?:xml|ya?ml) \.editorconfig \.?swiftlint\.ya?ml \.credo\.exs
        \.formatter\.exs dart_test\.yaml analysis_options\.yaml test_helper\.exs
    """),
    # Ruby, PHP, Perl
    (Role.RUNNER, r"""
        \.rspec(?:-local)? \.simplecov \.rubocop[\w.-]*\.yml cucumber\.ya?ml Guardfile
        phpunit[\w.-]*\.xml(?:\.dist)? phpstan[\w.-]*\.neon(?:\.dist)? psalm[\w.-]*\.xml(?:\.dist)?
        phpcs\.xml(?:\.dist)? \.phpcs\.xml(?:\.dist)? \.php-cs-fixer(?:\.dist)?\.php codeception(?:\.dist)?\.yml
        infection\.json5?(?:\.dist)? pest\.php behat\.ya?ml \.proverc rector\.php
    """),
    (Role.BUILD, r"""
        [Rr]akefile(?:\.rb)? [\w.-]+\.rake composer\.json Makefile\.PL Build\.PL dist\.ini
    """),
    (Role.HELPER, r"""
        (?:spec|test|rails)_helper\.rb (?:Pest|TestCase)\.php
    """),
    # C and C++, make and its relatives, shell
    (Role.BUILD, r"""
        CMakeLists\.txt CTest(?:Config|Custom|TestfileGenerator)?\.cmake [\w.-]+\.cmake
        CMake(?:User)?Presets\.json meson(?:_options|\.options)?(?:\.build|\.txt)? configure(?:\.(?:ac|in))?
        conanfile\.py xmake\.lua SCons(?:truct|cript)
        (?:GNUm|M|m)akefile(?:\.(?:am|in|inc|common|[\w-]+))? [\w.-]+\.mk \.?[Jj]ustfile JUSTFILE [\w.-]+\.just
        [Tt]askfile(?:\.dist)?\.ya?ml Earthfile Tiltfile Procfile\.test \.?mise(?:\.\w+)?\.toml \.tool-versions
        \.envrc devenv\.nix Brewfile
        (?:[\w.-]+\.)?(?:Dockerfile|Containerfile)(?:\.[\w.-]+)? (?:docker-)?compose[\w.-]*\.ya?ml
        \.dockerignore \.env\.(?:test|testing|ci)
    """),
    (Role.SCRIPT, r"""
        (?:run[_-]?)?(?:all[_-])?(?:tests?|checks?|specs?|lint|verify|ci)(?:[_-](?:all|suite|
        runner))?(?:\.(?:sh|bash|zsh|bat|cmd|ps1))?
        run[_-]?(?:tests?|checks?|specs?|lint|ci)\.\w+
    """),
)  # fmt: skip
_BY_NAME = [(role, one_of(patterns)) for role, patterns in _NAMES]

_PLACES: tuple[tuple[Role, str], ...] = (
    (Role.RULES, r"""
        ^\.(?:ralph|claude|codex|cursor)/ (?:^|/)\.(?:husky|githooks|git-hooks)/
    """),
    (Role.CI, r"""
        (?:^|/)\.(?:github|gitlab|gitea|forgejo)/(?:workflows|actions|ci)/
        (?:^|/)\.(?:circleci|buildkite|woodpecker|semaphore|azure-pipelines|teamcity|builds|ci|tekton)/ ^ci/
    """),
    (Role.DEPENDENCIES, r"""
        (?:^|/)requirements/[^/]+\.(?:txt|in)$ (?:^|/)Gemfile\.d/ (?:^|/)gemfiles/
    """),
    (Role.RUNNER, r"""
        (?:^|/)\.config/(?:nextest\.toml|mise\.toml|jest|vitest|pytest) (?:^|/)\.cargo/config(?:\.toml)?$
        (?:^|/)(?:node_modules|site-packages|\.?venv)/ (?:^|/)\.storybook/ (?:^|/)cypress/(?:support|plugins)/
    """),
    (Role.BUILD, r"""
        (?:^|/)(?:\.mvn|gradle/wrapper|buildSrc|build-logic)/ (?:^|/)cmake/
    """),
    (Role.FIXTURE, r"""
        (?:^|/)(?:__snapshots__|__image_snapshots__|__fixtures__|testdata|test[_-]?data|test[_-](?:fixtures|
        resources|files|assets|cases)|cassettes|vcr_cassettes|__files|goldens?|golden[_-]files)/
        \.(?:snap|ambr|golden|approved|received|snapshot)(?:\.\w+)?$ \.(?:approved|verified)\.\w+$
    """),
)  # fmt: skip
_BY_PLACE = [(role, one_of(patterns)) for role, patterns in _PLACES]
# Data in these folders is recorded or expected; code in them is so only below a test folder.
_DATA_PLACE = one_of(
    r"""
    (?:^|/)(?:fixtures?|snapshots?|approvals|approved|expected(?:[_-](?:outputs?|results?))?|baselines?|mocks?|
    stubs)/
    (?:^|/)(?:expected|golden)[._-][^/]*$
    [._-](?:expected|golden|fixtures?)\.\w+$
    (?:^|/)(?:expected|golden)\.\w+$
    """,
    re.IGNORECASE,
)
_LICENCE = one_of(
    r"""(?:LICEN[CS]E|COPYING|AUTHORS|NOTICE|README|CHANGELOG|CHANGES|HISTORY|NEWS|CONTRIBUTING|
    CODE_OF_CONDUCT|SECURITY|CODEOWNERS|MAINTAINERS)(?:[._-].*)?""",
    re.IGNORECASE,
)
_DOCS = lazy_pattern(r"\.(?:md|mdx|rst|adoc|markdown|org)$|(?:^|/)(?:docs?|man|LICENSES)/")

_SUFFIXES = {
    "python": "py pyi pyw pyx ipynb",
    "javascript": "js jsx mjs cjs ts tsx mts cts vue svelte",
    "go": "go",
    "rust": "rs",
    "ruby": "rb erb",
    "java": "java kt kts scala groovy",
    "php": "php",
    "csharp": "cs fs vb",
    "shell": "sh bash bats zsh ksh ps1 bat cmd",
    "swift": "swift",
    "cpp": "c cc cpp cxx h hh hpp hxx m mm",
    "elixir": "ex exs",
    "dart": "dart",
    "perl": "pl pm t",
    "lua": "lua",
    # Written by hand and shipped: product, not data.
    "markup": "html htm css scss less sql graphql proto jinja j2 hbs ejs pug tmpl",
}
_LANGUAGES = {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}

_NAMED_AS_TEST = {
    "python": lazy_pattern(r"test_.*\.pyi?|.*_tests?\.py|tests\.py"),
    "javascript": one_of(r"""
        .*[._-](?:tests?|specs?|cy|e2e|test-d|spec-d)\.[cm]?[jt]sx?
        tests?-(?!utils?|helpers?|support|setup|lib|kit).*\.[cm]?[jt]sx?
    """),
    "go": lazy_pattern(r".*_test\.go"),
    "rust": lazy_pattern(r"tests?\.rs|.*_tests?\.rs|test_.*\.rs"),
    "ruby": lazy_pattern(r"test_.*\.rb|.*_(?:spec|test)\.rb"),
    "java": lazy_pattern(r"Test[A-Z0-9].*\.\w+|.*(?:Tests?|TestCase|IT|Spec)\.\w+"),
    "php": lazy_pattern(r".*(?:Test|Cest)\.php|.*\.phpt"),
    "csharp": lazy_pattern(r".*(?:Tests?|Specs?)\.\w+"),
    "shell": lazy_pattern(r".*\.bats|(?:test[_-].*|.*[_-]tests?)\.\w+"),
    "swift": lazy_pattern(r".*Tests?\.swift"),
    "cpp": lazy_pattern(r"(?:test_.*|.*_(?:unit)?tests?|.*Tests?)\.(?:c|cc|cpp|cxx|m|mm)"),
    "elixir": lazy_pattern(r".*_test\.exs"),
    "dart": lazy_pattern(r".*_test\.dart"),
    "perl": lazy_pattern(r".*\.t"),
    "lua": lazy_pattern(r".*_spec\.lua"),
}  # fmt: skip
_TEST_FOLDER = one_of(
    r"""
    (?:^|/)(?:tests?|__tests?__|e2e|e2e-tests|cypress|unit[_-]?tests?|integration[_-]?tests?|unittests|
    testsuite|test-suite|[\w-]+[_-]tests|src/(?:test|it|androidTest|commonTest|\w+Test))/
    (?:^|/)[\w.-]*\.(?:Unit|Integration)?Tests?/
    (?:^|/)Tests/
    ^(?:spec|testing|t)/
    ^features/(?:steps|step_definitions|support|environment\.py$)
    """
)
_HELPER = one_of(
    r"""
    (?:^|/)(?:test[_-]?(?:utils?|helpers?|support|lib|kit|common|harness|tools|setup|base)|testing[_-](?:utils?|
    helpers?)|__mocks__|tests?-(?:utils?|helpers?))(?:/|\.\w+$)
    (?:^|/)(?:[\w-]+[_-])?test[_-](?:utils?|helpers?)\.\w+$
    """,
    re.IGNORECASE,
)
_SUPPORT_NAME = one_of(
    r"""
    (?:global|jest|vitest|test|tests|mocha|spec)?[._-]?(?:setup|teardown|helpers?|utils?|fixtures?|globals?|
    common|support|bootstrap|base|mocks?|stubs?|fakes?|harness|__init__|mod|init|main|
    runner)(?:[._-]\w+)*\.\w+
    """,
    re.IGNORECASE,
)
_SUPPORT_FOLDER = one_of(
    r"""
    (?:^|/)(?:helpers?|support|fixtures?|mocks?|__mocks__|__fixtures__|testdata|data|common|stubs?|utils?|lib|
    resources|assets|shared|factories|examples?)/
    """
)
# Languages whose runners take every file below the test folder, whatever its name.
_COLLECTED_BY_PLACE = frozenset({"javascript", "rust", "cpp"})
_CHECK_SCRIPT = one_of(
    r"""
    (?:^|/)(?:scripts?|bin|tools?|hack|dev|build|etc|make)/(?:[\w.-]*[_.-])?(?:run[_-]?)?(?:tests?|checks?|lint|
    verify|ci|coverage|typecheck|validate|presubmit)(?:[_.-][\w.-]*)?$
    """
)


def language_of(path: str) -> str:
    """The language of a file that is written as code, or ''."""
    stem, dot, suffix = path.rsplit("/", 1)[-1].rpartition(".")
    return _LANGUAGES.get(suffix.lower(), "") if dot and stem else ""


def name_of(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def is_named_as_test(path: str) -> bool:
    if re.fullmatch(r"tests?\.\w+", path) and language_of(path):
        return True  # further down `test.py` is often a product's support for tests
    pattern = _NAMED_AS_TEST.get(language_of(path))
    return pattern is not None and pattern.fullmatch(name_of(path)) is not None


def in_test_folder(path: str) -> bool:
    return "src/main/" not in path and _TEST_FOLDER.search(path) is not None


@lru_cache(maxsize=50_000)
def role_of(path: str) -> Role:
    """What a file is for, by its path alone."""
    name, language = name_of(path), language_of(path)
    for role, pattern in _BY_NAME:
        if pattern.fullmatch(name):
            return role
    for role, pattern in _BY_PLACE:
        if pattern.search(path):
            return role
    if is_named_as_test(path):
        return Role.TEST
    if path.endswith(".feature"):
        return Role.TEST
    if in_test_folder(path):
        return _role_among_tests(path, name, language)
    if not language and _DATA_PLACE.search(path):
        return Role.FIXTURE
    if language and _HELPER.search(path):
        return Role.HELPER
    if _CHECK_SCRIPT.search(path):
        return Role.SCRIPT
    if _LICENCE.fullmatch(name) or _DOCS.search(path):
        return Role.DOCS
    return Role.SOURCE


def _role_among_tests(path: str, name: str, language: str) -> Role:
    if not language:
        return Role.DOCS if _LICENCE.fullmatch(name) else Role.FIXTURE
    if _DATA_PLACE.search(path) or language == "markup":
        return Role.FIXTURE
    is_support = _SUPPORT_NAME.fullmatch(name) or _SUPPORT_FOLDER.search(path)
    return Role.HELPER if is_support or language not in _COLLECTED_BY_PLACE else Role.TEST


def is_collected(path: str) -> bool:
    """Whether a test runner looks for tests in this file."""
    if role_of(path) is not Role.TEST:
        return False
    if language_of(path) == "go" and re.search(r"(?:^|/)[_.]", path):
        return False
    return not path.endswith(".pyi")
