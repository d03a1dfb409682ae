"""git: what destroys commits or uncommitted work, what leaves the repository, and what git is made to run."""

import os

from ralph.guard import effects
from ralph.guard import paths as at
from ralph.guard.invocation import Invocation, Options
from ralph.guard.patterns import takes_everything, wordlist
from ralph.guard.taint import LOCAL, SECRET, UNKNOWN, is_known

_GONE = frozenset(("delete", "archive", "unarchive", "transfer"))
_GH: dict[str, frozenset[str]] = {
    "pr": frozenset(("merge", "close", "lock")),
    "mr": frozenset(("merge", "close", "delete")),
    "repo": frozenset(("delete", "archive", "unarchive", "rename", "edit", "transfer", "sync", "deploy-key")),
    "release": frozenset(("create", "delete", "upload", "edit", "delete-asset")),
    "issue": frozenset(("delete", "transfer", "lock")),
    "secret": frozenset(("set", "delete", "remove")),
    "variable": frozenset(("set", "delete", "remove")),
    "workflow": frozenset(("disable", "run")),
    "run": frozenset(("delete", "cancel")),
    "cache": frozenset(("delete",)),
    "codespace": frozenset(("delete", "ssh")),
    "project": frozenset(("delete", "close")),
    "label": frozenset(("delete",)),
    "ssh-key": frozenset(("add", "delete")),
    "gpg-key": frozenset(("add", "delete")),
    "gist": frozenset(("delete",)),
    "extension": frozenset(("install",)),
    "auth": frozenset(("logout", "refresh", "setup-git")),
    "ruleset": frozenset(("delete",)),
}
_CATEGORY = {
    "pr": "git-merge",
    "mr": "git-merge",
    "release": "publishing",
    "ssh-key": "persistence",
    "gpg-key": "persistence",
    "extension": "remote-code",
}


def forge(call: Invocation) -> str | None:
    """gh and glab."""
    options = Options(
        call.args, "RbtFfXHqlaBcT", ("--repo", "--body", "--title", "--method", "--field", "--header", "--jq")
    )
    words = options.rest
    if not words:
        return None
    if words[0] == "api":
        return _api(call, options)
    if any(SECRET in value for name, value in options.values if name not in ("-H", "--header")):
        call.deny("exfiltration", "This publishes secrets")
    if words[:2] == ["auth", "token"]:
        return UNKNOWN + SECRET
    if words[:2] == ["gist", "create"]:
        if SECRET in call.stdin or any(effects.is_secret(call.shell, path) for path in words[2:]):
            call.deny("exfiltration", "This publishes secrets")
        return None
    if len(words) > 1 and words[1] in _GH.get(words[0], _GONE):
        call.deny(_CATEGORY.get(words[0], "cloud"), "This changes the project for everyone")
    return None


def _api(call: Invocation, options: Options) -> str | None:
    method = (options.value("-X", "--method") or "").upper()
    path = options.rest[1] if len(options.rest) > 1 else ""
    if method in ("DELETE", "PUT") or (path.endswith(("/merge", "/merges")) and method != "GET"):
        call.deny("cloud", "This changes the project for everyone")
    query = " ".join([*options.all("-f", "-F", "--field", "--raw-field"), call.stdin])
    if path == "graphql" and "mutation" in query and ("delete" in query.lower() or "merge" in query.lower()):
        call.deny("cloud", "This changes the project for everyone")
    return None


def other(call: Invocation) -> str | None:
    """hg, svn, jj, sapling, graphite."""
    words = call.options().rest
    text = " ".join(words)
    if "--dry-run" in call.args:
        return None
    if text.startswith(("push", "git push", "submit", "stack submit", "ss ", "dcommit")) or words[:1] == ["ss"]:
        call.deny("git-push")
    if call.name == "svn" and words[:1] and words[0] in ("commit", "ci", "import"):
        call.deny("git-push")
    if call.name == "svn" and words[:1] == ["revert"] and ("." in words or "-R" in call.args):
        call.deny("git-history", "This discards the changes of a whole tree")
    if (words[:1] and words[0] in ("strip", "hide", "purge", "abandon")) or text.startswith(
        ("op restore", "op undo", "update --clean")
    ):
        call.deny("git-history")
    if (
        call.name == "hg"
        and words[:1] in (["update"], ["up"], ["revert"])
        and {"-C", "--clean", "--all", "-a"} & set(call.args)
    ):
        call.deny("git-history", "This discards the changes of a whole tree")
    return None


def rewrites(call: Invocation) -> str | None:
    call.deny("git-history", "This rewrites history")
    return None


_PROGRAMS = wordlist(
    """
    core.pager core.editor core.sshcommand core.fsmonitor core.askpass core.gitproxy sequence.editor diff.external
    credential.helper gpg.program init.templatedir uploadpack.packobjectshook
    """
)
_READS = ("--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch", "--show-origin", "--name-only")


def judge_setting(call: Invocation, key: str, value: str, lasts: bool) -> None:
    """`lasts`: written to a file, not only for this one command."""
    key = key.lower()
    if key == "core.hookspath" and not value.startswith((".husky", ".githooks")):
        call.deny("tampering", "This makes git use other hooks or none")
    if key.startswith("alias."):
        command = value[1:] if value.startswith("!") else f"git {value}"
        call.run_text(command)
    elif (
        key.startswith("pager.")
        or key in _PROGRAMS
        or key.endswith((".cmd", ".clean", ".smudge", ".textconv", ".helper"))
    ):
        if is_known(value) and (" " in value or "!" in value or "/" in value):
            call.run_text(value.lstrip("!"))
    elif key.startswith("core.") and key.endswith("command"):
        call.run_text(value)
    elif key == "protocol.ext.allow" and value == "always":
        call.deny("remote-code", "This lets a repository URL run commands")


def configure(call: Invocation, args: list[str]) -> str | None:
    options = Options(args, "f", ("--file", "--blob", "--type", "--default"))
    rest = options.rest
    if rest[:1] == ["set"] and len(rest) > 2:
        rest = rest[1:]
    if options.has(*_READS) or rest[:1] in (["get"], ["list"]):
        return UNKNOWN
    if options.has("-e", "--edit") or rest[:1] == ["edit"]:
        return UNKNOWN
    if rest and (options.has("--unset", "--unset-all", "--remove-section") or rest[0] in ("unset", "remove-section")):
        if any(word.lower() == "core.hookspath" for word in rest):
            call.deny("tampering", "This makes git use other hooks")
        return UNKNOWN
    if len(rest) > 1:
        judge_setting(call, rest[0], rest[1], lasts=True)
        if rest[0].lower().startswith("alias."):
            call.shell.vars["git:" + rest[0]] = [rest[1]]
    return UNKNOWN


_REF = "ref: refs/heads/"


def current_branch(call: Invocation) -> str:
    """Empty if unknown: a detached HEAD, no repository."""
    return call.shell.branch or branch_in(_folder(call))


def branch_in(folder: str) -> str:
    while folder not in ("", "/"):
        head = _first_line(f"{folder}/.git/HEAD")
        if not head and (link := _first_line(f"{folder}/.git")).startswith("gitdir: "):
            head = _first_line(f"{os.path.join(folder, link[8:])}/HEAD")  # a worktree has a file in place of the folder
        if head:
            return head[len(_REF) :] if head.startswith(_REF) else ""
        folder = os.path.dirname(folder)
    return ""


def _folder(call: Invocation) -> str:
    """Where git runs: the shell's folder, followed by every `-C`."""
    folder = call.shell.cwd
    for option, value in zip(call.args, call.args[1:], strict=False):
        if option == "-C":
            folder = os.path.normpath(os.path.join(folder, value))
    return folder


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline(4096).strip()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return ""


def list_files(call: Invocation, args: list[str]) -> str:
    """The listed files are what a following `xargs rm` deletes."""
    words = [arg for arg in args if not arg.startswith("-")]
    return "".join(f"{LOCAL}/{word.strip('*')}\n" for word in words) or "*\n"


def changed_files(call: Invocation, args: list[str]) -> str | None:
    """Every command that shows a diff can write it to a file."""
    _write(call, Options(args, "", ("--output",)).all("--output"))
    return LOCAL + "\n" if "--name-only" in args else None


def patches(call: Invocation, args: list[str]) -> None:
    options = Options(args, "o", ("--output-directory", "--output"))
    _write(call, options.all("-o", "--output-directory", "--output"))


def archive(call: Invocation, args: list[str]) -> None:
    options = Options(args, "o", ("--output", "--exec", "--remote", "--prefix", "--format"))
    for program in options.all("--exec"):
        call.run_text(program)
    _write(call, options.all("-o", "--output"))


def bundle(call: Invocation, args: list[str]) -> None:
    if args[:1] == ["create"]:
        words = [arg for arg in args[1:] if not arg.startswith("-")]
        _write(call, [word for word in words[:1] if word != "-"])


def _write(call: Invocation, paths: list[str]) -> None:
    for path in paths:
        effects.write(call.shell, path, call.argv)


MAIN = frozenset(("main", "master", "trunk", "production", "prod", "release"))
_GLOBAL_VALUED = ("--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix")


def git(call: Invocation) -> str | None:
    args, aliases = _after_global(call)
    if call.name.startswith("git-"):
        args = [call.name[4:], *args]
    if not args:
        return None
    name = args[0]
    if name in aliases:
        return _alias(call, aliases[name], args[1:])
    if "-h" in args[1:2] or name == "help":
        return UNKNOWN
    judge = _COMMANDS.get(name)
    return judge(call, args[1:]) if judge is not None else None


def _after_global(call: Invocation) -> tuple[list[str], dict[str, str]]:
    """The subcommand and its arguments; `-c` settings are judged along the way."""
    args = call.args
    aliases: dict[str, str] = {}
    while args and args[0].startswith("-"):
        option = args[0]
        if option in ("-c", "--config-env") and len(args) > 1:
            key, _, value = args[1].partition("=")
            judge_setting(call, key, value, lasts=False)
            if key.lower().startswith("alias."):
                aliases[key[6:]] = value
            args = args[2:]
        elif option == "-C" or option in _GLOBAL_VALUED:
            args = args[2:]
        else:
            args = args[1:]
    return args, {**_configured(call), **aliases}


def _configured(call: Invocation) -> dict[str, str]:
    """Aliases that the command itself set before."""
    return {key[10:]: values[0] for key, values in call.shell.vars.items() if key.startswith("git:alias.")}


def _alias(call: Invocation, value: str, rest: list[str]) -> str:
    if value.startswith("!"):
        return call.run_text(" ".join([value[1:], *rest]))
    return call.run(["git", *value.split(), *rest])


def push(call: Invocation, args: list[str]) -> None:
    options = Options(args, "o", ("--repo", "--push-option", "--receive-pack", "--exec"))
    for program in options.all("--receive-pack", "--exec"):
        call.run_text(program)
    if options.has("--dry-run", "-n"):
        return
    forced = options.has("--force", "-f", "--mirror", "--delete", "-d", "--prune", "--force-with-lease") or any(
        word.startswith(("+", ":")) for word in options.rest
    )
    if forced:
        call.deny("git-history", "This overwrites or deletes content of another repository")
    else:
        call.deny("git-push")


def reset(call: Invocation, args: list[str]) -> None:
    options = Options(args)
    if options.has("--hard", "--merge"):
        call.deny("git-history", "This discards uncommitted changes")


def clean(call: Invocation, args: list[str]) -> None:
    options = Options(args, "e", ("--exclude",))
    forced = options.has("-f", "--force") or any(
        "requireforce=false" in arg.lower().replace(" ", "") for arg in call.args
    )
    if forced and not options.has("-n", "--dry-run"):
        call.deny("git-history", "This deletes untracked files")


def checkout(call: Invocation, args: list[str]) -> None:
    options = Options(args, "bB", ("--orphan", "--conflict", "--pathspec-from-file"))
    words = [word for word in options.rest if word not in options.after]
    if options.has("-f", "--force"):
        call.deny("git-history", "This discards uncommitted changes")
    if options.has("--pathspec-from-file") or any(_is_tree(path) for path in (options.after or words)):
        call.deny("git-history", "This discards the changes of a whole tree")
    _judge_own(call, options.after or words[1:])
    if options.has("-B") and (options.value("-B") or "") in MAIN:
        call.deny("git-history", "This moves a main branch")
    if new := options.value("-b", "-B", "--orphan"):
        call.shell.branch = new
    elif len(words) == 1 and not options.after:
        call.shell.branch = words[0]


def _judge_own(call: Invocation, paths: list[str]) -> None:
    """Restoring an older version of the agent's settings changes them."""
    for path in paths:
        if call.shell.locate(path).kind == at.OWN:
            effects.write(call.shell, path, call.argv)


def switch(call: Invocation, args: list[str]) -> None:
    options = Options(args, "cC", ("--create", "--force-create", "--orphan"))
    if options.has("-f", "--force", "--discard-changes"):
        call.deny("git-history", "This discards uncommitted changes")
    new = options.value("-c", "-C", "--create", "--force-create", "--orphan")
    if options.has("-C", "--force-create") and new in MAIN:
        call.deny("git-history", "This moves a main branch")
    call.shell.branch = new or (options.rest[0] if options.rest else "")


def restore(call: Invocation, args: list[str]) -> None:
    options = Options(args, "s", ("--source", "--pathspec-from-file"))
    if options.has("--staged", "-S") and not options.has("--worktree", "-W"):
        return
    _judge_own(call, options.rest)
    if options.has("--pathspec-from-file") or any(_is_tree(path) for path in options.rest):
        call.deny("git-history", "This discards the changes of a whole tree")


def _is_tree(path: str) -> bool:
    """Not a single file: the root, a folder, or a pattern that matches everything."""
    if path in (".", "./", ":/", "/", "..", "../", ":", "-A", "*", "**", ":(top)", "./*") or LOCAL in path:
        return True
    last = path.rstrip("/").rpartition("/")[2]
    return path.endswith("/") or takes_everything(last) or (path.startswith(("*", ":")) and "/" not in path)


def branch(call: Invocation, args: list[str]) -> None:
    options = Options(args, "u", ("--set-upstream-to", "--contains", "--merged", "--no-merged", "--sort", "--format"))
    if options.has("-D") or (options.has("-d", "--delete") and options.has("-f", "--force")):
        call.deny("git-history", "This deletes a branch, even if it is not merged")
    elif options.has("-f", "--force") and options.rest:
        call.deny("git-history", "This moves a branch")
    elif options.has("-d", "--delete") and any(name in MAIN for name in options.rest):
        call.deny("git-history", "This deletes a main branch")


def reflog(call: Invocation, args: list[str]) -> None:
    if args[:1] in (["expire"], ["delete"]) and "--dry-run" not in args and "-n" not in args:
        call.deny("git-history", "This deletes the reflog")


def collect(call: Invocation, args: list[str]) -> None:
    prune = [arg for arg in args if arg.startswith("--prune")]
    if any(arg not in ("--prune=never", "--prune=2.weeks.ago") for arg in prune):
        call.deny("git-history", "This deletes unreachable commits")


def prune(call: Invocation, args: list[str]) -> None:
    if "-n" not in args and "--dry-run" not in args:
        call.deny("git-history", "This deletes unreachable commits")


def rewrite(call: Invocation, args: list[str]) -> None:
    if not {"--analyze", "--dry-run"} & set(args):
        call.deny("git-history", "This rewrites history")


def stash(call: Invocation, args: list[str]) -> None:
    if args[:1] in (["drop"], ["clear"]):
        call.deny("git-history", "This deletes stashed changes")
    if args[:1] == ["show"]:
        changed_files(call, args)


def update_ref(call: Invocation, args: list[str]) -> None:
    options = Options(args, "m")
    if options.has("-d", "--stdin") or (options.rest and options.rest[0].startswith(("refs/heads/", "HEAD"))):
        call.deny("git-history", "This deletes or moves a ref")


def symbolic_ref(call: Invocation, args: list[str]) -> None:
    if "-d" in args or "--delete" in args:
        call.deny("git-history", "This deletes a ref")


def merge(call: Invocation, args: list[str]) -> None:
    options = Options(args, "mFsXS", ("--into-name", "--strategy", "--strategy-option", "--file"))
    if options.has("--abort", "--continue", "--quit"):
        return
    branch = current_branch(call)
    own = {f"{remote}/{branch}" for remote in ("origin", "upstream")} | {"FETCH_HEAD", "@{u}", "@{upstream}"}
    if branch in MAIN and not set(options.rest) <= own:
        call.deny("git-merge", f"This merges into {branch}")


def rebase(call: Invocation, args: list[str]) -> None:
    options = Options(args, "xsXC", ("--exec", "--onto", "--strategy", "--strategy-option"))
    for command in options.all("-x", "--exec"):
        call.run_text(command)
    if options.has("--abort", "--continue", "--skip", "--quit"):
        return
    if len(options.rest) > 1 and options.rest[1] in MAIN:
        call.deny("git-history", f"This rewrites {options.rest[1]}")
    if call.shell.branch in MAIN and not any(word.startswith(("origin", "upstream")) for word in options.rest):
        call.deny("git-history", f"This rewrites {call.shell.branch}")


def pull(call: Invocation, args: list[str]) -> None:
    options = Options(args, "sX", ("--upload-pack",))
    for program in options.all("--upload-pack"):
        call.run_text(program)
    branch = current_branch(call)
    if branch in MAIN and len(options.rest) > 1 and options.rest[1] != branch:
        call.deny("git-merge", f"This merges into {branch}")


def fetch(call: Invocation, args: list[str]) -> None:
    options = Options(args, "", ("--upload-pack", "--depth", "--deepen", "--shallow-since"))
    for program in options.all("--upload-pack"):
        call.run_text(program)
    source = options.rest[0] if options.rest else ""
    for spec in options.rest[1:]:
        target = spec.partition(":")[2].removeprefix("refs/heads/")
        if target in MAIN and (source in (".", "./") or spec.startswith("+")):
            call.deny("git-merge", f"This moves {target} to other commits")


def remove(call: Invocation, args: list[str]) -> None:
    options = Options(args, "", ("--pathspec-from-file",))
    if options.has("--cached", "-n", "--dry-run"):
        return
    for path in options.rest:
        if _is_tree(path) and path.rstrip("/*") in ("", ".", ":", "..", ":("):
            call.deny("destruction", "This deletes everything in the workspace")
        effects.delete(call.shell, path, call.argv, options.has("-r"))


def commit(call: Invocation, args: list[str]) -> None:
    options = Options(args, "mFCct", ("--message", "--file", "--author", "--date", "--template", "--fixup", "--squash"))
    if options.has("--no-verify", "-n"):
        call.deny("tampering", "This skips the project's commit hooks")


def tag(call: Invocation, args: list[str]) -> None:
    options = Options(args, "mFu", ("--message", "--file", "--sort", "--format", "--contains", "--points-at"))
    if options.has("-d", "--delete", "-f", "--force"):
        call.deny("git-history", "This deletes or moves a tag")


def worktree(call: Invocation, args: list[str]) -> None:
    if args[:1] == ["remove"] and {"-f", "--force", "-ff"} & set(args):
        call.deny("git-history", "This deletes a worktree with uncommitted changes")


def submodule(call: Invocation, args: list[str]) -> None:
    words = [arg for arg in args if not arg.startswith("-")]
    if words[:1] == ["foreach"]:
        call.run_text(
            " ".join(arg for arg in args[args.index("foreach") + 1 :] if arg not in ("--recursive", "--quiet"))
        )
    if words[:1] == ["deinit"] and {"-f", "--force"} & set(args):
        call.deny("git-history", "This deletes submodules with uncommitted changes")


def bisect(call: Invocation, args: list[str]) -> None:
    if args[:1] == ["run"]:
        call.run(args[1:])


def show_programs(call: Invocation, args: list[str]) -> None:
    """Options that name a program to run."""
    for name, value in Options(args, "Ox", ("--extcmd", "--open-files-in-pager", "--upload-pack", "--exec")).values:
        if name in ("-O", "-x", "--extcmd", "--open-files-in-pager", "--upload-pack", "--exec"):
            call.run_text(value)


def clone(call: Invocation, args: list[str]) -> None:
    options = Options(args, "bcouj", ("--branch", "--config", "--upload-pack", "--origin", "--depth", "--template"))
    for program in options.all("-u", "--upload-pack"):
        call.run_text(program)
    for setting in options.all("-c", "--config"):
        key, _, value = setting.partition("=")
        judge_setting(call, key, value, lasts=False)
    for word in options.rest:
        if word.startswith("ext::"):
            call.run_text(word[5:])


def remote(call: Invocation, args: list[str]) -> None:
    for word in args:
        if word.startswith("ext::"):
            call.run_text(word[5:])


def read_tree(call: Invocation, args: list[str]) -> None:
    options = Options(args)
    if options.has("--reset"):
        call.deny("git-history", "This discards the changes of a whole tree")


def checkout_index(call: Invocation, args: list[str]) -> None:
    options = Options(args)
    if options.has("-a", "--all") and options.has("-f", "--force"):
        call.deny("git-history", "This discards the changes of a whole tree")


def credential(call: Invocation, args: list[str]) -> str:
    return UNKNOWN + SECRET


def top(call: Invocation, args: list[str]) -> str | None:
    if "--show-toplevel" in args:
        return call.shell.places.workspace + "\n"
    if "--git-dir" in args or "--git-common-dir" in args or "--absolute-git-dir" in args:
        return call.shell.places.workspace + "/.git\n"
    return None


def other_push(call: Invocation, args: list[str]) -> None:
    if args[:1] in (["push"], ["dcommit"], ["submit"]) and "--dry-run" not in args:
        call.deny("git-push")
    if args[:1] == ["prune"] and "--dry-run" not in args and "-d" not in args:
        call.deny("git-history", "This deletes objects from git's storage")


def send(call: Invocation, args: list[str]) -> None:
    if "--dry-run" not in args:
        call.deny("git-push", "This sends commits by email")


def flow(call: Invocation, args: list[str]) -> None:
    if len(args) > 1 and args[1] in ("finish", "publish", "release"):
        call.deny("git-merge")


_COMMANDS = {
    "push": push,
    "reset": reset,
    "clean": clean,
    "checkout": checkout,
    "co": checkout,
    "switch": switch,
    "restore": restore,
    "branch": branch,
    "reflog": reflog,
    "gc": collect,
    "prune": prune,
    "filter-branch": rewrite,
    "filter-repo": rewrite,
    "stash": stash,
    "update-ref": update_ref,
    "symbolic-ref": symbolic_ref,
    "merge": merge,
    "rebase": rebase,
    "pull": pull,
    "fetch": fetch,
    "rm": remove,
    "commit": commit,
    "tag": tag,
    "worktree": worktree,
    "submodule": submodule,
    "bisect": bisect,
    "config": configure,
    "grep": show_programs,
    "difftool": show_programs,
    "archive": archive,
    "ls-remote": show_programs,
    "clone": clone,
    "remote": remote,
    "read-tree": read_tree,
    "checkout-index": checkout_index,
    "ls-files": list_files,
    "format-patch": patches,
    "bundle": bundle,
    "credential": credential,
    "rev-parse": top,
    "send-pack": send,
    "send-email": send,
    "http-push": send,
    "flow": flow,
    **dict.fromkeys(
        ("diff", "log", "show", "whatchanged", "range-diff", "diff-tree", "diff-index", "diff-files"),
        changed_files,
    ),
    **dict.fromkeys(("svn", "lfs", "subtree", "p4", "annex"), other_push),
}


JUDGES = {
    "git": git,
    "git-filter-repo": git,
    "hub": git,
    "tig": git,
    "*": git,
    "gh": forge,
    "glab": forge,
    "hg": other,
    "svn": other,
    "jj": other,
    "sl": other,
    "gt": other,
    "bfg": rewrites,
}
