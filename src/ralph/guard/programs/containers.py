"""Containers, clusters and virtual machines."""

from ralph.guard.invocation import Invocation, Options
from ralph.guard.patterns import one_of, wordlist
from ralph.guard.taint import EVERYONE, UNKNOWN

_GLOBAL = ("--context", "--host", "--log-level", "--config", "--namespace", "--kubeconfig", "--cluster", "--user")
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
    options = Options(call.args, "Hcl", _GLOBAL, stops=True)
    words = options.rest
    if not words:
        return None
    if words[0] in ("container", "image") and len(words) > 1 and words[1] != "prune":
        words = ["rmi" if words[:2] == ["image", "rm"] else words[1], *words[2:]]
    name, rest = words[0], words[1:]
    if name in ("run", "create"):
        return _run(call, rest)
    if name == "exec":
        return _inside(call, Options(rest, "euw", _RUN_LONG, stops=True).rest[1:])
    if name == "compose":
        return compose_words(call, rest)
    if name in ("rm", "rmi", "stop", "kill", "restart", "pause"):
        if any(EVERYONE in word for word in rest):
            call.deny("containers", "This affects all containers or images, not only yours")
        if name == "rm" and {"-v", "--volumes", "-vf", "-fv"} & set(rest):
            call.deny("containers", "This removes volumes and their data")
        return None
    if name in ("ps", "images", "ls"):
        return _listed(rest)
    _judge_management(call, name, rest)
    return None


def _listed(rest: list[str]) -> str:
    """`docker ps -aq` lists everything; with a filter it may list only the agent's own."""
    quiet = any(arg.startswith("-") and not arg.startswith("--") and "q" in arg for arg in rest) or "--quiet" in rest
    narrowed = any(arg.startswith(("--filter", "-f")) for arg in rest) or any(not arg.startswith("-") for arg in rest)
    return EVERYONE if quiet and not narrowed else UNKNOWN + (EVERYONE if not quiet and not narrowed else "")


def _judge_management(call: Invocation, name: str, rest: list[str]) -> None:
    first = rest[0] if rest else ""
    if (first == "prune" and name in ("system", "volume", "container")) or (name == "system" and first == "reset"):
        call.deny("containers")
    if name == "image" and first == "prune" and {"-a", "--all", "-af", "-fa"} & set(rest):
        call.deny("containers")
    if name == "volume" and first in ("rm", "remove"):
        call.deny("containers", "This removes volumes and their data")
    if name in ("swarm", "stack", "service", "node", "secret") and first in ("leave", "rm", "remove", "down"):
        call.deny("containers")
    if name == "push" or (
        name in ("buildx", "build", "manifest", "image", "compose") and ("--push" in rest or first == "push")
    ):
        call.deny("publishing")
    if name in ("machine", "context", "plugin") and first in ("rm", "remove", "reset"):
        call.deny("containers")


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
    command = options.rest[1:]
    if entry := options.value("--entrypoint"):
        command = [entry, *command]
    return _inside(call, command)


def _judge_mount(call: Invocation, source: str) -> None:
    full = call.shell.full(source) if source.startswith(("/", ".")) else ""
    home = call.shell.places.home
    if full in (*_MOUNTS_DENIED, home, home + "/.ssh", home + "/.aws") or full.endswith("/docker.sock"):
        call.deny("privilege", f"This gives a container access to {full}")


def _inside(call: Invocation, command: list[str]) -> str | None:
    """A command in a container: nothing there is the workspace, except by relative path."""
    if not command:
        return None
    from ralph.guard.invocation import invoke

    return invoke(call.shell.elsewhere(), command, call.stdin, {})


def compose(call: Invocation) -> str | None:
    return compose_words(call, call.args)


def compose_words(call: Invocation, args: list[str]) -> str | None:
    options = Options(args, "fp", ("--file", "--project-name", "--profile", "--env-file"), stops=True)
    words = options.rest
    if not words:
        return None
    name, rest = words[0], words[1:]
    if name == "down" and {"-v", "--volumes", "--rmi"} & {arg.partition("=")[0] for arg in rest}:
        call.deny("containers", "This removes volumes or images and their data")
    if name == "rm" and any(arg.startswith("-") and "v" in arg for arg in rest):
        call.deny("containers", "This removes volumes and their data")
    if name == "push":
        call.deny("publishing")
    if name in ("exec", "run"):
        inner = Options(rest, "eupvwTl", _RUN_LONG, stops=True)
        return _inside(call, inner.rest[1:])
    return None


_CLUSTER_HARM = one_of("delete drain cordon taint evict uncordon")


def kubectl(call: Invocation) -> str | None:
    options = Options(call.args, "ncs", (*_GLOBAL, "--server", "--token"), stops=True)
    words = options.rest
    if not words or any(arg.startswith("--dry-run") and arg != "--dry-run=none" for arg in call.args):
        return None
    name, rest = words[0], words[1:]
    if name in _CLUSTER_HARM:
        call.deny("cluster")
    if (name == "scale" and any(arg.endswith("replicas=0") for arg in rest)) or (
        name == "replace" and "--force" in rest
    ):
        call.deny("cluster")
    if name == "apply" and "--prune" in rest:
        call.deny("cluster")
    if name == "rollout" and rest[:1] == ["undo"]:
        call.deny("cluster")
    if name in ("exec", "debug", "run") and "--" in rest:
        return _inside(call, rest[rest.index("--") + 1 :])
    if name == "exec":
        return _inside(call, Options(rest, "cn", ("--container", "--namespace"), stops=True).rest[1:])
    if name in ("patch", "edit", "annotate") and "finalizers" in " ".join(rest):
        call.deny("cluster")
    if name == "cp" and len(rest) > 1:
        from ralph.guard.programs.network import judge_upload

        judge_upload(call, [rest[0]], rest[-1])
    if name == "config" and rest[:1] and rest[0].startswith(("delete-", "unset")):
        call.deny("cluster")
    return None


def helm(call: Invocation) -> None:
    words = call.options(valued="nf", valued_long=_GLOBAL).rest
    if words and words[0] in ("uninstall", "delete", "del", "un", "rollback") and "--dry-run" not in call.args:
        call.deny("cluster")
    if words[:1] in (["push"], ["cm-push"]):
        call.deny("publishing")


_MACHINES = one_of("delete destroy rm remove purge undefine unregistervm prune reset stop-all nuke kill")


def machines(call: Invocation) -> None:
    """Virtual machines and local clusters."""
    words = call.options().rest
    if any(word in _MACHINES for word in words[:2]):
        call.deny("cluster" if call.name in ("kind", "k3d", "minikube", "k3s") else "containers")


def vagrant(call: Invocation) -> None:
    options = call.options(valued="c", valued_long=("--command",))
    if options.rest[:1] == ["destroy"] or options.rest[:2] == ["box", "remove"]:
        call.deny("containers")
    for command in options.all("-c", "--command"):
        _inside(call, ["sh", "-c", command])


def uninstall(call: Invocation) -> None:
    call.deny("cluster")


JUDGES = {
    **dict.fromkeys(one_of("docker podman nerdctl buildah"), docker),
    **dict.fromkeys(("docker-compose", "podman-compose"), compose),
    **dict.fromkeys(one_of("kubectl oc k kubecolor microk8s"), kubectl),
    "helm": helm,
    **dict.fromkeys(one_of("lxc incus multipass virsh VBoxManage qm pct ctr crictl"), machines),
    **dict.fromkeys(one_of("minikube kind k3d k3s colima limactl tart prlctl"), machines),
    "vagrant": vagrant,
    "k3s-uninstall.sh": uninstall,
}
