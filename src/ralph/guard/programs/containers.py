"""Containers and clusters, as far as one rule a line does not suffice: what runs inside, and what that can reach."""

from ralph.guard.invocation import Invocation, Options, invoke, is_switched_off
from ralph.guard.patterns import wordlist
from ralph.guard.programs.rules import apply_rules
from ralph.guard.taint import EVERYONE, UNKNOWN

_GLOBAL = wordlist("--context --host --log-level --config --namespace --kubeconfig --cluster --user --server --token")
_RUN_VALUED = "aceghlmpuvw"
_RUN_LONG = wordlist(
    """
    --name --volume --env --env-file --network --net --publish --workdir --user --mount --pid --entrypoint --label
    --memory --cpus --platform --hostname --restart --add-host --cap-add --device --security-opt --userns --ipc --uts
    --tmpfs --ulimit --gpus --shm-size --link --volumes-from --pull --log-driver --dns --expose --health-cmd
    --stop-signal --cgroupns --index
    """
)
_MOUNTS_DENIED = ("/", "/etc", "/root", "/home", "/var", "/usr", "/boot", "/dev", "/sys", "/proc", "/var/run", "/run")


def docker(call: Invocation) -> str | None:
    words = Options(call.args, "Hcl", _GLOBAL, stops=True).rest
    if not words:
        return None
    if words[0] in ("container", "image") and len(words) > 1 and words[1] != "prune":
        words = ["rmi" if words[:2] == ["image", "rm"] else words[1], *words[2:]]
    name, rest = words[0], words[1:]
    if name in ("run", "create"):
        return _run(call, rest)
    if name == "exec":
        return _inside(call, Options(rest, "euw", _RUN_LONG, stops=True).rest[1:])
    if name == "cp":
        call.look(*rest[:1])
    if name == "compose":
        return _compose(call, rest)
    if name in ("rm", "rmi", "stop", "kill", "restart", "pause") and any(EVERYONE in word for word in rest):
        call.deny("containers", "This affects all containers or images, not only yours")
    if name in ("ps", "images", "ls"):  # `-aq` lists everything; with a filter it may list only the agent's own
        quiet = "--quiet" in rest or any(arg[:1] == "-" and arg[:2] != "--" and "q" in arg for arg in rest)
        narrowed = any(arg.startswith(("--filter", "-f")) or not arg.startswith("-") for arg in rest)
        return UNKNOWN if narrowed else EVERYONE if quiet else UNKNOWN + EVERYONE
    apply_rules(call, call.name, words)
    return None


def _run(call: Invocation, rest: list[str]) -> str | None:
    options = Options(rest, _RUN_VALUED, _RUN_LONG, stops=True)
    if options.has("--privileged"):
        call.deny("privilege", "This gives a container full privileges on the machine")
    for name, value in options.values:
        if name in ("--pid", "--userns", "--ipc", "--uts", "--cgroupns") and value == "host":
            call.deny("privilege", "This gives a container access to the machine")
        if name == "--cap-add" and value.upper() in ("ALL", "SYS_ADMIN", "SYS_PTRACE", "CAP_SYS_ADMIN", "SYS_MODULE"):
            call.deny("privilege", "This gives a container privileges on the machine")
        if name in ("-v", "--volume"):
            _judge_mount(call, value.split(":")[0])
        if name == "--mount":
            given = dict(part.split("=", 1) for part in value.split(",") if "=" in part)
            _judge_mount(call, given.get("source") or given.get("src") or "x")
        if name == "--device" and value.startswith("/dev/") and "video" not in value and "kvm" not in value:
            call.deny("devices", "This gives a container access to a device")
    entry = options.value("--entrypoint")
    command = [*([entry] if entry else []), *options.rest[1:]]
    inner = call.shell.elsewhere()
    for source, target in (value.split(":")[:2] for value in options.all("-v", "--volume") if ":" in value):
        if call.shell.full(source) == call.shell.places.workspace:
            inner.places = inner.places.moved(target)
            inner.cwd = options.value("-w", "--workdir") or target
    return invoke(inner, command, call.stdin, {}) if command else None


def _judge_mount(call: Invocation, source: str) -> None:
    full = call.shell.full(source) if source.startswith(("/", ".")) else ""
    home = call.shell.places.home
    if full in (*_MOUNTS_DENIED, home, home + "/.ssh", home + "/.aws") or full.endswith("/docker.sock"):
        call.deny("privilege", f"This gives a container access to {full}")


def _inside(call: Invocation, command: list[str]) -> str | None:
    """A command in a container: nothing there is the workspace, except by relative path."""
    return invoke(call.shell.elsewhere(), command, call.stdin, {}) if command else None


def _is_dry_run(args: list[str]) -> bool:
    return any(arg.startswith("--dry-run") for arg in args) and not is_switched_off(args, ["--dry-run"])


def compose(call: Invocation) -> str | None:
    return _compose(call, call.args)


def _compose(call: Invocation, args: list[str]) -> str | None:
    words = Options(args, "fp", ("--file", "--project-name", "--profile", "--env-file"), stops=True).rest
    if words[:1] in (["exec"], ["run"]):
        return _inside(call, Options(words[1:], "eupvwTl", _RUN_LONG, stops=True).rest[1:])
    if not _is_dry_run(args):
        apply_rules(call, "docker-compose", words)
    return None


def kubectl(call: Invocation) -> str | None:
    words = Options(call.args, "ncs", _GLOBAL, stops=True).rest
    if not words or _is_dry_run(call.args):
        return None
    name, rest = words[0], words[1:]
    apply_rules(call, "kubectl", words)
    if name in ("exec", "debug", "run") and "--" in rest:
        return _inside(call, rest[rest.index("--") + 1 :])
    if name == "exec":
        return _inside(call, Options(rest, "cn", ("--container", "--namespace"), stops=True).rest[1:])
    if name == "cp" and len(rest) > 1:
        from ralph.guard.programs.network import judge_upload

        judge_upload(call, [rest[0]], rest[-1])
    return None


def vagrant(call: Invocation) -> None:
    for command in apply_rules(call, "vagrant", call.args).all("-c", "--command"):
        _inside(call, ["sh", "-c", command])
