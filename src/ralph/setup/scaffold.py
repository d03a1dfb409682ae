"""`ralph init`: the first files of a plan, in any layout. Existing files are kept."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.config.editing import assign, target
from ralph.config.layers import Kind, load
from ralph.config.trust import Status, check_trust
from ralph.core.errors import BadData, RalphError, UsageError
from ralph.core.names import plain_path, prd_number, safe_name
from ralph.core.plan import Plan
from ralph.core.ports import Layout, Naming, PlanRef, ProjectFacts
from ralph.core.text import one_line
from ralph.host.files import read_bytes
from ralph.plans.fresh import compose
from ralph.plans.registry import LAYOUTS, detect, layout, plan_in, traits
from ralph.prompts.session import SETUP
from ralph.prompts.templates import library, render
from ralph.setup.first_config import first_config
from ralph.setup.project_files import RealTree
from ralph.setup.repository import CACHES_TITLE, ignore_lines, usual_cache_lines, with_lines
from ralph.setup.toolchain import ProposedCheck, Toolchain, find
from ralph.setup.write_files import Existing, NewFile, Placed, check_inside, place
from ralph.state.locks import claim
from ralph.state.places import home
from ralph.workspace.archives import archives
from ralph.workspace.find import find_root, repository_of
from ralph.workspace.trust import gather, is_inside_loop, read_record, refuse_inside_loop, write_trust

CONFIG = ".ralph/config.yaml"
DEFAULT_LAYOUT = "tasks.json"

_NAMELESS = "feature"
NOT_SEEN = "the commands of this plan are not trusted yet: review and trust them with `ralph trust`"


class Request(Struct, frozen=True, kw_only=True):
    """What to create."""

    root: Path
    layout: str = DEFAULT_LAYOUT
    name: str = ""
    ralph_dir: str = ""
    force: bool = False
    checks: bool = True
    tdd: bool = False
    now: float = 0.0
    plan: Plan | None = None
    """The content of the plan, instead of an example."""
    phases: Mapping[str, str] = {}
    """Story → its phase."""
    exact: bool = False
    """The plan is complete, so nothing is proposed for what it leaves out."""
    is_foreign: bool = False
    """The plan's commands come from elsewhere: the user has to trust them first."""
    contents: dict[str, bytes] = {}
    """Files with given content, by path in the workspace: a plan with stories, a requirements page."""
    toolchain: Toolchain | None = None
    """The project's commands, if already detected; None: detect them."""
    trust: bool = True
    """The user has seen the commands that are written."""
    settings: Mapping[str, str] = {}
    """Keys of `.ralph/config.yaml` → values, as `ralph config set` takes them."""
    branch_prefix: str = ""
    """The prefix of the plan's branch; empty: the layout's default."""
    caches: tuple[str, ...] = ()
    """More lines for `.gitignore`."""


class Started(Struct, frozen=True):
    """What `start_plan` did."""

    ref: PlanRef
    placed: Placed
    checks: tuple[ProposedCheck, ...] = ()
    checks_in: str = ""
    """The file the checks were written to; empty if they are only proposed, because that file was kept."""
    ignored: tuple[str, ...] = ()
    """Lines added to `.gitignore`."""
    is_repository: bool = False
    warnings: tuple[str, ...] = ()


def start_plan(request: Request, env: Mapping[str, str]) -> Started:
    ref = refer(request)
    refuse_two_plans_in_one_folder(ref)
    if request.force:
        refuse_inside_loop(env, "recreate its plan")
        with claim(ref, env, "init"):
            return _start(ref, request, env)
    return _start(ref, request, env)


def _start(ref: PlanRef, request: Request, env: Mapping[str, str]) -> Started:
    toolchain = request.toolchain or (find(RealTree(ref.root)) if request.checks else Toolchain())
    files = [file for file in fresh_files(ref, request, toolchain) if file.path not in request.contents]
    files += [NewFile(path, data, Existing.REPLACE) for path, data in request.contents.items()]
    foreign_config = bool(request.settings) and (ref.root / CONFIG).exists() and not _is_trusted(ref, env)
    usual = [line for line in usual_cache_lines(ref.root) if f"{line.split('/')[-2]}/" not in request.caches]
    ignore, ignored, warning = ignore_file(ref, env, (*request.caches, *usual))
    has_plan = ref.path.exists() and not request.force
    placed = place(ref.root, [*files, _config(ref, request, toolchain, env), *ignore], request.now)
    own = [path for path in placed.touched if not (request.is_foreign and ref.root / path == ref.path)]
    if foreign_config:  # a key was set in it; its other commands are not trusted
        own = [path for path in own if path != CONFIG]
    untrusted = trust_own(ref, own, env) if request.trust else NOT_SEEN
    checks_in = "" if has_plan and traits(ref.layout).keeps_checks else _checks_in(ref, placed)
    return Started(
        ref=ref,
        placed=placed,
        checks=toolchain.checks if checks_in else _not_named_yet(ref, toolchain.checks),
        checks_in=checks_in,
        ignored=ignored,
        is_repository=repository_of(ref.root, env) is not None,
        warnings=tuple(text for text in (*toolchain.warnings, warning, untrusted) if text),
    )


def _config(ref: PlanRef, request: Request, toolchain: Toolchain, env: Mapping[str, str]) -> NewFile:
    text = first_config(ref, toolchain, in_plan=traits(ref.layout).keeps_checks)
    existing = Existing.KEEP
    if (ref.root / CONFIG).is_file() and request.settings:
        text, existing = read_bytes(ref.root / CONFIG, within=ref.root).decode("utf-8-sig"), Existing.REPLACE
    for key, value in request.settings.items():
        text = assign(text, CONFIG, target(key), value, env)
    return NewFile(CONFIG, text.encode(), existing)


def choose_layout(root: Path, wanted: str | None, env: Mapping[str, str]) -> tuple[str, str]:
    """The layout of a new plan and its source: the command line, the settings, or the existing plans."""
    if wanted:
        return wanted, ""
    settings = load(root=root, layout="", name=None, env=env, flags={})
    if settings.config.layout != "auto":
        return settings.config.layout, str(settings.origin("layout"))
    used = {ref.layout for ref in detect(root, LAYOUTS.names())[0]}
    if len(used) == 1:
        return used.pop(), "the plans of this workspace"
    return DEFAULT_LAYOUT, ""


def branch_prefix(root: Path, name: str, env: Mapping[str, str]) -> str:
    """`branch.prefix`, if it is set."""
    settings = load(root=root, layout=name, name=None, env=env, flags={})
    return settings.config.branch.prefix if settings.origin("branch.prefix").kind is not Kind.DEFAULT else ""


def _is_trusted(ref: PlanRef, env: Mapping[str, str]) -> bool:
    """Whether all commands of the settings are trusted, or there are none."""
    settings = load(root=ref.root, layout=ref.layout, name=None, env=env, flags={})
    commands = gather(ref.root, settings, [])
    return not commands or check_trust(read_record(ref.root, env), commands).status is Status.TRUSTED


def trust_own(ref: PlanRef, written: Collection[str], env: Mapping[str, str]) -> str:
    """Trust the commands in the files just written, and no others. Returns the reason if that is not possible."""
    if is_inside_loop(env):
        return "written inside a loop, so its commands are not trusted until you run `ralph trust`"
    try:
        settings = load(root=ref.root, layout=ref.layout, name=None, env=env, flags={})
        plan = layout(ref.layout).parse(read_bytes(ref.path, within=ref.root), str(ref.path))
        commands = gather(ref.root, settings, [(ref.path, plan)])
    except RalphError as error:
        return f"the commands are not trusted yet: {error}"
    own = tuple(command for command in commands if command.source in written)
    if own:
        write_trust(ref.root, own, env)
    return ""


def refer(request: Request) -> PlanRef:
    """The requested plan, with a name that cannot leave its folder."""
    known = layout(request.layout)
    root = request.root
    if request.ralph_dir:
        if not traits(request.layout).any_folder:
            raise UsageError(
                f"--ralph-dir is only for the layout tasks.json, not for {request.layout}",
                hint="omit it, or use --layout tasks.json",
            )
        if request.name:
            safe_name(request.name)
        return _in_ralph_dir(root, request.ralph_dir)
    naming = traits(request.layout).naming
    if naming is Naming.NUMBERED:
        return known.refer(root, str(_number(root, request.name)))
    if request.name:
        safe_name(request.name)
    if naming is Naming.SINGLE:
        return known.refer(root, "")
    if request.name:
        return known.refer(root, request.name)
    try:
        return known.refer(root, folder_name(root))
    except UsageError:  # a folder name that means something else in .ralph/
        return known.refer(root, _NAMELESS)


def _in_ralph_dir(root: Path, given: str) -> PlanRef:
    relative = os.path.normpath(plain_path(given, "the folder"))
    if Path(relative).is_absolute():
        relative = os.path.relpath(relative, root)
    if relative == "." or Path(relative).parts[0] == "..":
        raise UsageError(f"{one_line(given)} is not a folder inside {root}", hint="use a name such as ralph")
    folder = check_inside(root, relative)
    return plan_in(root, folder)


def _number(root: Path, name: str) -> int:
    if not name:
        return _next_number(root)
    try:
        return prd_number(name)
    except UsageError as error:
        hint = f"a PRD has a number, not a name: `ralph init {_next_number(root)} --layout plan.md`"
        raise UsageError(error.message, hint=hint) from None


def _next_number(root: Path) -> int:
    """A number that no PRD has, current or archived."""
    folders = [path.name for path in (root / ".ralph").glob("PRD-*")]
    folders += [Path(one.manifest.folder).name for one in archives(root) if one.manifest]
    numbers = [int(found[1]) for name in folders if (found := re.fullmatch(r"PRD-([1-9][0-9]{0,8})", name))]
    return max(numbers, default=0) + 1


def folder_name(root: Path) -> str:
    """The project folder's name, turned into a valid plan name."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", root.name).strip("-._")[:60].rstrip("-._")
    try:
        return safe_name(slug)
    except UsageError:
        return _NAMELESS


def fresh_files(ref: PlanRef, request: Request, toolchain: Toolchain) -> list[NewFile]:
    """The files of a new plan: the plan, the requirements, the prompts."""
    known = layout(ref.layout)
    own = traits(ref.layout)
    title = request.name if request.name and own.naming is not Naming.NUMBERED else folder_name(ref.root)
    facts = ProjectFacts(
        name=title,
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(request.now)),
        verify=tuple(check.line for check in toolchain.checks) if own.keeps_checks else (),
        branch=f"{request.branch_prefix}{ref.name}" if request.branch_prefix else "",
    )
    log = known.locations(ref).progress
    texts = {log.relative_to(ref.root).as_posix(): f"# Progress: {title}\n\nStarted: {facts.date}\n"} if log else {}
    texts |= {**known.scaffold(ref, facts), **_documents(ref, known, title, request.tdd)}
    if request.plan is not None:
        plan = compose(request.plan, known, ref, facts, phases=request.phases, exact=request.exact)
        texts[ref.path.relative_to(ref.root).as_posix()] = plan.source.decode()
    existing = Existing.BACK_UP if request.force else Existing.KEEP
    return [NewFile(path, text.encode(), existing) for path, text in texts.items()]


def _documents(ref: PlanRef, known: Layout, title: str, tdd: bool) -> dict[str, str]:
    where = known.locations(ref)
    texts: dict[str, str] = {}

    def put(path: Path | None, text: str) -> None:
        if path is not None:
            texts[path.relative_to(ref.root).as_posix()] = text

    own = traits(ref.layout)
    document = own.templates.requirements
    put(where.requirements, render(library(document), {"PROJECT_NAME": title}, f"{document}.md"))
    if template := (tdd and own.templates.tdd) or own.templates.prompt:
        put(where.prompt, library(template))
    if own.has_pipeline and where.prompt is not None:
        put(where.prompt.with_name("SETUP_PROMPT.md"), library(SETUP))
    if where.specs is not None:
        put(where.specs / ".gitkeep", "")
    return texts


def _checks_in(ref: PlanRef, placed: Placed) -> str:
    if traits(ref.layout).keeps_checks:
        return ref.path.relative_to(ref.root).as_posix()
    return CONFIG if CONFIG in placed.touched or CONFIG in placed.same else ""


def _not_named_yet(ref: PlanRef, checks: tuple[ProposedCheck, ...]) -> tuple[ProposedCheck, ...]:
    """Checks that neither the plan nor the settings mention."""
    texts = []
    for path in (ref.path, ref.root / CONFIG):
        with contextlib.suppress(BadData):
            texts.append(read_bytes(path, within=ref.root).decode(errors="replace"))
    return tuple(check for check in checks if not any(check.command in text for text in texts))


def ignore_file(
    ref: PlanRef, env: Mapping[str, str], caches: tuple[str, ...] = ()
) -> tuple[list[NewFile], tuple[str, ...], str]:
    """The `.gitignore` with the missing lines, those lines, and a warning if it is left alone."""
    wanted = ignore_lines(ref.layout)
    repository = repository_of(ref.root, env)
    if repository is not None and repository.parent == ref.root:
        return [], (), ""  # the repository is nested in the workspace: git never sees .ralph/
    path = ref.root / ".gitignore"
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return [], (), f".gitignore is not a regular file and was left alone; add these lines: {', '.join(wanted)}"
    before = b""
    if path.exists():
        try:
            before = read_bytes(path, limit=1024 * 1024)
        except BadData as error:
            return [], (), f".gitignore was left alone: {error.message}"
    after = with_lines(with_lines(before, wanted), caches, CACHES_TITLE)
    if after == before:
        return [], (), ""
    added = tuple(line for line in (*wanted, *caches) if line.encode() in after[len(before) :].splitlines())
    return [NewFile(".gitignore", after, Existing.REPLACE)], added, ""


def refuse_two_plans_in_one_folder(ref: PlanRef, but: Path | None = None) -> None:
    """`but`: a plan that is about to be removed."""
    for other in detect(ref.root, LAYOUTS.names())[0]:
        if other.folder == ref.folder and other.path not in (ref.path, but):
            raise UsageError(
                f"{other.folder.relative_to(ref.root)} already has a plan in the layout {other.layout}",
                hint=f"use another name or `--layout {other.layout}`, or `ralph plan archive` it first",
            )


def choose_root(given: str | None, here: Path, env: Mapping[str, str]) -> Path:
    """Where a new plan goes: the given folder, else the workspace or repository around `here`, else `here`."""
    user_home = Path(os.path.realpath(home(env)))
    if given is not None:
        if not os.path.isdir(given):  # noqa: PTH112 - Path.is_dir fails on a name that is too long
            raise UsageError(f"{one_line(given, 80)} is not a folder", hint="create it first, or omit -d")
        root = Path(os.path.realpath(given))
    else:
        here = Path(os.path.realpath(here))
        above = [here, *here.parents]
        below_home = above[: above.index(user_home)] if user_home in above else above
        repository = next((folder for folder in below_home if (folder / ".git").exists()), None)
        root = find_root(here, env) or repository or here
    if root == user_home or root == Path(root.anchor):
        raise UsageError(f"{root} is not a project folder", hint="change to the project folder, or pass it with -d")
    return root
