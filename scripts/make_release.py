"""Make a release: set the version, close the changelog, commit, tag, build twice, check, write a bill of materials.

All of it happens in a clone in a temporary folder. This clone gets the commit and the tag only if the build is
complete, reproducible and checked. Nothing is pushed and nothing is published.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check_dist import check
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parent.parent
VERSION_FILE = "src/ralph/__init__.py"
CHANGELOG = "CHANGELOG.md"
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_UNRELEASED = "## [Unreleased]\n"
EXAMPLES = """\
examples:
  scripts/release 0.2.0 --dry-run    build and check it; change nothing here
  scripts/release 0.2.0              commit, tag v0.2.0, and put the files into dist/

then: git push origin main v0.2.0    the tag starts .github/workflows/release.yml, which publishes
"""


class Refused(Exception):
    """The release cannot be made. The message says why and what to do."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/release",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("version", metavar="VERSION", help="the new version, such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="build and check, but change nothing in this clone")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the files go (default: dist; none in a dry run)")
    args = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="ralph-release-") as scratch:
            release(args.version, args.out or (None if args.dry_run else ROOT / "dist"), Path(scratch), args.dry_run)
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(error.stdout or "", error.stderr or "", file=sys.stderr)
        print(f"error: {' '.join(map(str, error.cmd[:4]))} … failed; nothing was changed here", file=sys.stderr)
        return 1
    return 0


def release(version: str, out: Path | None, scratch: Path, dry_run: bool) -> None:
    tag = f"v{version}"
    refuse_unless_possible(version, tag)
    clone = scratch / "clone"
    _git(scratch, "clone", "--quiet", "--local", "--no-tags", str(ROOT), str(clone))
    for key in ("user.name", "user.email"):
        if value := _git(ROOT, "config", "--default", "", "--get", key).strip():
            _git(clone, "config", key, value)
    set_version(clone / VERSION_FILE, version)
    close_changelog(clone / CHANGELOG, version, time.strftime("%Y-%m-%d"))
    if _git(clone, "status", "--porcelain").strip():
        _git(clone, "commit", "--quiet", "--no-verify", "--all", "--message", f"Release {version}")
    _git(clone, "tag", "--annotate", tag, "--message", f"Ralph {version}")
    dist = build(clone, scratch, version)
    print(_git(clone, "show", "--stat", "--format=%h %s", "HEAD").strip())
    for path in sorted(dist.iterdir()):
        print(f"{path.stat().st_size:>9,} {path.name}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        for path in dist.iterdir():
            shutil.copy(path, out)
    if dry_run:
        print(f"dry run: {tag} can be released; nothing was changed here")
        return
    _git(ROOT, "fetch", "--quiet", str(clone), "HEAD", f"refs/tags/{tag}:refs/tags/{tag}")
    _git(ROOT, "merge", "--quiet", "--ff-only", "FETCH_HEAD")
    branch = _git(ROOT, "branch", "--show-current").strip()
    print(f"tagged {tag}. Now: git push origin {branch} {tag}")


def refuse_unless_possible(version: str, tag: str) -> None:
    try:
        wanted = Version(version)
    except InvalidVersion:
        raise Refused(f"{version!r} is no version; write it as 0.2.0 or 0.2.0rc1") from None
    if str(wanted) != version:
        raise Refused(f"{version!r} is written {wanted}")
    if dirty := _git(ROOT, "status", "--porcelain").splitlines():
        raise Refused(
            f"the working tree is not clean ({len(dirty)} files, first {dirty[0][3:]}); commit or stash first"
        )
    if not _git(ROOT, "branch", "--show-current").strip():
        raise Refused("HEAD is detached; switch to the branch to release from")
    tags = _git(ROOT, "tag", "--list", "v*").split()
    if tag in tags:
        raise Refused(f"the tag {tag} exists; choose the next version")
    current = Version(current_version(ROOT / VERSION_FILE))
    if wanted < current:
        raise Refused(f"{version} is older than {current}, the version in {VERSION_FILE}")
    if not unreleased(ROOT / CHANGELOG):
        raise Refused(f"{CHANGELOG} has nothing under [Unreleased]; say what changes for users")


def current_version(file: Path) -> str:
    found = _VERSION.search(file.read_text())
    if not found:
        raise Refused(f"{VERSION_FILE} has no line __version__ = …")
    return found[1]


def set_version(file: Path, version: str) -> None:
    file.write_text(_VERSION.sub(f'__version__ = "{version}"', file.read_text()))


def unreleased(changelog: Path) -> str:
    after = changelog.read_text().partition(_UNRELEASED)[2]
    return re.split(r"^## \[", after, maxsplit=1, flags=re.MULTILINE)[0].strip()


def close_changelog(changelog: Path, version: str, date: str) -> None:
    text = changelog.read_text()
    changelog.write_text(text.replace(_UNRELEASED, f"{_UNRELEASED}\n## [{version}] - {date}\n", 1))


def build(clone: Path, scratch: Path, version: str) -> Path:
    """Wheel and sdist of the tagged commit, twice in different folders: the bytes must be the same."""
    epoch = _git(clone, "log", "-1", "--format=%ct").strip()
    dist, again = scratch / "dist", scratch / "again"
    other = scratch / "another folder"
    _git(scratch, "clone", "--quiet", "--local", str(clone), str(other))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    calls = [
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(source)]
        for source, target in ((clone, dist), (other, again))
    ]
    running = [subprocess.Popen(call, env=environment, stdout=-1, stderr=-2, text=True) for call in calls]
    for process, call in zip(running, calls, strict=True):
        said = process.communicate()[0]
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, call, said)
    if problems := list(check(dist, version)):
        raise Refused("\n  ".join(["the build is not fit to be published:", *problems]))
    for path in dist.iterdir():
        if path.read_bytes() != (again / path.name).read_bytes():
            raise Refused(f"{path.name} differs between two builds of the same commit")
    bill = dist / f"ralph_loop_engine-{version}.cdx.json"
    call = [sys.executable, str(clone / "scripts" / "sbom.py"), str(bill)]
    subprocess.run(call, env=environment, check=True, capture_output=True, text=True)
    return dist


def _git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
