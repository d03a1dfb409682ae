"""The hub: a bare repository through which the machines of a cluster exchange commits.

Every attempt has a ref of its own, which is created once and never moved: a worker that was given up and comes back
cannot overwrite the work of another. A ref is deleted only when the run's own repository has its commit under a ref.

    refs/ralph/runs/RUN/base/OBJECT           commits and trees that workers start from
    refs/ralph/runs/RUN/attempt/NAME          what a worker finished
    refs/ralph/runs/RUN/rescue/WORKER/NAME    what a worker put aside
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError, UsageError
from ralph.host.files import make_folder
from ralph.host.git.command import Answer, GitFailed, ask, ask_plainly, git
from ralph.host.git.repo import Repo
from ralph.state.names import HUB
from ralph.state.places import workspace_state

_ROOT = "refs/ralph/runs"
_RESCUE = "refs/ralph/rescue/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_PATIENCE = 300.0
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.logAllRefUpdates": "false",
    "gc.auto": "0",
    "receive.autogc": "false",
    "receive.denyNonFastForwards": "true",
    "uploadpack.allowAnySHA1InWant": "true",
}


class Exists(SetupError):
    """The attempt is on the hub already, with another commit."""


class Hub(Struct, frozen=True):
    url: str

    @property
    def is_local(self) -> bool:
        return is_path(self.url)


def is_path(url: str) -> bool:
    """Whether git takes it for a folder: no scheme, and no `HOST:PATH`."""
    return "://" not in url and ":" not in url.partition("/")[0]


def open_hub(root: Path, setting: str, env: Mapping[str, str]) -> Hub:
    """The repository that the setting `hub` names, or one in the state folder of the workspace."""
    if setting.startswith("-"):
        raise UsageError(f"hub: {setting!r} is not a repository", hint="set it to the path or URL of a bare repository")
    if setting and not is_path(setting):
        return Hub(setting)
    folder = (root / Path(setting).expanduser()) if setting else workspace_state(root, env) / HUB
    if not (folder / "HEAD").exists():
        if setting and folder.exists() and any(folder.iterdir()):
            raise UsageError(f"hub: {folder} is not a bare git repository", hint="make one: `git init --bare FOLDER`")
        make_folder(folder, private=not setting)
        git(folder, "init", "--quiet", "--bare", "--template=")
        for name, value in _SETTINGS.items():
            git(folder, "config", name, value)
    return Hub(str(folder))


def base_ref(run: str, commit: str) -> str:
    return f"{_ROOT}/{_name(run)}/base/{_commit(commit)}"


def attempt_ref(run: str, name: str) -> str:
    return f"{_ROOT}/{_name(run)}/attempt/{_name(name)}"


def offer(repo: Repo, hub: Hub, run: str, commit: str) -> str:
    """Push a commit or a tree that workers start from. Returns its ref. It may be there already."""
    ref = base_ref(run, commit)
    answer = _ask(hub, repo.root, "push", "--quiet", "--no-verify", hub.url, f"{commit}:{ref}")
    if answer.code:
        raise _failed(hub, "push", answer)
    return ref


def publish(folder: Path, hub: Hub, run: str, name: str, commit: str) -> str:
    """Push what a worker finished, from its clone. Returns the ref. Raises Exists if another commit has this name."""
    ref = attempt_ref(run, name)
    lease = f"--force-with-lease={ref}:"  # nothing after the colon: it must not exist
    answer = _ask(hub, folder, "push", "--quiet", "--no-verify", lease, hub.url, f"{_commit(commit)}:{ref}")
    if answer.code == 0:
        return ref
    known = _refs(hub, folder, ref).get(ref)
    if known == commit:
        return ref  # by an earlier push whose answer was lost
    if known:
        raise Exists(f"attempt {name} of run {run} is on the hub already, as {known[:12]}")
    raise _failed(hub, "push", answer)


def published(hub: Hub, run: str, folder: Path) -> dict[str, str]:
    """The attempts of a run that are on the hub: name → commit."""
    prefix = f"{_ROOT}/{_name(run)}/attempt/"
    refs = _refs(hub, folder, f"{prefix}*")
    return {ref.removeprefix(prefix): commit for ref, commit in refs.items() if _NAME.fullmatch(ref[len(prefix) :])}


def fetch(repo: Repo, hub: Hub, ref: str, commit: str) -> None:
    """Bring a commit of the hub into the repository, under the same ref, so that it stays."""
    if not ref.startswith(f"{_ROOT}/"):
        raise SetupError(f"{ref} is not a ref of the hub")
    here = ask(repo, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if here.code == 0 and here.out.decode().strip() == commit:
        return
    answer = _ask(hub, repo.root, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", hub.url, f"{ref}:{ref}")
    if answer.code:
        raise _failed(hub, "fetch", answer)
    found = git(repo, "rev-parse", "--verify", f"{ref}^{{commit}}").decode().strip()
    if found != commit:
        raise SetupError(f"the hub has {found[:12]} as {ref}, not {commit[:12]}")


def drop(repo: Repo, hub: Hub, ref: str, commit: str) -> None:
    """Delete a ref whose commit the repository has under a ref of its own, unless it has moved."""
    if _is_reachable(repo, commit):
        _ask(hub, repo.root, "push", "--quiet", "--no-verify", f"--force-with-lease={ref}:{commit}", hub.url, f":{ref}")


def get(folder: Path, hub: Hub, run: str, wanted: str) -> None:
    """Bring a commit or a tree that the run offers into a worker's repository, unless it is there."""
    if ask(folder, "cat-file", "-e", _commit(wanted)).code == 0:
        return
    ref = base_ref(run, wanted)
    answer = _ask(hub, folder, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", hub.url, f"+{ref}:{ref}")
    if answer.code:
        raise _failed(hub, "fetch", answer)


def publish_rescue(folder: Path, hub: Hub, run: str, worker: str) -> None:
    there = f"{_ROOT}/{_name(run)}/rescue/{_name(worker)}/*"
    if ask(folder, "for-each-ref", "--count=1", _RESCUE).out.strip():
        answer = _ask(hub, folder, "push", "--quiet", "--no-verify", hub.url, f"{_RESCUE}*:{there}")
        if answer.code:
            raise _failed(hub, "push", answer)


def fetch_rescue(repo: Repo, hub: Hub, run: str, worker: str) -> None:
    refs = f"{_ROOT}/{_name(run)}/rescue/{_name(worker)}/*:{_RESCUE}*"
    answer = _ask(hub, repo.root, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", hub.url, refs)
    if answer.code:
        raise _failed(hub, "fetch", answer)


def runs(hub: Hub, folder: Path) -> tuple[str, ...]:
    """The runs that have attempts on the hub, oldest first."""
    found = (ref.removeprefix(f"{_ROOT}/").partition("/") for ref in _refs(hub, folder, f"{_ROOT}/*"))
    return tuple(sorted({run for run, _, rest in found if rest.startswith("attempt/")}))


def clean(repo: Repo, hub: Hub, run: str) -> tuple[str, ...]:
    """Delete the refs of an ended run from the hub, except those whose commit no ref of the repository reaches.

    What workers started from came from that repository. Returns the refs that stay. Each deletion is refused if the
    ref has moved since it was read.
    """
    refs = _refs(hub, repo.root, f"{_ROOT}/{_name(run)}/*")
    base = f"{_ROOT}/{run}/base/"
    safe = {ref: commit for ref, commit in refs.items() if ref.startswith(base) or _is_reachable(repo, commit)}
    if safe:
        leases = [f"--force-with-lease={ref}:{commit}" for ref, commit in safe.items()]
        deleted = _ask(hub, repo.root, "push", "--quiet", "--no-verify", *leases, hub.url, *(f":{ref}" for ref in safe))
        if deleted.code:
            return tuple(sorted(refs))
    return tuple(sorted(refs.keys() - safe.keys()))


def _is_reachable(repo: Repo, commit: str) -> bool:
    if ask(repo, "cat-file", "-e", f"{commit}^{{commit}}").code:
        return False
    return bool(ask(repo, "for-each-ref", "--count=1", "--contains", commit).out.strip())


def _refs(hub: Hub, folder: Path, *patterns: str) -> dict[str, str]:
    answer = _ask(hub, folder, "ls-remote", "--quiet", hub.url, *patterns)
    if answer.code:
        raise _failed(hub, "ls-remote", answer)
    rows = (line.split("\t", 1) for line in answer.out.decode(errors="replace").splitlines() if "\t" in line)
    return {ref: commit for commit, ref in rows}


def _ask(hub: Hub, folder: Path, *args: str) -> Answer:
    """A hub on another machine is reached with the user's own settings: keys, credential helpers, proxies."""
    if hub.is_local:
        return ask(folder, *args, timeout=_PATIENCE)
    return ask_plainly(folder, *args, timeout=_PATIENCE)


def _failed(hub: Hub, verb: str, answer: Answer) -> SetupError:
    if hub.is_local:
        return GitFailed((verb,), answer)
    return SetupError(
        f"git {verb} with the hub failed: {answer.complaint}",
        hint=f"the setting `hub` has to work on every machine; try `git ls-remote {_shown(hub.url)}` there",
    )


def _shown(url: str) -> str:
    """Without a password."""
    return re.sub(r"(://)[^/@]*@", r"\1", url)


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SetupError(f"{name!r} cannot be part of a ref")
    return name


def _commit(commit: str) -> str:
    if not _COMMIT.fullmatch(commit):
        raise SetupError(f"{commit!r} is not a commit")
    return commit
