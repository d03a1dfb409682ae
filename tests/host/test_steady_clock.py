"""The clock of a run never goes back: checked with an injected clock, and with the system's clock really set back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralph.host.clocks import SteadyClock

FAKE_TIME = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, t);
    const char *path = getenv("CLOCK_BACK");
    if (id == CLOCK_REALTIME && path) {
        long back = 0;
        FILE *file = fopen(path, "re");
        if (file) { if (fscanf(file, "%ld", &back) != 1) back = 0; fclose(file); }
        t->tv_sec -= back;
    }
    return code;
}
"""


class Times:
    def __init__(self) -> None:
        self.wall, self.monotonic = 1000.0, 50.0

    def pass_by(self, seconds: float, *, set_back: float = 0) -> None:
        self.wall += seconds - set_back
        self.monotonic += seconds


def test_a_clock_that_is_set_back_goes_on_by_the_monotonic_one() -> None:
    times = Times()
    clock = SteadyClock(lambda: times.wall, lambda: times.monotonic)
    times.pass_by(10)
    assert clock() == 1010
    times.pass_by(10, set_back=3600)
    assert clock() == pytest.approx(1020, abs=0.1)
    times.pass_by(7200)
    assert clock() == pytest.approx(8220, abs=8)


def test_a_computer_that_slept_has_missed_time_that_counts() -> None:
    times = Times()
    clock = SteadyClock(lambda: times.wall, lambda: times.monotonic)
    times.wall += 8 * 3600
    assert clock() == 1000 + 8 * 3600


@pytest.mark.slow
@pytest.mark.usefixtures("git_identity")
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs a C compiler and LD_PRELOAD")
def test_a_clock_set_back_during_a_wait_does_not_lengthen_it(tmp_path: Path) -> None:
    """The agent's limit resets in six seconds. Two seconds into the wait, the clock is set back by an hour."""
    source, library, back = tmp_path / "fake.c", tmp_path / "fake.so", tmp_path / "back"
    source.write_text(FAKE_TIME)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=60)
    root, agent = tmp_path / "repo", tmp_path / "agent.sh"
    agent.write_text(
        """#!/bin/sh
cat > /dev/null
[ -e ../limited ] || { touch ../limited; echo "usage limit reached, try again in 6 seconds"; exit 1; }
echo x > "$RALPH_STORY.txt"; echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"; echo well
"""
    )
    agent.chmod(0o755)
    story = {"id": "S-1", "title": "s", "acceptanceCriteria": ["c"], "priority": 1, "passes": False, "notes": ""}
    head = {"feature": "work", "branchName": "main", "description": "d", "createdAt": "2026-01-01"}
    (root / ".ralph/work").mkdir(parents=True)
    (root / ".ralph/work/prd.json").write_text(json.dumps(head | {"userStories": [story]}))
    config = {
        "agent": {"name": "command", "command": [str(agent)]},
        "checks": [{"name": "true", "command": "true"}],
        "review": {"enabled": False},
        "proof": {"minimum": "unproven"},
        "archive": {"on_complete": False},
        "branch": {"auto_create": False},
    }
    (root / ".ralph/config.yaml").write_text(json.dumps(config))
    for command in ("init -q -b main", "add -A", "commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=root, check=True)
    env = {**os.environ} | {"LD_PRELOAD": str(library), "CLOCK_BACK": str(back), "RALPH_TRUST": "1"}
    begun = time.monotonic()
    run = subprocess.Popen([sys.executable, "-m", "ralph", "run", "--json"], cwd=root, env=env, stdout=subprocess.PIPE)
    assert run.stdout is not None
    records = []
    for line in run.stdout:
        records.append(json.loads(line))
        if records[-1]["event"]["type"] == "WaitStarted":
            time.sleep(2)
            back.write_text("3600")
    assert run.wait(60) == 0
    run.stdout.close()
    assert time.monotonic() - begun < 45
    ended = [record["event"] for record in records if record["event"]["type"] == "IterationEnded"]
    assert [event["kind"] for event in ended] == ["limit", "accepted"]
    assert all(0 <= event["seconds"] < 30 for event in ended)
    times = [record["t"] for record in records]
    assert times == sorted(times), "the journal's times keep their order"
