"""Paths of files and folders that a text for people names. A guess: it prefers to miss one to inventing one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from ralph.core.lazy_pattern import lazy_pattern


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EXTENSIONS = _words(
    """adoc astro bash bat bzl c cc cfg cjs clj cljs cmake conf cpp cs cshtml csproj css csv cts cu cue cxx dart
    ejs el erb erl ex exs fish fs fsx gif go gql gradle graphql groovy h haml hbs hcl hh hpp hs htm html hxx ico
    ini ipynb java jinja jinja2 jl jpeg jpg js json json5 jsonc jsonl jsx kt kts less lhs lisp lock lua m md mdx
    mjs mk ml mli mm mod mts nim nix php pl plist pm png po prisma properties proto ps1 psm1 pug py pyi pyx qml
    r rake rb rs rst sass sbt scala scm scss sh sln slint snap sol sql sum svelte svg swift tcl tex tf tfvars
    thrift tmpl toml tpl ts tsv tsx twig txt v vb vim vue wat wasm webp wgsl xhtml xml xsd xsl yaml yml zig zsh"""
)
_NAMES = _words(
    """Brewfile Dockerfile Containerfile Gemfile Jenkinsfile Justfile justfile Makefile makefile GNUmakefile
    Pipfile Procfile Rakefile Vagrantfile CMakeLists.txt .babelrc .dockerignore .editorconfig .env .env.example
    .eslintrc .flake8 .gitattributes .gitignore .gitlab-ci.yml .gitmodules .npmrc .nvmrc .prettierrc
    .python-version"""
)
"""Files without an extension, or with nothing but one."""
_PRODUCTS = _words(
    """alpine angular asp backbone bun chart cypress d3 deno discord electron ember express fastify handlebars
    jquery knockout meteor moment nest next node nuxt p5 pdf phaser preact react require socket solid svelte
    tensorflow three underscore vue webgl"""
)
"""Names of products that end like a file: Node.js, Vue.js."""
_ROOTS = _words(
    """app apps assets backend bench bin build ci cmd components config configs core crates db deploy doc docs
    example examples features fixtures frontend helm hooks include infra internal k8s lib libs locales
    migrations modules packages pages pkg plugins public routes schemas script scripts server services spec
    specs src static styles templates test tests tools ui utils views web website"""
)
"""Folders that a path without an extension commonly starts with."""
_SOURCES = _words("""cmd components crates internal packages pkg scripts src test tests""")
"""Those of them that are neither words of a sentence nor the start of a URL."""
_FOREIGN = _words("""node_modules site-packages dist-packages vendor .venv venv .git""")
_MIME = _words("""application audio font image message model multipart text video""")
_BRANCHES = _words("""origin upstream feature feat fix bugfix hotfix release chore refs heads""")
_SPLIT = lazy_pattern(r"[\s`\"'“”‘’«»<>|;]+|,(?![^{}]{0,99}\})|\]\(|[()\[\]](?=[\s.,:;!?]|$)|(?<=\s)[()\[\]]|^[()\[\]]")
_TICKS = lazy_pattern(r"`([^`\n]+)`")
_LINES = lazy_pattern(r"(?:::.*|:\d+(?:[-:,]\d+)*|#.*|:L\d+.*)$")
_BRACES = lazy_pattern(r"\{([^{}]*,[^{}]*)\}")
_SHAPE = lazy_pattern(r"\.{0,2}[\w@+~*?\[\]!.-]+(?:/[\w@+~*?\[\]!. -]+)*/?|\.{0,2}/[\w@+*?./-]+")
_NUMBER = lazy_pattern(r"v?\d+(?:[.x]\d*)*(?:-?(?:alpha|beta|rc|dev|post)[\d.]*)?", re.IGNORECASE)
_HOST = lazy_pattern(
    r"(?:[\w-]+\.)+(?:com|org|io|net|dev|app|co|ai|edu|gov|local|rs|me|sh|info|de|uk|eu)", re.IGNORECASE
)
_SCHEME = lazy_pattern(r"[a-z][a-z0-9+.-]*://|^(?:mailto|git@|www\.)", re.IGNORECASE)
_LONGEST = 300
"""Characters of a word."""
_MOST_READ = 20_000
"""Characters of a text."""


@lru_cache(maxsize=16_384)
def paths_in(text: str, *, files_only: bool = False) -> tuple[str, ...]:
    """In the order of the text; one path may come several times. `files_only`: no folders.

    Cached, because a run asks for every open story before each decision.
    """
    return tuple(_paths_in(text, files_only=files_only))


def _paths_in(text: str, *, files_only: bool) -> Iterator[str]:
    text = text[:_MOST_READ]
    quoted = {word.strip() for word in _TICKS.findall(text)}
    for word in _SPLIT.split(text):
        if len(word) > _LONGEST:
            continue  # no path, and patterns are slow on it
        for each in _spread(word):
            bare = _bare(each)
            if bare and _is_path(bare, is_quoted=each in quoted or bare in quoted, files_only=files_only):
                yield bare


def _spread(word: str) -> Iterator[str]:
    """`src/{a,b}.ts` names two files."""
    if not _BRACES.search(word):
        yield word
        return
    pieces = [[piece] if at % 2 == 0 else piece.split(",") for at, piece in enumerate(_BRACES.split(word))]
    if sum(map(len, pieces)) <= 30 and len(pieces) <= 5:
        yield from ("".join(choice) for choice in product(*pieces))


def _bare(word: str) -> str:
    """Without punctuation around it, emphasis, line numbers, anchors, and the option that it is the value of."""
    if _SCHEME.search(word):
        return ""
    word = word.lstrip("([{,:").rstrip(")]},.:!?…")
    for mark in ("**", "__", "*", "_"):
        inner = word[len(mark) : -len(mark)]
        if word == f"{mark}{inner}{mark}" and inner and mark not in inner:
            word = inner
    word = word.rsplit("=", 1)[-1].lstrip("@")
    word = _LINES.sub("", word).rstrip(".,:;!?")
    if "[" in word and "]" not in word:
        word = word.rpartition("[")[2]
    top = word.split("/", 2)
    return word[1:] if word.startswith("/") and top[1] in _SOURCES else word.removeprefix("./")


def _is_path(word: str, *, is_quoted: bool, files_only: bool) -> bool:
    if not _SHAPE.fullmatch(word) or _NUMBER.fullmatch(word) or word.startswith(("-", "~", "/", "..")):
        return False
    parts = word.rstrip("/").split("/")
    if _FOREIGN.intersection(parts) or (_HOST.fullmatch(parts[0]) and len(parts) > 1) or any(not p for p in parts):
        return False
    if len(parts) == 1 and "*" in word:  # "all *.py files" is no area
        return False
    if _is_file(parts[-1]):
        return len(parts) > 1 or parts[0].rpartition(".")[0].lower() not in _PRODUCTS or parts[0] in _NAMES
    return not files_only and _is_folder(word, parts, is_quoted=is_quoted)


def _is_file(name: str) -> bool:
    stem, dot, extension = name.rpartition(".")
    if name in _NAMES:
        return True
    return bool(dot and stem.strip(".*") + stem[:1]) and extension in _EXTENSIONS and not _NUMBER.fullmatch(stem)


def _is_folder(word: str, parts: list[str], *, is_quoted: bool) -> bool:
    """A word with a slash is more often "and/or" than a folder."""
    if parts[0] in _MIME or parts[0] in _BRANCHES or all(_NUMBER.fullmatch(part) for part in parts):
        return False
    if "@" in word or any(part.isupper() and len(part) > 1 for part in parts):
        return False
    if word.endswith("/"):
        return len(parts) > 1 or is_quoted or parts[0] in _ROOTS or parts[0].startswith(".") or len(parts[0]) > 2
    if len(parts) == 1:
        return False
    known = parts[0] in _ROOTS or parts[0].startswith(".")
    is_pair = len(parts) == 2 and parts[1] in _ROOTS and parts[0] not in _SOURCES  # such as frontend/server
    return (known and (is_quoted or not is_pair)) or (is_quoted and len(parts) > 2)
