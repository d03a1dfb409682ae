"""`prd.json` of snarktank/ralph and of those who followed it: user stories that pass or do not."""

from __future__ import annotations

import msgspec

from ralph.core.problems import Place, Problem
from ralph.importing import wording
from ralph.importing.records import Form, decode, located, read_all, texts
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch, NoTasks, remark, source_home

_FORM = Form(
    kind="snarktank",
    needs=("dependson", "dependencies", "blockedby"),
    verify=("verify", "verification", "verifycommand", "verificationcommands", "testcommand"),
    status=("passes", "status"),
    has_markup=False,
)
_COMMANDS = ("verifyCommands", "verificationCommands", "qualityChecks")
_TAKEN = {"project", "name", "userStories", *_COMMANDS}


def recognise(sample: Sample) -> bool:
    stories = (sample.record or {}).get("userStories")
    if not isinstance(stories, list) or "feature" in (sample.record or {}):
        return False
    return not any(isinstance(story, dict) and "reviewStatus" in story for story in stories)


def read(text: str, file: str) -> Batch:
    document = decode(text, file)
    listed = document.get("userStories") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise NoTasks("this is no prd.json", where=Place(file), hint='it has stories in a list "userStories"')
    batch = read_all(located(text, file, listed, ("userStories",)), file, _FORM, home=source_home(file))
    commands = [line for name in _COMMANDS for line in _commands(document.get(name))]
    kept = {key: value for key, value in document.items() if key not in _TAKEN and (texts(value) or value is True)}
    left = batch.left + _beside(kept, file)
    return msgspec.structs.replace(
        batch, name=wording.title(str(document.get("project") or "")), verify=tuple(commands), left=left
    )


def _commands(value: object) -> list[str]:
    return texts(list(value.values()) if isinstance(value, dict) else value)


def _beside(kept: dict[str, object], file: str) -> tuple[Problem, ...]:
    """What the document says beside its stories."""
    said = ", ".join(wording.line(name) for name in kept)
    return (remark("left-out", f"what the document says beside its stories: {said}", file, 1),) if said else ()
