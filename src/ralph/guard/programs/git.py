"""git, gh and glab, as far as one rule a line does not suffice: branches, pathspecs, settings, aliases."""

import os

from ralph.guard import effects
from ralph.guard import paths as at
from ralph.guard.invocation import Invocation, Options
from ralph.guard.patterns import one_of, takes_everything, wordlist
from ralph.guard.programs.rules import apply_rules
from ralph.guard.taint import LOCAL, SECRET, UNKNOWN, is_known

MAIN = frozenset(("main", "master", "trunk", "production", "prod", "release"))
_GLOBAL_VALUED = ("--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix")
_PROGRAM_SETTINGS = wordlist(
    """
    core.pager core.editor core.sshcommand core.fsmonitor core.askpass core.gitproxy sequence.editor diff.external
    credential.helper gpg.program init.templatedir uploadpack.packobjectshook
    """
)
_KEPT_SETTINGS = wordlist(
    """
    core.sshcommand core.fsmonitor core.askpass core.gitproxy core.worktree core.attributesfile include.path includeif.
    diff.external uploadpack.packobjectshook init.templatedir gpg.program
    """
)
_SKIPS_HOOKS = {
    "SKIP": "",
    "LEFTHOOK": "0",
    "PRE_COMMIT_ALLOW_NO_CONFIG": "1",
    "SKIP_HOOKS": "1",
    "OVERCOMMIT_DISABLE": "1",
}
"""Variables that pre-commit, lefthook and overcommit read, and the value that disables them."""
_READS = ("--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch", "--show-origin", "--name-only")
_REF = "ref: refs/heads/"


def git(call: Invocation) -> str | None:
    args, aliases = _after_global(call)
    if call.name.startswith("git-"):
        args = [call.name[4:], *call.args]
    if not args:
        return None
    name, rest = args[0], args[1:]
    if name in aliases:
        value = aliases[name]
        if value.startswith("!"):
            return call.run_text(" ".join([value[1:], *rest]))
        return call.run(["git", *value.split(), *rest])
    if "-h" in rest[:1] or name == "help":
        return UNKNOWN
    for word in rest:
        if word.startswith("ext::"):  # gitremote-ext(1): `% ` is a blank inside an argument
            call.run_text(word[5:].replace("% ", "\\ "))
    if name in ("commit", "merge", "push", "rebase") and any(
        key in call.env and call.env[key].startswith(value) for key, value in _SKIPS_HOOKS.items()
    ):
        call.deny("tampering", "This skips the project's git hooks")
    if call.name == "hub" and name in ("api", "delete", "release", "gist", "issue", "pr"):
        return forge(call)
    name = "checkout" if name == "co" else name
    options = apply_rules(call, f"git-{name}", rest)
    special = _SPECIAL.get(name)
    return special(call, rest, options) if special else None


def _after_global(call: Invocation) -> tuple[list[str], dict[str, str]]:
    """The subcommand with its arguments, and the aliases that are set; `-c` settings are judged along the way."""
    args = call.args
    for name, key in {**{name: each[0] for name, each in call.shell.vars.items() if each}, **call.env}.items():
        if name.startswith("GIT_CONFIG_KEY_"):
            value_name = f"GIT_CONFIG_VALUE_{name[15:]}"
            _judge_setting(call, key, call.env.get(value_name) or (call.shell.vars.get(value_name) or [""])[0])
    aliases = {key[10:]: values[0] for key, values in call.shell.vars.items() if key.startswith("git:alias.")}
    while args and args[0].startswith("-"):
        option = args[0]
        if option.startswith(("-c", "--config-env=")) and "=" in option:
            args = ["-c", option.removeprefix("--config-env=").removeprefix("-c"), *args[1:]]
            option = "-c"
        if option in ("-c", "--config-env") and len(args) > 1:
            key, _, value = args[1].partition("=")
            _judge_setting(call, key, value)
            if key.lower().startswith("alias."):
                aliases[key[6:]] = value
        args = args[2:] if option in ("-c", "-C") or option in _GLOBAL_VALUED else args[1:]
    return args, aliases


def _judge_setting(call: Invocation, key: str, value: str) -> None:
    """Some of git's settings are programs, and some disable hooks."""
    key = key.lower()
    if key == "core.hookspath" and not value.startswith((".husky", ".githooks")):
        call.deny("tampering", "This makes git use other hooks or none")
    if key.startswith("gc.") and key.endswith("expire") and value in ("now", "all", "0"):
        call.deny("git-history", "This deletes unreachable commits")
    if key.startswith("alias."):
        call.run_text(value[1:] if value.startswith("!") else f"git {value}")
    elif key.startswith("pager.") or key in _PROGRAM_SETTINGS or key.endswith(_PROGRAM_ENDINGS):
        if is_known(value) and (" " in value or "!" in value or "/" in value):
            call.run_text(value.lstrip("!"))
    elif key.startswith("core.") and key.endswith("command"):
        call.run_text(value)
    elif key == "protocol.ext.allow" and value == "always":
        call.deny("remote-code", "This lets a repository URL run commands")


_PROGRAM_ENDINGS = (".cmd", ".clean", ".smudge", ".textconv", ".helper")


def _config(call: Invocation, args: list[str], options: Options) -> str:
    rest = options.rest
    if rest[:1] == ["set"] and len(rest) > 2:
        rest = rest[1:]
    if options.has(*_READS, "-e", "--edit") or rest[:1] in (["get"], ["list"], ["edit"]):
        return UNKNOWN
    if rest and (options.has("--unset", "--unset-all", "--remove-section") or rest[0] in ("unset", "remove-section")):
        if any(word.lower() == "core.hookspath" for word in rest):
            call.deny("tampering", "This makes git use other hooks")
    elif len(rest) > 1:
        _judge_setting(call, rest[0], rest[1])
        if rest[0].lower().startswith(_KEPT_SETTINGS) and rest[1] not in ("true", "false", "", "ssh"):
            call.deny("tampering", "This makes git run another program, or read other settings, from now on")
        if rest[0].lower().startswith("alias."):
            call.shell.vars["git:" + rest[0]] = [rest[1]]
    return UNKNOWN


_UNFORCED = tuple(f"clean.requireforce={value}" for value in ("false", "no", "off", "0"))


def _clean(call: Invocation, args: list[str], options: Options) -> None:
    """With this setting, `-f` is not needed."""
    unforced = any(arg.lower() in _UNFORCED for arg in call.args)
    if unforced and not options.is_dry_run:
        call.deny("git-history", "This deletes untracked files")


def _checkout(call: Invocation, args: list[str], options: Options) -> None:
    words = [word for word in options.rest if word not in options.after]
    _judge_discarded(call, options, options.after or words, options.after or words[1:])
    paths = [word for word in words if _is_file(word)] if len(words) == 1 else words[1:]
    if not options.has("--ours", "--theirs", "--merge", "-m", "--orphan") and not options.value("-b", "-B"):
        _judge_source(call, words[0] if words and words != paths else "", options.after or paths)
    if (options.value("-B") or "") in MAIN:
        call.deny("git-history", "This moves a main branch")
    if new := options.value("-b", "-B", "--orphan"):
        call.shell.branch = new
    elif len(words) == 1 and not options.after:
        call.shell.branch = words[0]


def _restore(call: Invocation, args: list[str], options: Options) -> None:
    if not options.has("--staged", "-S") or options.has("--worktree", "-W"):
        _judge_discarded(call, options, options.rest, options.rest)
        if not options.has("--ours", "--theirs", "--merge", "-m"):
            _judge_source(call, options.value("-s", "--source") or "", options.rest)


def _judge_source(call: Invocation, source: str, paths: list[str]) -> None:
    """A version from another commit brings something in; that of the last one only discards what came after."""
    if paths and (source in ("", "HEAD", "@") or _is_file(source)):
        call.deny("git-history", f"This discards uncommitted changes in {paths[0]}")


_FILE_ENDINGS = one_of(
    """
    py pyi ts tsx js jsx mjs cjs json md txt rst yml yaml toml lock rs go rb java kt kts c h cc cpp hpp cs php sh css
    scss less html vue svelte sql xml cfg ini conf gradle swift ex exs erl hs ml mod sum snap svg png jpg csv proto tf
    lua pl r scala clj dart ipynb env gitignore
    """
)


def _is_file(word: str) -> bool:
    """`src/app.ts` is a file; `feature/x` and `v1.2` are branches or tags."""
    return "." in word and word.rpartition(".")[2] in _FILE_ENDINGS


def _judge_discarded(call: Invocation, options: Options, paths: list[str], files: list[str]) -> None:
    if options.has("--pathspec-from-file") or any(_is_tree(path) for path in paths):
        call.deny("git-history", "This discards the changes of a whole tree")
    for path in files:  # restoring an older version of the agent's settings changes them
        if call.shell.locate(path).kind == at.OWN:
            call.write(path)


def _switch(call: Invocation, args: list[str], options: Options) -> None:
    new = options.value("-c", "-C", "--create", "--force-create", "--orphan")
    if options.has("-C", "--force-create") and new in MAIN:
        call.deny("git-history", "This moves a main branch")
    call.shell.branch = new or (options.rest[0] if options.rest else "")


def _is_tree(path: str) -> bool:
    """Not a single file: the root, a folder, or a pattern that matches everything."""
    if path in (".", "./", ":/", "/", "..", "../", ":", "-A", "*", "**", ":(top)", "./*") or LOCAL in path:
        return True
    last = path.rstrip("/").rpartition("/")[2]
    return path.endswith("/") or takes_everything(last) or (path.startswith(("*", ":")) and "/" not in path)


def _merge(call: Invocation, args: list[str], options: Options) -> None:
    if options.has("--abort", "--continue", "--quit"):
        return
    branch = _current_branch(call)
    own = {f"{remote}/{branch}" for remote in ("origin", "upstream")} | {"FETCH_HEAD", "@{u}", "@{upstream}"}
    if branch in MAIN and not set(options.rest) <= own:
        call.deny("git-merge", f"This merges into {branch}")


def _rebase(call: Invocation, args: list[str], options: Options) -> None:
    if options.has("--abort", "--continue", "--skip", "--quit"):
        return
    if len(options.rest) > 1 and options.rest[1] in MAIN:
        call.deny("git-history", f"This rewrites {options.rest[1]}")
    if call.shell.branch in MAIN and not any(word.startswith(("origin", "upstream")) for word in options.rest):
        call.deny("git-history", f"This rewrites {call.shell.branch}")


def _pull(call: Invocation, args: list[str], options: Options) -> None:
    branch = _current_branch(call)
    if branch in MAIN and len(options.rest) > 1 and options.rest[1] != branch:
        call.deny("git-merge", f"This merges into {branch}")


def _fetch(call: Invocation, args: list[str], options: Options) -> None:
    for spec in options.rest[1:]:
        target = spec.partition(":")[2].removeprefix("refs/heads/")
        if target in MAIN and (options.rest[0] in (".", "./") or spec.startswith("+")):
            call.deny("git-merge", f"This moves {target} to other commits")


def _current_branch(call: Invocation) -> str:
    """The branch the command switched to, or that of the repository where git runs. Empty if unknown."""
    folder = call.shell.cwd
    for option, value in zip(call.args, call.args[1:], strict=False):
        if option == "-C":
            folder = os.path.normpath(os.path.join(folder, value))
    return call.shell.branch or branch_in(folder)


def branch_in(folder: str) -> str:
    while folder not in ("", "/"):
        head = _first_line(f"{folder}/.git/HEAD")
        if not head and (link := _first_line(f"{folder}/.git")).startswith("gitdir: "):
            head = _first_line(f"{os.path.join(folder, link[8:])}/HEAD")  # a worktree has a file in place of the folder
        if head:
            return head[len(_REF) :] if head.startswith(_REF) else ""
        folder = os.path.dirname(folder)
    return ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline(4096).strip()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return ""


def _remove(call: Invocation, args: list[str], options: Options) -> None:
    if options.has("--cached") or options.is_dry_run:
        return
    for path in options.rest:
        if _is_tree(path) and path.rstrip("/*") in ("", ".", ":", "..", ":("):
            call.deny("destruction", "This deletes everything in the workspace")
        effects.delete(call.shell, path, call.argv, options.has("-r"))


def _submodule(call: Invocation, args: list[str], options: Options) -> None:
    if options.rest[:1] == ["foreach"]:
        rest = args[args.index("foreach") + 1 :]
        call.run_text(" ".join(arg for arg in rest if arg not in ("--recursive", "--quiet")))


def _bisect(call: Invocation, args: list[str], options: Options) -> None:
    if args[:1] == ["run"]:
        call.run(args[1:])


def _clone(call: Invocation, args: list[str], options: Options) -> None:
    for setting in options.all("-c", "--config"):
        key, _, value = setting.partition("=")
        _judge_setting(call, key, value)


def _rev_parse(call: Invocation, args: list[str], options: Options) -> str | None:
    if "--show-toplevel" in args:
        return call.shell.places.workspace + "\n"
    if {"--git-dir", "--git-common-dir", "--absolute-git-dir"} & set(args):
        return call.shell.places.workspace + "/.git\n"
    return None


def _list_files(call: Invocation, args: list[str], options: Options) -> str:
    """The listed files are what a following `xargs rm` deletes."""
    return "".join(f"{LOCAL}/{word.strip('*')}\n" for word in options.rest) or "*\n"


_CHANGES = UNKNOWN + "diff --git "


def _apply(call: Invocation, args: list[str], options: Options) -> None:
    changes = call.files(options.rest)
    if options.has("-R", "--reverse") and _CHANGES in changes and not options.has("--cached", "--check"):
        call.deny("git-history", "This discards uncommitted changes")


def _stash(call: Invocation, args: list[str], options: Options) -> str | None:
    """Also update-index, which hides changes: neither of the agent's settings."""
    for path in options.rest:
        if call.shell.locate(path).kind == at.OWN:
            call.write(path)
    return _diff(call, args, options)


_PATCHES, _EVERYTHING = {"-p", "-u", "--patch"}, {"--all", "--full-diff", "--binary", "--reverse", "--no-color"}


def _history(call: Invocation, args: list[str], options: Options) -> str | None:
    """`git log -p`, `git archive` and `git fast-export` print the whole project, or all of its history."""
    is_log = "log" in call.args[: len(call.args) - len(args)]
    if is_log and not (_PATCHES & set(args) and set(args) <= _PATCHES | _EVERYTHING):
        return _diff(call, args, options)
    return UNKNOWN + SECRET


def _diff(call: Invocation, args: list[str], options: Options) -> str | None:
    if "--name-only" in args:
        return LOCAL + "\n"
    return _CHANGES if call.args[-len(args) - 1 :][0] == "diff" and not {"--cached", "--staged"} & set(args) else None


def _bundle(call: Invocation, args: list[str], options: Options) -> str | None:
    if options.rest[:2] == ["create", "-"]:
        return UNKNOWN + SECRET  # all of the project's history
    if options.rest[:1] == ["create"]:
        call.write(*options.rest[1:2])
    return None


def _credential(call: Invocation, args: list[str], options: Options) -> str:
    return UNKNOWN + SECRET


_SPECIAL = {
    "clean": _clean,
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "merge": _merge,
    "rebase": _rebase,
    "pull": _pull,
    "fetch": _fetch,
    "rm": _remove,
    "submodule": _submodule,
    "bisect": _bisect,
    "config": _config,
    "clone": _clone,
    "ls-files": _list_files,
    "apply": _apply,
    **dict.fromkeys(("stash", "update-index"), _stash),
    "bundle": _bundle,
    "credential": _credential,
    "rev-parse": _rev_parse,
    **dict.fromkeys(wordlist("log archive fast-export"), _history),
    **dict.fromkeys(wordlist("diff show whatchanged range-diff diff-tree diff-index diff-files"), _diff),
}


def forge(call: Invocation) -> str | None:
    """gh and glab."""
    options = call.options()
    words = options.rest
    if words[:1] == ["api"]:
        _api(call, options)
    sent = [*words[2:], *(value for name, value in options.values if name not in ("-H", "--header"))]
    if any(SECRET in text for text in (*sent, "" if words[:1] == ["auth"] else call.stdin)) or any(
        effects.is_secret(call.shell, text) for text in sent if " " not in text
    ):
        call.deny("exfiltration", "This publishes secrets")
    apply_rules(call, call.name, call.args)
    return None


_SHARED_BY_ALL = wordlist(
    """
    releases repos refs hooks keys dispatches collaborators merge merges transfer pages secrets variables protection
    invitations deployments
    """
)
"""What ends the path of an API for more than issues and comments."""


def _api(call: Invocation, options: Options) -> None:
    method = (options.value("-X", "--method") or "").upper()
    path = options.rest[1] if len(options.rest) > 1 else ""
    query = " ".join([*options.all("-f", "-F", "--field", "--raw-field"), call.stdin])
    mutates = path == "graphql" and "mutation" in query and ("delete" in query.lower() or "merge" in query.lower())
    writes = method == "POST" or (not method and bool(options.all("-f", "-F", "--field", "--raw-field", "--input")))
    shared = writes and path.rstrip("/").rpartition("/")[2] in _SHARED_BY_ALL
    if mutates or shared or method in ("DELETE", "PUT", "PATCH"):
        call.deny("cloud", "This changes the project for everyone")
