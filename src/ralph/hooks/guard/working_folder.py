"""Programs that change the folder they run in, or one named by an option, which must be inside the workspace."""

from ralph.hooks.guard import acts
from ralph.hooks.guard import places as at
from ralph.hooks.guard.marks import is_known
from ralph.hooks.guard.state import Shell
from ralph.hooks.guard.wordlist import one_of

_BUILD = one_of(
    """
    make gmake ninja npm yarn pnpm bun cargo mvn mvnw gradle gradlew poetry pdm bundle composer mix patch tox nox
    """
)
_GIT = one_of(
    """
    add am apply branch checkout cherry-pick commit fetch init merge mv pull rebase restore revert rm stash submodule
    switch tag worktree
    """
)
_FOLDER_OPTIONS = ("-C", "--directory", "--prefix", "--cwd", "--dir")
_CREATES = {"clone": 1, "init": 0, "worktree": 1}
"""Git commands that create a folder, and the position of its name among their arguments."""


_OUTPUTS = {
    **dict.fromkeys(one_of("sort gcc g++ cc c++ clang clang++ ld rustc go pandoc"), ("-o", "--output")),
    "curl": ("--output-dir",),
    **dict.fromkeys(one_of("pip pip3"), ("--target", "-t", "--prefix", "--root")),
    **dict.fromkeys(one_of("tsc babel"), ("--outDir", "--out-dir", "--outFile")),
}
"""Programs, and the options that name their output."""


def judge_folder(shell: Shell, name: str, argv: list[str]) -> None:
    for option in _OUTPUTS.get(name, ()):
        for word, following in zip(argv, [*argv[1:], ""], strict=True):
            path = following if word == option else word.partition("=")[2] if word.startswith(f"{option}=") else ""
            if path:
                acts.write(shell, path, argv, appends=True)
    if name not in _BUILD and name != "git":
        return
    folder, words = ".", [*argv[1:]]
    while words and words[0] in _FOLDER_OPTIONS:
        folder, words = words[1] if len(words) > 1 else ".", words[2:]
    if name == "git" and words[:1] == ["config"] and _changes_global(words[1:]):
        shell.deny("outside", "This changes git's global settings", argv)
    if name == "git" and (not words or words[0] not in _GIT):
        _judge_created(shell, words, argv)
        return
    place = shell.places.on_disk(shell.locate(folder))
    if place.kind in (at.OUTSIDE, at.SYSTEM) and is_known(place.path):
        shell.deny("outside", f"This works in {place.path}, outside the workspace", argv)
    _judge_created(shell, words, argv)


def _judge_created(shell: Shell, words: list[str], argv: list[str]) -> None:
    at_word = _CREATES.get(words[0]) if words else None
    plain = [word for word in words[1:] if not word.startswith("-")]
    if argv[0].rpartition("/")[2] != "git" or at_word is None or len(plain) <= at_word:
        return
    if words[0] != "worktree" or plain[0] == "add":
        acts.make_folder(shell, plain[at_word], argv)


def _changes_global(words: list[str]) -> bool:
    if not {"--global", "--system"} & set(words):
        return False
    plain = [word for word in words if not word.startswith("-")]
    if {"--get", "--get-all", "--get-regexp", "--list", "-l"} & set(words) or plain[:1] in (["get"], ["list"]):
        return False
    return len(plain) > 1 or any(word.startswith(("--unset", "--edit", "-e", "--re")) for word in words)
