"""What one hook call costs: the whole process, from its start to its answer, against a bare interpreter.

    .venv/bin/python bench/hooks.py [ROUNDS]

Target: at most 2 × `python -c pass`, with a shell command to look at or without. The commands take turns, so
that a busy machine slows all of them down alike. The ratio of the medians is the figure; minima are shown because they
disturb least. The hook in bash and jq does what such hooks usually do: check the call, take it apart, keep or look up
what was read, or search a command for dangerous words.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ralph.session.hook_policy import hook_command

PLAIN, SHELL = 2.0, 2.0
BASH = r"""
set -u
call=$(cat)
printf '%s' "$call" | jq -e . >/dev/null 2>&1 || { echo '{"decision":"allow"}'; exit 0; }
tool=$(printf '%s' "$call" | jq -r '.tool_name // ""')
case $tool in
Read) printf 'Read: %s\n' "$(printf '%s' "$call" | jq -r '.tool_input.file_path // ""')" >>"$SESSION_LOG" ;;
Edit | Write)
  path=$(printf '%s' "$call" | jq -r '.tool_input.file_path // ""')
  if ! grep -qxF "Read: $path" "$SESSION_LOG"; then
    jq -nc --arg m "read $path first" '{decision: "block", message: $m}'; exit 0
  fi ;;
Bash)
  command=$(printf '%s' "$call" | jq -r '.tool_input.command // ""')
  if printf '%s' "$command" | grep -qE '(^|[;&|[:space:]])git[[:space:]]+push|rm[[:space:]]+-rf?[[:space:]]+/'; then
    jq -nc '{decision: "block", message: "not allowed"}'; exit 0
  fi ;;
esac
echo '{"decision":"allow"}'
"""
HARMLESS = "cd src && grep -rn 'def main' . | head -20 && python -m pytest -q tests"
RISKY = 'for f in $(ls build); do rm -rf "build/$f"; done; git push --force origin main || true'


class Case(NamedTuple):
    name: str
    command: list[str]
    call: bytes = b""
    target: float | None = None


def cases(folder: Path) -> Iterator[Case]:
    python, ours = sys.executable, shlex.split(hook_command())
    file = folder / "work" / "a.txt"
    file.parent.mkdir()
    file.write_text("text\n")
    read, edit = (_call("PreToolUse", folder, tool, file_path=str(file)) for tool in ("Read", "Edit"))
    harmless, risky = (_call("PreToolUse", folder, "Bash", command=text) for text in (HARMLESS, RISKY))
    yield Case("python -c pass", [python, "-c", "pass"])
    yield Case("sh -c true", ["sh", "-c", "true"])
    yield Case("PreToolUse Read", [*ours, "PreToolUse"], read, PLAIN)
    yield Case("PreToolUse Edit", [*ours, "PreToolUse"], edit, PLAIN)
    yield Case("PostToolUse Read", [*ours, "PostToolUse"], _call("PostToolUse", folder, "Read"), PLAIN)
    yield Case("SessionStart", [*ours, "SessionStart"], _call("SessionStart", folder, ""), PLAIN)
    yield Case("PreToolUse Bash, harmless", [*ours, "PreToolUse"], harmless, SHELL)
    yield Case("PreToolUse Bash, risky", [*ours, "PreToolUse"], risky, SHELL)
    yield Case("PostToolUse Bash", [*ours, "PostToolUse"], _call("PostToolUse", folder, "Bash", command="pytest -q"))
    yield Case("python -I -m ralph.hooks, Read", [python, "-I", "-m", "ralph.hooks", "PreToolUse"], read)
    if shutil.which("jq") and shutil.which("bash"):
        (folder / "hook.sh").write_text(BASH)
        for name, call in (("Read", read), ("Edit", edit), ("Bash", harmless)):
            yield Case(f"bash and jq, {name}", ["bash", str(folder / "hook.sh")], call)
    else:
        print("bash or jq not found; the comparison with them is skipped\n", file=sys.stderr)


def _call(event: str, folder: Path, tool: str, **given: str) -> bytes:
    common = {"session_id": "s", "transcript_path": "", "cwd": str(folder / "work"), "hook_event_name": event}
    used = {"tool_name": tool, "tool_input": given, "tool_response": {"stdout": "1 passed in 0.1s", "stderr": ""}}
    return json.dumps(common | used).encode()


def environment(folder: Path) -> dict[str, str]:
    """A live run: hooks do all their work. Without one they would only say nothing, faster."""
    state = folder / "state"
    state.mkdir()
    policy = {"nonce": "n", "pid": os.getpid(), "workspace": str(folder / "work"), "state": str(state)}
    policy |= {"records": str(state / "records.jsonl"), "protected": [".ralph/config.yaml", ".ralph/configs"]}
    policy |= {"permissions": "guard"}
    (folder / "policy.json").write_text(json.dumps(policy))
    (folder / "session.log").write_text("")
    ours = {"RALPH_POLICY": str(folder / "policy.json"), "RALPH_NONCE": "n", "SESSION_LOG": str(folder / "session.log")}
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | ours


def main(rounds: int) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env, measured = environment(folder), list(cases(folder))
        for case in measured:
            once(case, env)  # bytecode is written and files are in memory
        times: dict[str, list[float]] = {case.name: [] for case in measured}
        for _ in range(rounds):
            for case in measured:
                times[case.name].append(once(case, env))
    return report(measured, times)


def once(case: Case, env: dict[str, str]) -> float:
    """Milliseconds from start to end of a process."""
    started = time.perf_counter()
    subprocess.run(case.command, input=case.call, check=True, stdout=subprocess.DEVNULL, env=env)
    return (time.perf_counter() - started) * 1000


def report(measured: list[Case], times: dict[str, list[float]]) -> int:
    base = times["python -c pass"]
    missed = 0
    print(f"{'command':<32} {'median ms':>10} {'min ms':>8} {'median ×':>9} {'min ×':>7}  target")
    for case in measured:
        taken = times[case.name]
        ratio, ratio_of_minima = median(taken) / median(base), min(taken) / min(base)
        verdict = "" if case.target is None else f"{case.target} × {'ok' if ratio <= case.target else 'MISSED'}"
        missed += "MISSED" in verdict
        figures = f"{median(taken):>10.1f} {min(taken):>8.1f} {ratio:>9.2f} {ratio_of_minima:>7.2f}"
        print(f"{case.name:<32} {figures}  {verdict}")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
