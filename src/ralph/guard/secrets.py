"""Which files hold secrets."""

from ralph.guard.patterns import one_of, wordlist

_NAMES = one_of(
    """
    .env .netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .vault-token .boto .s3cfg .dockercfg
    credentials credentials.json credentials.csv id_rsa id_dsa id_ecdsa id_ed25519 id_ed25519_sk secrets.json
    secrets.yaml secrets.yml secrets.toml secrets.env master.key shadow gshadow hosts.yml
    application_default_credentials.json kubeconfig environ .bash_history .zsh_history terraform.tfstate
    .credentials.json wallet.dat keystore.jks service-account.json serviceaccount.json firebase-adminsdk.json
    token.json cookies.sqlite logins.json
    """
)
_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ovpn", "_rsa", "_ed25519", ".tfstate")
_FOLDERS = wordlist("/.ssh /.aws /.gnupg /.kube /.docker /.azure /.config/gcloud /.config/gh /.password-store")
_PLAIN_ENDINGS = (".pub", ".example", ".sample", ".template", ".dist", ".md", "known_hosts", ".crt", ".test")
_OPEN_NAMES = frozenset(("config", "known_hosts", "authorized_keys"))


def is_secret_file(path: str) -> bool:
    """Worth stealing. `path` may be a pattern."""
    name = path.rstrip("/").rpartition("/")[2]
    if name.endswith(_PLAIN_ENDINGS):
        return False
    if name in _NAMES or name.endswith(_ENDINGS):
        return name not in ("environ",) or path.startswith("/proc")
    if name.startswith(".env."):
        return True
    return "/." in path and any(f"{folder}/" in f"{path}/" for folder in _FOLDERS) and not _is_public(path, name)


def is_private_key(path: str) -> bool:
    """Outside a project, a file that only its owner reads and that must not even be displayed."""
    name = path.rpartition("/")[2]
    if name.endswith(_PLAIN_ENDINGS) or _is_public(path, name):
        return False
    return (
        "/.ssh/id_" in path
        or "/.aws/credentials" in path
        or "/.gnupg/" in path
        or "/.password-store/" in path
        or path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
        or name in (".netrc", ".git-credentials", ".pgpass", ".pypirc", "application_default_credentials.json")
        or path.endswith(
            ("/.config/gh/hosts.yml", "/.docker/config.json", "/.claude/.credentials.json", "/.kube/config")
        )
        or (path.startswith("/proc") and name == "environ" and "/self/" not in path)
    )


def _is_public(path: str, name: str) -> bool:
    return "/.ssh/" in path and name in _OPEN_NAMES
