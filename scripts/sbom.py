"""Write a bill of materials: a CycloneDX 1.6 document of Ralph and what it installs, as the lock pins it.

.venv/bin/python scripts/sbom.py [FILE]      (default: to stdout)

It covers the dependencies and the extras `tui`, `web` and `otel`. `notify`, `ray` and `claude` are not in the
environment it reads; their resolution is the installer's.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "dev.lock"
VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
NAME = "ralph-loop-engine"
EXTRAS = ("tui", "web", "otel")
OPEN = ("notify", "ray", "claude")


def main(arguments: list[str]) -> int:
    text = json.dumps(document(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())), indent=2) + "\n"
    if arguments:
        Path(arguments[0]).write_text(text)
    else:
        print(text, end="")
    return 0


def document(now: int) -> dict[str, Any]:
    needed = closure(NAME, ())
    optional = {name for extra in EXTRAS for name in closure(NAME, (extra,))} - needed
    own = component(NAME)
    graph = [(own["bom-ref"], sorted(_needs(NAME, EXTRAS)))]
    graph += [(reference(name), sorted(_needs(name, ()))) for name in sorted(needed | optional)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own['purl'] + LOCK.read_text())}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            "component": own | {"type": "application"},
            "properties": [{"name": "ralph:extras-not-covered", "value": ", ".join(OPEN)}],
        },
        "components": [
            component(name) | {"scope": "required" if name in needed else "optional", "hashes": _hashes(name)}
            for name in sorted(needed | optional)
        ],
        "dependencies": [{"ref": ref, "dependsOn": [reference(name) for name in names]} for ref, names in graph],
    }


def closure(name: str, extras: tuple[str, ...]) -> set[str]:
    """What it needs, and what that needs."""
    found: set[str] = set()
    waiting = list(_needs(name, extras))
    while waiting:
        if (one := waiting.pop()) not in found:
            found.add(one)
            waiting += _needs(one, ())
    return found


def _needs(name: str, extras: tuple[str, ...]) -> set[str]:
    """Its direct requirements on the system that runs this."""
    wanted = [Requirement(text) for text in distribution(name).requires or ()]
    return {
        canonicalize_name(one.name)
        for one in wanted
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    }


def component(name: str) -> dict[str, Any]:
    metadata = distribution(name).metadata
    known: dict[str, Any] = {"type": "library", "bom-ref": reference(name), "name": name, "purl": reference(name)}
    licence = (metadata.get_all("License-Expression") or [""])[0]
    classes = [
        line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or () if line.startswith("License")
    ]
    if licence:
        known["licenses"] = [{"expression": licence}]
    elif named := [words[-1] for words in classes if words[0] == "License" and len(words) > 2]:
        known["licenses"] = [{"license": {"name": text}} for text in named]
    return known | {"version": version_of(name)}


def reference(name: str) -> str:
    return f"pkg:pypi/{name}@{version_of(name)}"


def version_of(name: str) -> str:
    """Of Ralph: what the source here says, whatever is installed."""
    if name != NAME:
        return distribution(name).version
    found = VERSION.search((ROOT / "src" / "ralph" / "__init__.py").read_text())
    return found[1] if found else ""


def _hashes(name: str) -> list[dict[str, str]]:
    """Of every file of this version that the lock allows."""
    pinned = re.search(rf"^{re.escape(name)}==.*?(?=^\S|\Z)", LOCK.read_text(), re.MULTILINE | re.DOTALL)
    found = re.findall(r"--hash=sha256:([0-9a-f]{64})", pinned[0]) if pinned else []
    return [{"alg": "SHA-256", "content": one} for one in found]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
