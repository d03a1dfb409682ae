"""The wheel and the sdist: complete, small, pure Python, and the same bytes wherever they are built."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest
from check_dist import LARGEST_WHEEL, WANTED, check

from ralph import __version__
from ralph.cli.table import shown
from support import built

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built.dist(tmp_path_factory)


@pytest.fixture(scope="module")
def wheel(dist: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(dist.glob("*.whl")))


def test_what_is_built_passes_the_check_of_a_release(dist: Path) -> None:
    assert list(check(dist, __version__)) == []


def test_the_wheel_has_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    package = ROOT / "src"
    ours = {str(path.relative_to(package)) for path in (package / "ralph").rglob("*") if path.is_file()}
    shipped = {name for name in wheel.namelist() if name.startswith("ralph/")}
    assert shipped == {name for name in ours if "__pycache__" not in name}
    assert set(WANTED) <= shipped


def test_the_wheel_is_small_pure_python_and_has_the_man_pages(wheel: zipfile.ZipFile) -> None:
    assert Path(str(wheel.filename)).name.endswith("-py3-none-any.whl")
    assert Path(str(wheel.filename)).stat().st_size <= LARGEST_WHEEL
    pages = {name.rpartition("/share/man/man1/")[2] for name in wheel.namelist() if ".data/" in name}
    assert pages == {"ralph.1", *(f"ralph-{name}.1" for name in shown())}


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    folder = f"ralph_loop_engine-{__version__}.dist-info"
    metadata = wheel.read(f"{folder}/METADATA").decode()
    for extra in ("all", "claude", "notify", "otel", "ray", "tui", "web"):
        assert f"Provides-Extra: {extra}\n" in metadata
    programs = wheel.read(f"{folder}/entry_points.txt").decode()
    assert "ralph = ralph.__main__:main\nralph-hook = ralph.hooks.entry:main\n" in programs
    assert f"{folder}/licenses/LICENSE" in wheel.namelist()


@pytest.mark.slow
def test_another_folder_and_another_umask_give_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    """The wheel is built from the sdist in both, so that both are compared."""
    with tarfile.open(next(dist.glob("*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    again = built.build(source.rename(tmp_path / "some other folder"), tmp_path / "again", umask=0o077)
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in dist.iterdir()
    }


def broken(dist: Path, folder: Path, lost: str, added: str = "") -> Path:
    """The same with a wheel without one file, or with one more."""
    folder.mkdir()
    for path in dist.iterdir():
        if path.suffix != ".whl":
            (folder / path.name).write_bytes(path.read_bytes())
            continue
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(folder / path.name, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                if not name.endswith(lost or "\0"):
                    new.writestr(name, old.read(name))
            if added:
                new.writestr(added, b"")
    return folder


@pytest.mark.parametrize(
    ("lost", "added", "problem"),
    [
        ("py.typed", "", "the wheel lacks ralph/py.typed"),
        ("app.tcss", "", "the wheel lacks ralph/tui/app.tcss"),
        (".1", "", "the wheel has no man pages"),
        ("METADATA", "", "the wheel has no metadata"),
        ("cli/man.py", "", "the wheel lacks ralph/cli/man.py, which the sdist has"),
        ("", "ralph/cli/man.pyc", "the wheel has ralph/cli/man.pyc"),
    ],
)
def test_the_check_finds_what_is_wrong(dist: Path, tmp_path: Path, lost: str, added: str, problem: str) -> None:
    assert problem in list(check(broken(dist, tmp_path / "broken", lost, added), __version__))


def test_the_check_finds_another_version_and_a_missing_file(dist: Path, tmp_path: Path) -> None:
    assert list(check(dist, "9.9.9")) == [f"Version of the wheel is {__version__!r}, not '9.9.9'"]
    assert list(check(tmp_path)) == [f"{tmp_path} has 0 wheels and 0 sdists; there must be one of each"]
