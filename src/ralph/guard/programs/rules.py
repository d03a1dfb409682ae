"""Tools with harmful subcommands: publishing, deploying, deleting in the cloud. The table lists them."""

from ralph.guard.effects import is_secret
from ralph.guard.invocation import Invocation, Options
from ralph.guard.patterns import matches, wordlist
from ralph.guard.programs.rule_table import PROGRAMS, TABLE
from ralph.guard.taint import NETWORK, SECRET, UNKNOWN, is_known


def unknown_program(call: Invocation) -> str | None:
    name = call.argv[0]
    if name.startswith(("http://", "https://")):
        call.deny("remote-code")
    if not is_known(name):
        return _unknown(call)
    if call.shell.files and call.shell.files.get(call.shell.full(name)) == NETWORK:
        call.deny("remote-code", "This runs a file that was just downloaded")
    return None


def _unknown(call: Invocation) -> str | None:
    """`$x …`: the arguments say enough if they belong to something destructive."""
    args = call.args
    if args[:1] == ["push"] or args[:2] == ["reset", "--hard"]:
        return call.run(["git", *args])
    if args[:1] == ["-c"] and len(args) > 1:
        call.run_text(args[1])
    return None


_VALUED = wordlist(
    """
    --profile --region --output --endpoint-url --query --project --zone --prefix --workspace --registry --cwd --repo
    --manifest-path --directory --stack --app --context --namespace --account --configuration --filter --tag --config
    --token --subscription --resource-group --team --scope -chdir --index-url --org --stage --dir --file --settings
    --model
    """
)
_VALUED_SHORT = {
    "npm": "w",
    "gradle": "pbPD",
    "gradlew": "pbPD",
    "mvn": "fPpD",
    "mvnw": "fPpD",
    "fly": "ac",
    "heroku": "a",
}
_RUNS_SCRIPT = ("exec", "x", "dlx", "explore")

_Line = tuple[str, str, list[str], list[str], list[str]]
_lines: dict[str, list[_Line]] = {}


def _rules(program: str) -> list[_Line]:
    """Read on first use: category, joined text, words, required and excluded arguments."""
    if not _lines:
        for category, text in TABLE.items():
            for line in text.strip().splitlines():
                names, *words = line.split()
                needed = [word[1:] for word in words if word.startswith("+")]
                excluded = [word[1:] for word in words if word.startswith("!")]
                plain = [word for word in words if word[0] not in "+!"]
                for name in names.split("|"):
                    _lines.setdefault(name, []).append((category, line, plain, needed, excluded))
    return _lines.get(program, [])


def judge(call: Invocation) -> str | None:
    options = Options(call.args, _VALUED_SHORT.get(call.name, ""), _VALUED)
    words = options.rest[1:] if options.rest[:1] and options.rest[0].startswith("+") else options.rest  # cargo +nightly
    for category, _, pattern, needed, excluded in _rules(call.name):
        is_meant = _fits(pattern, words) and all(_given(word, call.args) for word in needed)
        if is_meant and not any(_given(word, call.args) for word in excluded):
            call.deny(category)
    if words and words[0] in _RUNS_SCRIPT:
        return _run_package(call)
    return _special(call, words)


def _given(word: str, args: list[str]) -> bool:
    return any(arg == word or arg.startswith(word + "=") for arg in args)


def _fits(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return True
    first = pattern[0]
    if first == "...":
        return any(_fits(pattern[1:], words[i:]) for i in range(len(words) + 1)) if pattern[1:] else True
    if first.startswith("~"):
        return any(_one(first[1:], word.rpartition(":")[2]) or _one(first[1:], word) for word in words)
    if first.startswith("--"):
        return False
    return bool(words) and _one(first, words[0]) and _fits(pattern[1:], words[1:])


def _one(pattern: str, word: str) -> bool:
    return any(matches(each, word) for each in pattern.split("|"))


def _run_package(call: Invocation) -> str | None:
    """`npm exec -- tool …`, `yarn dlx tool …`: the tool is what counts."""
    start = next(i for i, arg in enumerate(call.args) if arg in _RUNS_SCRIPT)
    options = Options(call.args[start + 1 :], "cp", ("--call", "--package"), stops=True)
    if call.args[start] == "explore":
        return call.run(call.args[call.args.index("--") + 1 :]) if "--" in call.args else None
    for command in options.all("-c", "--call"):
        call.run_text(command)
    return call.run(options.rest) if options.rest else None


def _special(call: Invocation, words: list[str]) -> str | None:
    if call.name == "ansible":
        for text in Options(call.args, "am", ("--args",)).all("-a", "--args"):
            inner = call.shell.elsewhere()
            from ralph.guard.programs.shells import judge_script

            judge_script(inner, text, call.argv)
    if (
        call.name in ("npm", "pnpm", "yarn")
        and "-g" in call.args
        and words[:1]
        and words[0] in ("root", "prefix", "bin")
    ):
        return "/usr/lib/node_modules\n"
    if call.name in ("aws", "gcloud", "az", "gsutil") and _prints_secret(call, words):
        return UNKNOWN + SECRET
    if call.name in ("aws", "gsutil", "s3cmd", "mc") and words[:2] and words[0] in ("s3", "cp", "put"):
        _upload(call, words)
    is_upload = call.name in ("az", "gcloud", "b2") and {"upload", "copy", "cp", "put", "sync", "create"} & set(words)
    if is_upload and any(is_secret(call.shell, arg) for arg in call.args):
        call.deny("exfiltration", "This sends secrets to remote storage")
    if call.name in ("yarn", "pnpm", "bun") and words and call.name != "npm":
        return _script_or_program(call, words)
    if (
        call.name == "deno"
        and words[:1] == ["run"]
        and any(word.startswith(("http:", "https:")) for word in words[1:2])
    ):
        call.deny("remote-code")
    return NETWORK + UNKNOWN if call.name in ("aws", "gcloud", "az") and words[:1] == ["s3"] else None


def _prints_secret(call: Invocation, words: list[str]) -> bool:
    text = " ".join(words)
    return any(
        part in text for part in ("get-secret-value", "print-access-token", "get-access-token", "export-credentials")
    )


def _upload(call: Invocation, words: list[str]) -> None:
    from ralph.guard.programs.network import judge_upload

    remote = [word for word in words if "://" in word]
    local = [word for word in words[1:] if "://" not in word and word not in ("cp", "mv", "sync", "put")]
    if remote and words[-1] == remote[-1]:
        judge_upload(call, local, remote[-1])
        if "-" in local and SECRET in call.stdin:
            call.deny("exfiltration", f"This sends secrets to {remote[-1]}")


def _script_or_program(call: Invocation, words: list[str]) -> str | None:
    """`yarn rimraf /` and `pnpm rimraf /` run the program, `yarn test` runs a script of the project."""
    from ralph.guard.programs.index import MODULES

    if MODULES.get(words[0]) in ("files", "subcommands", "databases", "interpreters", "modes") and words[0] not in (
        "rm",
        "install",
    ):
        start = call.args.index(words[0])
        return call.run(call.args[start:])
    return None


JUDGES = {
    **dict.fromkeys([*PROGRAMS, "yarn", "pnpm", "bun", "npm", "claude", "codex", "ansible"], judge),
    "*": unknown_program,
}
