"""Which files hold secrets: those worth sending away, and those that must not even be displayed."""

from ralph.guard.patterns import has_glob, matches, one_of
from ralph.guard.tables import lists, load
from ralph.guard.taint import is_mark

_NAMES = one_of(
    """
    .env .netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .vault-token .boto .s3cfg .dockercfg
    credentials credentials.json credentials.csv credentials.toml id_rsa id_dsa id_ecdsa id_ed25519 id_ed25519_sk
    secrets.json secrets.yaml secrets.yml secrets.toml secrets.env master.key shadow gshadow hosts.yml
    application_default_credentials.json kubeconfig .bash_history .zsh_history terraform.tfstate
    .credentials.json wallet.dat keystore.jks service-account.json serviceaccount.json firebase-adminsdk.json
    token.json cookies.sqlite logins.json
    """
)
_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ovpn", "_rsa", "_ed25519", ".tfstate")
_PLAIN_ENDINGS = (".pub", ".example", ".sample", ".template", ".dist", ".md", "known_hosts", ".crt", ".test")
_SHARED = one_of(".config .local .local/share .cache .cache/huggingface .cargo .gem .gradle .m2 .bundle Library")
"""Folders in which most files are not secret."""
_TABLE = {
    key: [entry.replace("\\u0020", " ").split("/") for entry in entries]
    for key, entries in lists(load("paths")["secrets"]).items()
}


def is_secret_file(path: str) -> bool:
    """Worth stealing. `path` may be a pattern."""
    name = path.rstrip("/").rpartition("/")[2]
    if name.endswith(_PLAIN_ENDINGS):
        return False
    if name in _NAMES or name.endswith(_ENDINGS) or name.startswith(".env."):
        return True
    return path.startswith(("/etc/passwd", "/etc/group")) or _is_listed(path)


def is_private_key(path: str) -> bool:
    """Outside a project, a file that only its owner reads and that must not even be displayed, or a folder of them."""
    if path.startswith("/proc/self/"):
        return False
    parts = path.rstrip("/").split("/")
    return _is_listed(path) and "/".join(parts[_hidden(parts) :]) not in _SHARED


def _is_listed(path: str) -> bool:
    parts = ["".join("*" if is_mark(letter) else letter for letter in part) for part in path.rstrip("/").split("/")]
    if any(matches(public, parts[-1]) for (public,) in _TABLE["public"]) and parts[-1] != "*":
        return "/.docker/" in path or "/.kube/" in path or "/.cabal/" in path or "/.bundle/" in path
    if any(matches(name, parts[-1]) for (name,) in _TABLE["names"]):
        return True
    if parts[1:2] in (["home"], ["Users"], ["root"]) and parts[-1].endswith(_ENDINGS):
        return True
    if any(len(parts) >= len(entry) and _meets(parts, entry) for entry in _TABLE["system"]):
        return True
    tail = parts[_hidden(parts) :]
    return bool(tail) and any(_meets(tail, entry) for entry in _TABLE["home"])


def _hidden(parts: list[str]) -> int:
    """Where the part below a home folder starts."""
    return next((i for i, part in enumerate(parts) if part[:1] == "." or part in ("Library", "_netrc")), len(parts))


def _meets(parts: list[str], entry: list[str]) -> bool:
    """The path is the entry, or below it, or a folder above it."""
    return all(
        part == name
        or (has_glob(part) and (name[0] != "." or part[0] == ".") and matches(part, name))
        or matches(name, part)
        for part, name in zip(parts, entry, strict=False)
    )
