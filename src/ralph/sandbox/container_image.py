"""The image of a container: the one that the user names, or Ralph's own, built from the Containerfile beside this."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from ralph.host.process.start import CannotStart, Finished, run

CONTAINERFILE = Path(__file__).with_name("Containerfile")
_BUILD_SECONDS = 3600.0
_SECONDS = 60.0
_existing: set[tuple[str, str]] = set()
_building = threading.Lock()


def own_image() -> str:
    """A new name whenever the Containerfile changes."""
    return f"ralph-sandbox:{sha256(CONTAINERFILE.read_bytes()).hexdigest()[:12]}"


def prepare_image(program: str, image: str, report: Callable[[str], None] | None = None) -> str:
    """The name of an image that exists. One that is missing is pulled; Ralph's own is built. Both can take minutes;
    `report` gets a line about it. Raises CannotStart."""
    name = image or own_image()
    with _building:
        if (program, name) not in _existing:
            if not _call(program, ("image", "inspect", name), _SECONDS).ok:
                _make_image(program, image, report or (lambda line: None))
            _existing.add((program, name))
    return name


def _make_image(program: str, image: str, report: Callable[[str], None]) -> None:
    client = Path(program).name
    if image:
        report(f"pulling the container image {image}")
        done = _call(program, ("pull", image), _BUILD_SECONDS)
        problem, hint = f"could not pull the container image {image}", "check sandbox.image"
    else:
        name = own_image()
        report(f"building the container image {name}: this happens once and takes a few minutes")
        with tempfile.TemporaryDirectory(prefix="ralph-") as empty:
            done = _call(program, ("build", "--tag", name, "--file", str(CONTAINERFILE), empty), _BUILD_SECONDS)
        problem = f"could not build the container image {name}"
        hint = f"run `{client} build --tag {name} --file {CONTAINERFILE} {CONTAINERFILE.parent}` to see why, "
        hint += "or set sandbox.image to an image that has python3, git and the agent"
    if not done.ok:
        lines = done.err.decode("utf-8", "replace").strip().splitlines()
        why = "it took longer than an hour" if done.timed_out else lines[-1] if lines else f"exit code {done.code}"
        raise CannotStart(f"{problem}: {why}", hint=hint)


def _call(program: str, arguments: Sequence[str], seconds: float) -> Finished:
    return run((program, *arguments), cwd=Path("/"), timeout=seconds)
