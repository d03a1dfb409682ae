"""A run on a local Ray cluster: nodes are killed and frozen while it works, and every story is accepted exactly once.

Runs in a network and a process namespace of its own, so that nothing of it can be reached or is left."""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ralph.host.process.tree import descendants, identify

EPILOG = """examples:
  python bench/cluster.py                                  40 stories, 3 nodes, one killed, one frozen
  python bench/cluster.py --stories 6 --nodes 2 --kill 0 --freeze 0
  python bench/cluster.py --stories 8 --kill-driver        the run itself is killed, and started again
  python bench/cluster.py --stories 8 --stop               `ralph stop --now` ends all agents
"""
LOOPBACK_UP = """
import fcntl, socket, struct
with socket.socket() as probe:
    fcntl.ioctl(probe, 0x8914, struct.pack("16sh", b"lo", 1))
"""
MARK = "BENCH_AGENT_SECRET"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stories", type=int, default=40, metavar="N")
    parser.add_argument("--nodes", type=int, default=3, metavar="N")
    parser.add_argument("--slots", type=int, default=2, metavar="N", help="per node")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="how long an agent works")
    parser.add_argument("--kill", type=int, default=1, metavar="N", help="nodes to kill")
    parser.add_argument("--freeze", type=int, default=1, metavar="N", help="nodes to freeze")
    parser.add_argument("--kill-driver", action="store_true", help="kill the run when a third is done, and repeat it")
    parser.add_argument("--stop", action="store_true", help="`ralph stop --now` while agents work")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in this folder, and keep it")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.inside:
        unshare = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc"]
        return subprocess.run(
            [*unshare, "--kill-child=KILL", sys.executable, __file__, *sys.argv[1:], "--inside"], check=False
        ).returncode
    exec(LOOPBACK_UP)
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
        return Bench(args, args.keep.resolve()).run()
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as folder:
        return Bench(args, Path(folder)).run()


class Bench:
    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        self.root = folder / "project"
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RALPH", "GIT_", "RAY_"))},
            "HOME": str(folder / "home"),
            "RALPH_STATE_HOME": str(folder / "state"),
            "RALPH_TRUST": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            MARK: "hunter2-of-the-agent",
            "BENCH_OTHER_SECRET": "hunter2-of-nobody",
        }
        self.problems: list[str] = []
        self.begun = time.monotonic()

    def run(self) -> int:
        self.make()
        self.ralph("cluster", "up", "--nodes", str(self.args.nodes), "--slots", str(self.args.slots))
        if self.problems:
            print(self.problems[0], flush=True)
            return 1
        self.say(f"{self.args.nodes} nodes with {self.args.slots} slots each")
        try:
            self.stop_run() if self.args.stop else self.work()
        finally:
            self.thaw()
            self.ralph("cluster", "down")
        left = [row for row in self.processes() if row != "Z"]
        if len(left) > 1:
            self.problems.append(f"{len(left) - 1} processes are left: {self.commands()}")
        for problem in self.problems:
            print(f"PROBLEM: {problem}", flush=True)
        print("nothing wrong" if not self.problems else f"{len(self.problems)} problems", flush=True)
        return 1 if self.problems else 0

    def make(self) -> None:
        numbers = range(1, self.args.stories + 1)
        stories = [
            {"id": f"US-{n:03}", "title": f"Write file {n}", "description": f"Write files/{n}.txt.", "priority": n,
             "acceptanceCriteria": [f"files/{n}.txt exists"], "verify": [f"test -s files/{n}.txt"], "passes": False}
            for n in numbers
        ]  # fmt: skip
        acts = {
            f"US-{n:03}": [
                {"implement": [
                    {"run": f"printenv {MARK} > /dev/null && ! printenv BENCH_OTHER_SECRET"},
                    {"sleep": self.args.seconds},
                    {"write": {"path": f"files/{n}.txt", "text": f"{n}\n"}},
                    {"claim": "done"},
                ]}
            ]
            for n in numbers
        }  # fmt: skip
        feature = self.root / ".ralph" / "bench"
        feature.mkdir(parents=True)
        (self.folder / "home").mkdir()
        plan = {
            "feature": "bench",
            "branchName": "main",
            "description": "Files, one for each story.",
            "createdAt": "2026-01-31T09:30:00Z",
            "userStories": stories,
        }
        (feature / "prd.json").write_text(json.dumps(plan, indent=1))
        script = self.folder / "script.yaml"
        script.write_text(json.dumps({"model": "bench-1", "stories": acts}))
        settings: dict[str, Any] = {
            "agent": {"name": "scripted", "script": str(script), "env": [MARK]},
            "env": "minimal",
            "checks": [{"name": "files", "command": "test -d files"}],
            "proof": {"minimum": "unproven", "where": "in-place"},
            "sandbox": {"use": "none"},
            "review": {"enabled": False},
            "rate_limit_per_hour": 0,
            "branch": {"auto_create": False},
            "max_iterations": 10_000,
            "max_allowed_iterations": 10_000,
        }
        (self.root / ".ralph" / "config.yaml").write_text(json.dumps(settings))
        (self.root / "files").mkdir()
        (self.root / "files" / ".keep").touch()
        for command in (
            ["init", "-q", "-b", "main"],
            ["config", "user.name", "Bench"],
            ["config", "user.email", "bench@example.test"],
            ["add", "-A"],
            ["commit", "-qm", "start"],
        ):
            subprocess.run(["git", *command], cwd=self.root, env=self.env, check=True)

    def work(self) -> None:
        driver = self.start()
        if self.args.kill_driver:
            self.wait_for_commits(self.args.stories // 3, driver)
            driver.kill()
            driver.wait()
            self.say(f"killed the run with {len(self.commits())} stories done")
            self.wait_for_agents(60)
            driver = self.start()
        nodes = json.loads((self.folder / "state/cluster/cluster.json").read_text())["nodes"][1:]
        if self.args.kill:
            self.wait_for_commits(self.args.stories // 5, driver)
            for node in nodes[: self.args.kill]:
                self.signal_node(node["pid"], signal.SIGKILL)
                self.say(f"killed {node['name']} with {len(self.commits())} stories done")
        self.frozen: list[int] = []
        if self.args.freeze:
            self.wait_for_commits(2 * self.args.stories // 5, driver)
            for node in nodes[self.args.kill : self.args.kill + self.args.freeze]:
                self.frozen += self.signal_node(node["pid"], signal.SIGSTOP)
                self.say(f"froze {node['name']} with {len(self.commits())} stories done")
        try:
            code = driver.wait(timeout=900)
        except subprocess.TimeoutExpired:
            driver.kill()
            code = -9
        self.say(f"the run ended with exit code {code}")
        if code:
            self.problems.append(f"exit code {code}: {(self.folder / 'run.log').read_text()[-1500:]}")
        if self.frozen:
            self.thaw()
            time.sleep(10)  # what comes back must change nothing
        self.inspect()

    def stop_run(self) -> None:
        driver = self.start()
        size = min(self.args.stories, self.args.nodes * self.args.slots)
        until = time.monotonic() + 60
        while self.agents() < size and time.monotonic() < until:
            time.sleep(0.2)
        if (agents := self.agents()) < size:
            self.problems.append(f"{agents} agents at work, not {size}")
        asked = time.monotonic()
        self.ralph("stop", "--now")
        code = driver.wait(timeout=60)
        self.wait_for_agents(30)
        self.say(
            f"{agents} agents worked; exit code {code} and no agent left {time.monotonic() - asked:.1f} s after stop"
        )

    def start(self) -> subprocess.Popen[bytes]:
        size = str(self.args.nodes * self.args.slots)
        with (self.folder / "run.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "ralph", "run", "--on", "ray", "--parallel", size],
                cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def wait_for_commits(self, count: int, driver: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + 300
        while len(self.commits()) < count and driver.poll() is None and time.monotonic() < until:
            time.sleep(0.2)

    def wait_for_agents(self, seconds: float) -> None:
        """Until none is left."""
        until = time.monotonic() + seconds
        while self.agents():
            if time.monotonic() > until:
                self.problems.append(f"{self.agents()} agents after {seconds:.0f} s")
                return
            time.sleep(0.2)

    def agents(self) -> int:
        return sum(b"ralph.agents.play" in data for data in self.read_all("cmdline"))

    def commits(self) -> list[str]:
        """Stories, one for each commit that finished one, on any branch of Ralph or the user's."""
        asked = ["git", "log", "--branches", "--format=%(trailers:key=Ralph-Story,valueonly,separator=%x20)"]
        done = subprocess.run(asked, cwd=self.root, env=self.env, capture_output=True, text=True, check=True)
        return [line.strip() for line in done.stdout.splitlines() if line.strip()]

    def inspect(self) -> None:
        done = collections.Counter(self.commits())
        wanted = {f"US-{n:03}" for n in range(1, self.args.stories + 1)}
        twice = [story for story, count in done.items() if count != 1]
        missing = sorted(wanted - set(done))
        self.say(f"{len(wanted & set(done))} of {len(wanted)} stories, {len(twice)} more than once")
        if missing or twice:
            self.problems.append(f"missing: {missing}; twice: {twice}")
        wrong = [n for n in range(1, self.args.stories + 1) if not (self.root / f"files/{n}.txt").exists()]
        if wrong:
            self.problems.append(f"files that are not in the checkout: {wrong}")
        text = b"".join(path.read_bytes() for path in (self.folder / "state").rglob("*.jsonl"))
        if b"hunter2" in text:
            self.problems.append("a secret is in a journal")

    def signal_node(self, pid: int, number: int) -> list[int]:
        pids = [process.pid for process in descendants(pid)]
        for one in (pid, *pids):
            if identify(one):
                os.kill(one, number)
        return [pid, *pids]

    def thaw(self) -> None:
        for pid in getattr(self, "frozen", []):
            if identify(pid):
                os.kill(pid, signal.SIGCONT)

    def read_all(self, name: str) -> list[bytes]:
        """This file of every process."""
        found = []
        for path in Path("/proc").glob(f"[0-9]*/{name}"):
            with contextlib.suppress(OSError):  # it has just ended
                found.append(path.read_bytes())
        return found

    def processes(self) -> list[str]:
        return [data.rpartition(b")")[2].split()[0].decode() for data in self.read_all("stat")]

    def commands(self) -> str:
        lines = (data.replace(b"\0", b" ").decode(errors="replace")[:120] for data in self.read_all("cmdline"))
        return "; ".join(filter(None, lines))

    def ralph(self, *args: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "ralph", *args],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            self.problems.append(f"ralph {' '.join(args)}: exit code {done.returncode}: {done.stderr[-500:]}")

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
