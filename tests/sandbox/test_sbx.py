"""Docker Sandboxes, against a stand-in for their command line: no virtual machine can be started in most test beds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.host.process.enclosure import Start
from ralph.host.process.start import Finished, run
from ralph.sandbox import sbx
from ralph.sandbox.wall import Mount, Wall, Walled

STAND_IN = Path(__file__).parents[1] / "support" / "sbx"
pytestmark = [
    pytest.mark.needs("bwrap"),
    pytest.mark.skipif(sys.platform != "linux", reason="the stand-in needs bwrap"),
]


class Bed:
    """A project, a login, and the stand-in."""

    def __init__(self, folder: Path, spelling: str) -> None:
        self.state, self.project, self.login = folder / "state", folder / "My Project", folder / "login"
        for made in (self.state, self.project, self.login, folder / "bin", folder / "elsewhere"):
            made.mkdir()
        self.program = str(folder / "bin" / spelling)
        Path(self.program).write_text(f"#!{sys.executable} -IS\n{STAND_IN.read_text()}")  # faster than `env python3`
        Path(self.program).chmod(0o755)
        self.path = f"{folder / 'bin'}:/usr/bin:/bin"
        self.wall = Wall(
            home=folder, home_source=self.login, writable=(self.project,), hosts=("pypi", "*.example.org:8443")
        )
        self.name = sbx.name_of(self.project)

    def calls(self) -> list[list[str]]:
        file = self.state / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def words(self) -> list[str]:
        """What was called, without looking and what comes with it."""
        short = [" ".join(call[:2] if call[0] in ("policy", "network") else call[:1]) for call in self.calls()]
        return [words for words in short if words not in ("ls", "exec", "policy check", "version")]

    def inside(self, *argv: str, stdin: bytes = b"", wall: Wall | None = None, **env: str) -> Finished:
        walled = Walled(sbx, self.program, wall or self.wall)
        variables = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **env}
        return run(argv, cwd=self.project, env=variables, stdin=stdin, enclosure=walled)


@pytest.fixture(params=["sbx", "docker"])
def bed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bed:
    return make_bed(tmp_path, monkeypatch, request.param)


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bed:
    """Only the current spelling."""
    return make_bed(tmp_path, monkeypatch, "sbx")


def make_bed(folder: Path, monkeypatch: pytest.MonkeyPatch, spelling: str) -> Bed:
    bed = Bed(folder, spelling)
    kvm = folder / "kvm"
    kvm.touch()
    monkeypatch.setattr(sbx, "KVM", kvm)
    monkeypatch.setattr(sbx, "SYNC_SECONDS", 0)
    monkeypatch.setenv("SBX_STAND_IN", str(bed.state))
    a_new_run()
    return bed


def a_new_run() -> None:
    sbx._prepared.clear()


class TestFind:
    def test_it_is_found_in_both_spellings(self, bed: Bed) -> None:
        found = sbx.find({"PATH": bed.path})
        assert (found.program, found.version, found.why_not) == (bed.program, "0.43.0", "")

    def test_what_is_missing(self, bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert sbx.find({"PATH": str(tmp_path)}).why_not == "sbx is not installed"
        (bed.state / "logged-out").touch()
        found = sbx.find({"PATH": bed.path})
        assert (found.why_not, found.hint) == ("sbx is not logged in", "sbx login")
        monkeypatch.setattr(sbx, "KVM", tmp_path / "none")
        found = sbx.find({"PATH": bed.path})
        assert found.why_not == f"sbx needs {tmp_path}/none, which does not exist here"

    def test_docker_without_sandboxes_is_not_it(self, tmp_path: Path) -> None:
        (tmp_path / "docker").write_text('#!/bin/sh\necho "docker: unknown command: docker $1" >&2\nexit 1\n')
        (tmp_path / "docker").chmod(0o755)
        assert sbx.find({"PATH": f"{tmp_path}:/bin"}).why_not == "sbx is not installed"


class TestInside:
    def test_a_command_runs_as_if_it_were_outside(self, bed: Bed) -> None:
        words = ("a b", "$HOME", "it's", "*", "", "--", "-x")
        script = "import os, sys; print(os.getcwd(), os.environ['A'], os.environ['B'], sys.argv[1:], sys.stdin.read())"
        ended = bed.inside("python3", "-c", script, *words, stdin=b"input", A="x=y z", B="two\nlines")
        assert ended.out.decode() == f"{bed.project} x=y z two\nlines {list(words)!r} input\n"
        assert (ended.code, ended.err, ended.problem) == (0, b"", "")

    def test_variables_and_programs_of_this_machine_stay_here(self, bed: Bed, tmp_path: Path) -> None:
        ended = bed.inside("sh", "-c", "echo $PATH $HOME; env", TMPDIR="/nowhere", HTTPS_PROXY="x", LD_PRELOAD="x")
        assert ended.out.startswith(b"/usr/local/bin:/usr/bin:/bin /home/agent\n")
        assert not [word for word in (b"nowhere", b"PROXY", b"LD_") if word in ended.out]
        assert bed.inside(f"{tmp_path}/elsewhere/echo", "found").out == b"found\n"  # by name, on the PATH inside
        (bed.project / "own").write_text("#!/bin/sh\necho own\n")
        (bed.project / "own").chmod(0o755)
        assert bed.inside(str(bed.project / "own")).out == b"own\n"

    def test_no_secret_is_an_argument(self, bed: Bed) -> None:
        ended = bed.inside("sh", "-c", "echo $TOKEN", TOKEN="s3cret")
        assert ended.out == b"s3cret\n"
        assert "s3cret" not in (bed.state / "calls").read_text()
        file = next(call[call.index("--env-file") + 1] for call in bed.calls() if "--env-file" in call)
        assert not Path(file).exists()

    def test_only_its_folders_are_there(self, bed: Bed, tmp_path: Path) -> None:
        ended = bed.inside("sh", "-c", f"ls {tmp_path}; echo 1 > made")
        assert ended.out.decode().splitlines() == ["My Project", "login"]
        assert (bed.project / "made").read_text() == "1\n"

    def test_exit_codes(self, bed: Bed) -> None:
        assert bed.inside("sh", "-c", "exit 7").code == 7
        failed = bed.inside("sh", "-c", "exit 1")
        assert (failed.code, failed.problem) == (1, "")

    def test_a_sandbox_that_is_gone_is_no_failure_of_the_command(self, bed: Bed) -> None:
        """`exec` returns 1 for both."""
        bed.inside("true")
        walled = Walled(sbx, bed.program, bed.wall)
        argv = ("sh", "-c", "sleep 1; exit 1")
        remove = [bed.program, *(["sandbox", "rm"] if bed.program.endswith("docker") else ["rm", "--force"]), bed.name]
        with subprocess.Popen(["sh", "-c", 'sleep 0.5; "$@"', "sh", *remove]):
            ended = run(argv, cwd=bed.project, env=dict(os.environ), enclosure=walled)
        assert ended.problem == f"the sandbox {bed.name} does not exist any more: it was removed while the command ran"
        assert bed.inside("echo", "again").out == b"again\n"  # in a new one

    def test_what_outlives_its_command_is_ended(self, bed: Bed) -> None:
        """As when only `exec` was killed."""
        label = "ralph-0123456789ab"
        sbx.enter(bed.program, Start(("true",), bed.project, {}), bed.wall, label)
        env = {"HOME": "/", "RALPH_SANDBOX_LABEL": label}
        with (
            subprocess.Popen(["sleep", "4321"], env=env) as left,
            subprocess.Popen(["sleep", "4322"], env=env | {"RALPH_SANDBOX_LABEL": f"{label}0"}) as other,
        ):
            try:
                assert sbx.end(bed.program, label) == ""
                assert left.wait(timeout=10) == -9
                assert other.poll() is None  # of another command
            finally:
                left.kill()
                other.kill()

    def test_files_get_time_to_arrive(self, new: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
        new.inside("true")
        monkeypatch.undo()
        assert 2 <= sbx.SYNC_SECONDS <= 3
        monkeypatch.setenv("SBX_STAND_IN", str(new.state))
        begun = time.monotonic()
        new.inside("true")
        assert time.monotonic() - begun > sbx.SYNC_SECONDS

    def test_what_sbx_cannot_do(self, new: Bed) -> None:
        for wall, reason in (
            (Wall(home=new.login, writable=(new.project,), mounts=(Mount(Path("/a"), Path("/b")),)), "at other paths"),
            (Wall(home=new.login, writable=(new.project,), forwards=(8080,)), r"services of this machine"),
        ):
            with pytest.raises(SetupError, match=reason):
                new.inside("true", wall=wall)
        assert not new.calls()


class TestLife:
    def test_one_sandbox_serves_all_iterations(self, bed: Bed) -> None:
        old = bed.program.endswith("docker")
        for _ in range(3):
            bed.inside("sh", "-c", "echo kept >> ~/file")
        assert bed.words() == (["create", "network proxy"] if old else ["policy init", "create", "policy allow"])
        assert bed.inside("sh", "-c", "cat ~/file").out == b"kept\n" * 3
        create = next(call for call in bed.calls() if call[0] == "create")
        assert create[:4] == ["create", "--name", bed.name, "claude"]
        assert create[4:6] == [str(bed.project), str(bed.login)]
        assert all(folder.endswith(":ro") for folder in create[6:])

    def test_a_new_run_restarts_it(self, bed: Bed) -> None:
        """Files that a person changed meanwhile are seen only after that."""
        bed.inside("true")
        before = len(bed.words())
        a_new_run()
        assert bed.inside("echo", "up").out == b"up\n"
        assert bed.words()[before] == "stop"
        assert "create" not in bed.words()[before:]

    def test_restart_and_reset(self, bed: Bed) -> None:
        assert not sbx.reset(bed.program, bed.name)
        bed.inside("touch", "/home/agent/mark")
        sbx.restart(bed.program, bed.name)
        assert bed.words()[-1] == "stop"
        assert bed.inside("ls", "/home/agent/mark").code == 0
        assert sbx.reset(bed.program, bed.name)
        assert bed.words()[-2:] == ["stop", "rm"]
        assert not sbx.reset(bed.program, bed.name)

    def test_names_are_stable_and_distinct(self, tmp_path: Path) -> None:
        assert sbx.name_of(Path("/a/My Project!")) == sbx.name_of(Path("/a/My Project!"))
        assert sbx.name_of(Path("/a/My Project!")).startswith("ralph-my-project-")
        assert sbx.name_of(Path("/a/x")) != sbx.name_of(Path("/b/x"))
        assert len(sbx.name_of(Path("/a") / ("long" * 40))) < 60

    def test_the_template_has_the_client(self, new: Bed) -> None:
        new.inside("codex", "--version")
        assert next(call for call in new.calls() if call[0] == "create")[3] == "codex"

    def test_lists_of_older_versions(self, new: Bed) -> None:
        (new.state / "bare").touch()
        new.inside("true")
        assert new.inside("echo", "same").out == b"same\n"
        assert new.words().count("create") == 1

    def test_a_sandbox_without_the_folder(self, new: Bed) -> None:
        new.inside("true")
        a_new_run()
        other = new.project.parent / "elsewhere"
        with pytest.raises(SetupError, match=r"was created without the folder .*elsewhere"):
            new.inside("true", wall=Wall(home=new.login, writable=(new.project, other)))

    def test_creation_that_fails(self, bed: Bed) -> None:
        (bed.state / "create-fails").touch()
        with pytest.raises(SetupError, match=r"could not create the sandbox .*: ERROR: pull access denied"):
            bed.inside("true")

    def test_no_answer_is_no_absence(self, bed: Bed) -> None:
        bed.inside("true")
        (bed.state / "logged-out").touch()
        with pytest.raises(SetupError, match="could not list the sandboxes: ERROR: Not authenticated"):
            bed.inside("true")


class TestLogin:
    def test_it_is_linked_into_the_home_inside(self, bed: Bed) -> None:
        (bed.login / ".claude").mkdir()
        (bed.login / ".claude" / "token").write_text("t")
        (bed.login / ".codex").mkdir()
        ended = bed.inside("sh", "-c", "cat ~/.claude/token ~/.claude.json; touch ~/.codex/new ~/.claude/refreshed")
        assert ended.out == b"t{}\n"
        assert (bed.login / ".codex" / "new").exists()
        assert (bed.login / ".claude" / "refreshed").exists()

    @pytest.mark.parametrize("before", ["", "  \n", '{"a": 1}'])
    def test_the_state_of_the_client_is_valid(self, new: Bed, before: str) -> None:
        (new.login / ".claude.json").write_text(before)
        new.inside("true")
        assert json.loads((new.login / ".claude.json").read_text()) == (json.loads(before) if before.strip() else {})

    def test_a_broken_state_is_not_overwritten(self, new: Bed) -> None:
        (new.login / ".claude.json").write_text("{oops")
        with pytest.raises(SetupError, match=r"\.claude\.json is not valid JSON"):
            new.inside("true")
        assert (new.login / ".claude.json").read_text() == "{oops"

    def test_git_can_commit(self, bed: Bed) -> None:
        ended = bed.inside("sh", "-c", "git init -q . && git commit -q --allow-empty -m x && git log --format=%an,%ae")
        assert ended.out == b"Ralph,ralph@localhost\n"


class TestNetwork:
    def allowed(self, bed: Bed) -> list[str]:
        store: dict[str, dict[str, list[str]]] = json.loads((bed.state / "store.json").read_text())
        return store["allowed"].get(bed.name, [])

    def test_all_is_denied_but_the_hosts(self, bed: Bed) -> None:
        bed.inside("true")
        if bed.program.endswith("docker"):
            hosts = ("pypi.org", "files.pythonhosted.org", "*.example.org")
            assert self.allowed(bed) == [
                "--policy",
                "deny",
                *(word for host in hosts for word in ("--allow-host", host)),
            ]
        else:
            assert self.allowed(bed) == ["pypi.org:443", "files.pythonhosted.org:443", "*.example.org:8443"]
            assert ["policy", "init", "deny-all"] in bed.calls()

    def test_a_policy_that_allows_all_is_not_taken(self, new: Bed) -> None:
        (new.state / "open").touch()
        with pytest.raises(SetupError, match="the network policy of sbx allows all hosts"):
            new.inside("true")

    def test_an_open_network(self, bed: Bed) -> None:
        wall = Wall(home=bed.login, writable=(bed.project,), is_network_open=True)
        if not bed.program.endswith("docker"):
            (bed.state / "open").touch()
        bed.inside("true", wall=wall)
        assert self.allowed(bed) == (["--policy", "allow"] if bed.program.endswith("docker") else ["**"])


class TestSetup:
    @pytest.fixture(autouse=True)
    def _script(self, bed: Bed) -> None:
        (bed.project / "sandbox").mkdir()
        self.script = bed.project / "sandbox" / "setup.sh"
        self.script.write_text("echo $USER $PWD >> /home/agent/ran\n")

    def test_it_runs_once_as_root(self, bed: Bed) -> None:
        for _ in range(2):
            a_new_run()
            assert bed.inside("cat", "/home/agent/ran").out.decode() == f"root {bed.project}\n"
        self.script.write_text("echo changed >> /home/agent/ran\n")
        a_new_run()
        assert bed.inside("cat", "/home/agent/ran").out.decode() == f"root {bed.project}\nchanged\n"

    def test_a_failure_is_reported_and_repeated(self, bed: Bed) -> None:
        self.script.write_text("echo cannot install >&2; exit 3\n")
        for _ in range(2):
            with pytest.raises(SetupError, match=r"could not run sandbox/setup\.sh inside: cannot install"):
                bed.inside("true")
