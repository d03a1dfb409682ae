"""`ralph cluster`: nodes that listen where they should, want a token, and leave nothing when they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import ralph_here
from support.private_network import run_inside

LIFE = """
import json, os, pathlib, subprocess, sys
ralph = [sys.executable, "-m", "ralph", "cluster"]
def run(*args, env=None):
    done = subprocess.run([*ralph, *args], capture_output=True, text=True, env={**os.environ, **(env or {})})
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}
def processes():
    states = [path.read_text().rpartition(")")[2].split()[0] for path in pathlib.Path("/proc").glob("[0-9]*/stat")]
    return len([state for state in states if state != "Z"])  # those that this script adopted are not reaped
def listening():
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in pathlib.Path(table).read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == "0A":
                found.add(fields[1].partition(":")[0])
    return sorted(found)
state = pathlib.Path(os.environ["RALPH_STATE_HOME"], "cluster")
answers = {"before": processes()}
answers["up"] = run("up", "--nodes", "1", "--slots", "3", env={"SECRET_OF_MINE": "hunter2"})
answers["listening"] = listening()
answers["mode"] = oct((state / "token").stat().st_mode & 0o777)
answers["has_secret"] = any(
    b"hunter2" in path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/environ")
)
answers["status"] = run("status", "--json")
answers["plain"] = run("status")
answers["again"] = run("up")
token = (state / "token").read_text()
(state / "token").write_text("0" * 64)
answers["wrong_token"] = run("status")
(state / "token").write_text(token)
record = json.loads((state / "cluster.json").read_text())
os.kill(record["nodes"][-1]["pid"], 9)  # what it had started is orphaned, and still ends
answers["down"] = run("down")
answers["left"] = sorted(path.name for path in state.iterdir())
answers["folder"] = pathlib.Path(record["folder"]).exists()
answers["after"] = processes()
print(json.dumps(answers))
"""


@pytest.mark.slow
@pytest.mark.needs("ray", "unshare")
def test_a_local_cluster_comes_up_and_leaves_nothing(tmp_path: Path) -> None:
    done = run_inside(LIFE, cwd=tmp_path, timeout=180)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])

    assert answers["up"]["code"] == 0, answers["up"]
    assert "1 node, 3 slots" in answers["up"]["out"]
    assert set(answers["listening"]) <= {"0100007F", "0000000000000000FFFF00000100007F"}, "not only on the loopback"
    assert answers["mode"] == "0o600"
    assert answers["has_secret"] is False
    nodes = json.loads(answers["status"]["out"])["nodes"]
    assert [(node["is_head"], node["slots"], node["used"]) for node in nodes] == [(True, 0, 0), (False, 3, 0)]
    assert "0 of 3 slots in use" in answers["plain"]["out"]
    assert answers["plain"]["err"] == ""
    assert (answers["again"]["code"], "already has nodes" in answers["again"]["err"]) == (64, True)
    assert answers["wrong_token"]["code"] == 78, answers["wrong_token"]
    assert answers["down"]["code"] == 0, answers["down"]
    assert answers["left"] == ["cluster.lock"]
    assert answers["folder"] is False
    assert answers["after"] == answers["before"]


@pytest.mark.needs("ray")
def test_without_a_cluster_status_says_how_to_start_one(tmp_path: Path) -> None:
    done = ralph_here("cluster", "status", cwd=tmp_path)
    assert done.code == 64
    assert "ralph cluster up" in done.err


def test_without_ray_the_extra_is_named(tmp_path: Path) -> None:
    code = "import sys; sys.modules['ray'] = None; from ralph.cli.main import main; sys.exit(main(sys.argv[1:]))"
    for command in ("up", "status"):
        argv = [sys.executable, "-c", code, "cluster", command]
        done = subprocess.run(argv, env=dict(os.environ), cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 78
        assert "pip install 'ralph-loop-engine[ray]'" in done.stderr


def test_down_without_a_cluster_is_no_error(tmp_path: Path) -> None:
    done = ralph_here("cluster", "down", cwd=tmp_path)
    assert done.code == 0
    assert "no nodes" in done.err


@pytest.mark.needs("ray")
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("up", "--nodes", "-1"), "--nodes has to be between 0 and 64, not -1"),
        (("up", "--slots", "0"), "--slots has to be between 1"),
        (("up", "--listen", "203.0.113.9"), "cannot listen on 203.0.113.9"),
    ],
)
def test_numbers_and_addresses_are_checked(args: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = ralph_here("cluster", *args, cwd=tmp_path)
    assert done.code == 64
    assert words in done.err


def test_an_address_without_a_port_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    done = ralph_here("cluster", "join", "head", "--token-file", str(tmp_path / "token"), cwd=tmp_path)
    assert done.code == 64
    assert "HOST:PORT" in done.err
