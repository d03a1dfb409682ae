"""git: what destroys commits or uncommitted work, what leaves the repository, and what git is made to run."""

from ralph.hooks.guard import acts
from ralph.hooks.guard import places as at
from ralph.hooks.guard.globs import takes_everything
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import LOCAL, SECRET, UNKNOWN
from ralph.hooks.guard.options import Options
from ralph.hooks.guard.programs import git_files, git_settings
from ralph.hooks.guard.programs.git_head import current_branch

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
            git_settings.judge(call, key, value, lasts=False)
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
            acts.write(call.shell, path, call.argv)


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
        git_files.changed_files(call, args)


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
        acts.delete(call.shell, path, call.argv, options.has("-r"))


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


def configure(call: Invocation, args: list[str]) -> str | None:
    return git_settings.configure(call, args)


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
        git_settings.judge(call, key, value, lasts=False)
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
    "archive": git_files.archive,
    "ls-remote": show_programs,
    "clone": clone,
    "remote": remote,
    "read-tree": read_tree,
    "checkout-index": checkout_index,
    "ls-files": git_files.list_files,
    "format-patch": git_files.patches,
    "bundle": git_files.bundle,
    "credential": credential,
    "rev-parse": top,
    "send-pack": send,
    "send-email": send,
    "http-push": send,
    "flow": flow,
    **dict.fromkeys(
        ("diff", "log", "show", "whatchanged", "range-diff", "diff-tree", "diff-index", "diff-files"),
        git_files.changed_files,
    ),
    **dict.fromkeys(("svn", "lfs", "subtree", "p4", "annex"), other_push),
}

JUDGES = {"git": git, "git-filter-repo": git, "hub": git, "tig": git, "*": git}
