"""The corpus of the command guard: what must be denied, what must be allowed, and ways to wrap either."""

from __future__ import annotations

import base64
import json
import random
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ralph.guard.decision import Decision, judge_command

FOLDER = Path(__file__).resolve().parents[1] / "guard" / "corpus"
CWD = "/home/user/project"

quoted = shlex.quote


class Line(NamedTuple):
    command: str
    cwd: str
    category: str


def load(name: str) -> list[Line]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    values = [json.loads(line) for line in lines]
    return [Line(each["command"], each.get("cwd", CWD), each.get("category", "")) for each in values]


def some(lines: list[Line], count: int, seed: str) -> list[Line]:
    """The same lines on every run, others for every seed."""
    return random.Random(seed).sample(lines, min(count, len(lines)))


def judge(command: str, cwd: str = CWD, section: dict[str, object] | None = None) -> Decision:
    return judge_command(command, cwd, section or {})


def _hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def _octal(text: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in text.encode())


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


WRAPPERS: dict[str, Callable[[str], str]] = {
    "bash -c": lambda c: f"bash -c {quoted(c)}",
    "sh -c": lambda c: f"sh -c {quoted(c)}",
    "zsh -lc": lambda c: f"zsh -lc {quoted(c)}",
    "three shells": lambda c: "bash -c " + quoted("sh -c " + quoted("eval " + quoted(c))),
    "eval": lambda c: f"eval {quoted(c)}",
    "echo into sh": lambda c: f"echo {quoted(c)} | sh",
    "printf into bash": lambda c: f"printf '%s\\n' {quoted(c)} | bash",
    "here-string": lambda c: f"bash <<< {quoted(c)}",
    "here-document": lambda c: f"bash <<'END_X'\n{c}\nEND_X\n",
    "here-document in a pipe": lambda c: f"cat <<'END_X' | sh\n{c}\nEND_X\n",
    "stdin as a file": lambda c: f"bash /dev/stdin <<< {quoted(c)}",
    "base64": lambda c: f"echo {_base64(c)} | base64 -d | sh",
    "base64 in eval": lambda c: f'eval "$(echo {_base64(c)} | base64 --decode)"',
    "base64 with openssl": lambda c: f"openssl base64 -d -A <<< {_base64(c)} | sh",
    "xxd": lambda c: f"echo {c.encode().hex()} | xxd -r -p | bash",
    "printf with hex": lambda c: f"printf '{_hex(c)}' | sh",
    "printf with octal": lambda c: f"printf '{_octal(c)}' | sh",
    "dollar quotes": lambda c: f"eval $'{_hex(c)}'",
    "substitution": lambda c: f'echo "$({c}\n)"',
    "process substitution": lambda c: f"cat <({c}\n)",
    "source of a process": lambda c: f"source <(printf %s {quoted(c)})",
    "tee into a shell": lambda c: f"tee >(sh) <<< {quoted(c)}",
    "subshell": lambda c: f"({c}\n)",
    "braces": lambda c: f"{{ {c}\n}}",
    "and": lambda c: f"true && {{ {c}\n}}",
    "or": lambda c: f"false || {{ {c}\n}}",
    "after another": lambda c: f"ls -la; {c}",
    "on a line of its own": lambda c: f"echo start\n{c}\necho end",
    "if": lambda c: f"if true; then\n{c}\nfi",
    "else": lambda c: f"if false; then :; else\n{c}\nfi",
    "for": lambda c: f"for i in 1 2; do\n{c}\ndone",
    "while": lambda c: f"while read -r line; do\n{c}\ndone < list.txt",
    "case": lambda c: f"case x in x)\n{c}\n;; esac",
    "function": lambda c: f"cleanup() {{\n{c}\n}}\ncleanup",
    "trap": lambda c: f"trap {quoted(c)} EXIT",
    "alias": lambda c: f"alias zz={quoted(c)}; zz",
    "variable": lambda c: f'cmd={quoted(c)}; eval "$cmd"',
    "variable in sh": lambda c: f'cmd={quoted(c)}; sh -c "$cmd"',
    "variable of the environment": lambda c: f"CMD={quoted(c)} bash -c 'eval \"$CMD\"'",
    "array": lambda c: f'a=(bash -c {quoted(c)}); "${{a[@]}}"',
    "parameters": lambda c: f'set -- {quoted(c)}; eval "$1"',
    "env": lambda c: f"env -i X=1 sh -c {quoted(c)}",
    "timeout": lambda c: f"timeout -k 1 5 bash -c {quoted(c)}",
    "nohup": lambda c: f"nohup bash -c {quoted(c)} >/dev/null 2>&1 &",
    "nice": lambda c: f"nice -n 5 ionice -c3 sh -c {quoted(c)}",
    "stdbuf": lambda c: f"stdbuf -oL sh -c {quoted(c)}",
    "setsid": lambda c: f"setsid sh -c {quoted(c)}",
    "flock": lambda c: f"flock /tmp/lock -c {quoted(c)}",
    "watch": lambda c: f"watch -n1 {quoted(c)}",
    "busybox": lambda c: f"busybox sh -c {quoted(c)}",
    "coproc": lambda c: f"coproc bash -c {quoted(c)}",
    "time": lambda c: f"time {{ {c}\n}}",
    "parallel": lambda c: f"parallel ::: {quoted(c)}",
    "xargs": lambda c: f"printf '%s\\0' {quoted(c)} | xargs -0 -I% sh -c %" if "%" not in c else f"sh -c {quoted(c)}",
    "find -exec": lambda c: (
        f"find . -maxdepth 0 -exec sh -c {quoted(c)} \\;" if "{}" not in c else f"sh -c {quoted(c)}"
    ),
    "npx": lambda c: f"npx -c {quoted(c)}",
    "git alias": lambda c: f"git -c alias.zz={quoted('!' + c)} zz",
    "python os.system": lambda c: f"python3 -c {quoted(f'import os; os.system({c!r})')}",
    "python subprocess": lambda c: f"python3 -c {quoted(f'import subprocess as s; s.run({c!r}, shell=True)')}",
    "python script": lambda c: f"python3 - <<'END_X'\nimport subprocess\nsubprocess.call(['sh', '-c', {c!r}])\nEND_X\n",
    "node": lambda c: "node -e " + quoted(f"require('child_process').execSync({json.dumps(c)})"),
    "ruby": lambda c: "ruby -e " + quoted(f"system({json.dumps(c)})"),
    "script that is written and run": lambda c: f"cat > /tmp/run.sh <<'END_X'\n{c}\nEND_X\nbash /tmp/run.sh",
    "script that is made executable": lambda c: f"echo {quoted(c)} > run.sh; chmod +x run.sh; ./run.sh",
    "in the background": lambda c: f"{{ {c}\n}} & disown",
    "negated": lambda c: f"! {{ {c}\n}}",
    "silenced": lambda c: f"{{ {c}\n}} > /dev/null 2>&1",
}
"""What a command may be wrapped in and still be run."""

PREFIXES = (
    *("env X=1 Y=2", "env -u HOME", "nohup", "nice -n 5", "timeout 10", "timeout --signal=KILL 1h", "time", "command"),
    *("exec", "setsid", "stdbuf -oL", "ionice -c2 -n7", "chrt -b 0", "taskset 1", "strace -f -o /tmp/log", "unbuffer"),
    *("fakeroot", "xvfb-run -a", "systemd-run --user --scope", "dbus-run-session --", "caffeinate -i", "npx", "bunx"),
    *("uv run", "poetry run", "pipenv run", "bundle exec", "conda run -n x", "direnv exec .", "dotenv --", "X=1"),
    *("true |", "true &&", "false ||", "ls;", "!", "\\"),
)
"""What may stand before a command without changing it."""

AS_DATA: dict[str, Callable[[str], str]] = {
    "echo": lambda c: f"echo {quoted(c)}",
    "echo into a file": lambda c: f"echo {quoted(c)} >> notes.md",
    "printf": lambda c: f"printf '%s\\n' {quoted(c)}",
    "grep": lambda c: f"grep -F {quoted(c)} README.md",
    "rg": lambda c: f"rg -n {quoted(c)} src",
    "commit message": lambda c: f"git commit -m {quoted(c)}",
    "commit message by here-document": lambda c: f"git commit -m \"$(cat <<'END_X'\n{c}\nEND_X\n)\"",
    "here-document into a file": lambda c: f"cat > docs/page.md <<'END_X'\n{c}\nEND_X\n",
    "here-document into tee": lambda c: f"tee docs/page.md <<'END_X'\n{c}\nEND_X\n",
    "comment": lambda c: "ls # " + c.replace("\n", " "),
    "variable that is printed": lambda c: f'X={quoted(c)}; echo "$X"',
    "python print": lambda c: f"python3 -c {quoted(f'print({c!r})')}",
    "node log": lambda c: "node -e " + quoted(f"console.log({json.dumps(c)})"),
    "test": lambda c: f'[ "$x" = {quoted(c)} ] && echo same',
    "case pattern": lambda c: f'case "$x" in {quoted(c)}) echo bad;; esac',
    "issue text": lambda c: f"gh issue create --title x --body {quoted(c)}",
    "here-string": lambda c: f"wc -c <<< {quoted(c)}",
    "argument of a program": lambda c: f"./cli.js --text {quoted(c)}",
    "request to this machine": lambda c: f"curl -s localhost:3000 -d {quoted(c)}",
    "jq argument": lambda c: f"jq --arg c {quoted(c)} '.cmd=$c' x.json",
    "question to the guard": lambda c: f"ralph guard {quoted(c)}",
    "name of a test": lambda c: f"pytest -k {quoted(c)}",
}
"""What a command may be quoted in without being run."""
