"""Splits a command line into parts, and weighs its output only if one of them may have run tests."""

from ralph.hooks.results.kinds import PERHAPS, TELLING, TEST, UNKNOWN
from ralph.hooks.results.programs import kind
from ralph.hooks.results.shell import Part, split
from ralph.hooks.results.wrappers import unwrapped

Verdict = tuple[bool, bool, str]
"""Whether tests ran, whether they failed, and the framework."""

NO_TESTS: Verdict = (False, False, "")
_DEEPEST = 4


def judge(command: str, output: str, code: int | None) -> Verdict:
    parts = roles(command)
    if command.strip() and not any(part.role in (TEST, PERHAPS, UNKNOWN) for part in parts):
        return NO_TESTS
    if not any(part.role == TEST for part in parts) and not any(word in output for word in TELLING):
        return NO_TESTS
    from ralph.hooks.results.weighing import weigh  # with `re` and many patterns: dear, and seldom needed

    code, output = _told_by_client(output, code)
    return weigh(parts, output, code)


def roles(command: str, depth: int = 0) -> list[Part]:
    """The parts of a command line with the role of each; `part.text` of a test run names its framework."""
    out: list[Part] = []
    for part in split(command):
        words, inner = unwrapped(part.words)
        if inner and depth < _DEEPEST:
            nested = roles(inner, depth + 1)
            if nested:
                nested[0].joint = part.joint
                out += nested
            continue
        part.role, part.text = kind(words)
        part.words = words or part.words
        out.append(part)
    return out


def _told_by_client(output: str, code: int | None) -> tuple[int | None, str]:
    """A client that reports a failure to the hook puts the exit code on the first line of the output."""
    if not output.startswith("Exit code "):
        return code, output
    line, _, rest = output.partition("\n")
    number = line[len("Exit code ") :].strip()
    return (int(number), rest) if number.isdigit() and len(number) < 4 else (code, output)
