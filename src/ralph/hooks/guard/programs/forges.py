"""Other version control tools, and the GitHub and GitLab command lines."""

from ralph.hooks.guard import acts
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import SECRET, UNKNOWN
from ralph.hooks.guard.options import Options

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
        if SECRET in call.stdin or any(acts.is_secret(call.shell, path) for path in words[2:]):
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


JUDGES = {
    "gh": forge,
    "glab": forge,
    "hg": other,
    "svn": other,
    "jj": other,
    "sl": other,
    "gt": other,
    "bfg": rewrites,
}
