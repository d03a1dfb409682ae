"""sed: it edits files, writes to others, and GNU sed runs commands."""

from ralph.hooks.guard import acts
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import OPAQUE, UNKNOWN, is_known, taints
from ralph.hooks.guard.options import Options


def sed(call: Invocation) -> str:
    options = Options(call.args, "efl", ("--expression", "--file", "--line-length"))
    scripts = options.all("-e", "--expression")
    paths = options.rest
    if not scripts and not options.has("-f", "--file"):
        scripts, paths = paths[:1], paths[1:]
    in_place = options.has("-i", "--in-place") or any(arg.startswith("-i") for arg in call.args)
    if in_place and paths and paths[0] == "" and "-i" in call.args:  # BSD: -i ''
        paths = paths[1:]
    data = call.files(paths)
    for text in scripts:
        _judge(call, text, data)
    if in_place:
        for path in paths:
            acts.write(call.shell, path, call.argv)
        return ""
    for path in paths:
        acts.look(call.shell, path, call.argv)
    return _edited(scripts, data)


def _judge(call: Invocation, script: str, data: str) -> None:
    for line in script.replace(";", "\n").split("\n"):
        body = line.strip().lstrip("0123456789,$ {")
        if body.startswith("e ") or (body == "e" and data):
            call.run_text(body[2:] or data)
        elif body.startswith(("w ", "W ")):
            acts.write(call.shell, body[2:].strip(), call.argv)
        elif body.startswith("s") and len(body) > 3 and not body[1].isalnum():
            parts = _parts(body)
            flags = parts[2] if len(parts) > 2 else ""
            if "e" in flags.partition("w")[0]:
                call.run_text(parts[1].replace("&", data.strip()))
            if "w" in flags:
                acts.write(call.shell, flags.partition("w")[2].strip(), call.argv)


def _parts(text: str) -> list[str]:
    """Parts of an `s` command: pattern, replacement, flags."""
    mark = text[1]
    parts: list[str] = []
    current, i = "", 2
    while i < len(text):
        if text[i] == "\\" and i + 1 < len(text):
            current += text[i + 1] if text[i + 1] == mark else text[i : i + 2]
            i += 2
            continue
        if text[i] == mark and len(parts) < 2:
            parts.append(current)
            current = ""
        else:
            current += text[i]
        i += 1
    return [*parts, current]


def _edited(scripts: list[str], data: str) -> str:
    """Replacing one literal text with another can be followed; anything else cannot."""
    if not data or not is_known(data):
        return data if data.strip(UNKNOWN + "\n") == "" and data else UNKNOWN + taints(data) if data else UNKNOWN
    for script in scripts:
        parts = _parts(script) if script.startswith("s") and len(script) > 3 and not script[1].isalnum() else []
        if len(parts) < 3 or any(letter in parts[0] for letter in ".*[]^$\\+?(){}|") or set(parts[2]) - set("g"):
            return OPAQUE
        data = data.replace(parts[0], parts[1].replace("\\", ""), -1 if "g" in parts[2] else 1)
    return data
