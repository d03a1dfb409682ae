"""Notifications of real runs: they tell the right things, disturb nothing, and give no secret away."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.config.schema import Notify
from ralph.core.events import IterationEnded, Paused, RunEnded, StorySetAside, WaitStarted
from ralph.core.moves import Reason
from ralph.core.plan import Mode, State
from ralph.core.verdict import Kind
from ralph.host.process.signals import StopSignal
from ralph.notify.channels import Channel, Webhook
from ralph.notify.message import Message, Moment, NotSent
from ralph.report.advice import News
from ralph.run.notifications import Notifier
from support.cli import ralph_here
from support.loops import CONFIG, LoopProject, run_ralph, short, whole
from support.told_runs import ToldRun, seen
from support.webhooks import SECRET, Hook, webhook


def news_of(tmp_path: Path, *tell: object) -> list[Message]:
    news, told = News(), []
    run = ToldRun(tmp_path / "events.jsonl", lambda record: told.extend(news.hear(record)))
    run.start(seen(), seen("US-002"))
    for event in tell:
        run.say(event)  # type: ignore[arg-type]
    run.journal.close()
    return told


def asks(story: str, question: str) -> IterationEnded:
    return IterationEnded(iteration=1, story=story, mode=Mode.IMPLEMENT, kind=Kind.BLOCKED, question=question)


@pytest.mark.parametrize("reason", Reason)
def test_every_end_of_a_run_is_told_once_with_what_to_do(reason: Reason, tmp_path: Path) -> None:
    (message,) = news_of(tmp_path, RunEnded(reason, "the detail"))
    assert message.reason == reason.value
    assert message.exit_code == reason.exit_code
    assert "Next: " in message.text
    assert message.event is (Moment.DONE if reason in (Reason.COMPLETE, Reason.ONCE) else message.event)
    assert (message.event is Moment.DONE) <= (reason.exit_code == 0)


def test_unproven_stories_are_told_with_what_proves_them(tmp_path: Path) -> None:
    (message,) = news_of(tmp_path, RunEnded(Reason.UNPROVEN, "US-002: committed, but unproven"))
    assert message.title.endswith("stopped: stories are unproven")
    assert "US-002: committed, but unproven" in message.text
    assert "without --skip-review reviews them" in message.text


def test_a_question_is_told_when_the_run_goes_on_and_else_with_its_end(tmp_path: Path) -> None:
    (message,) = news_of(tmp_path, asks("US-001", "which?"), RunEnded(Reason.WAITING, "US-001: which?"))
    assert (message.event, message.reason) == (Moment.BLOCKED, "waiting")
    news, told = News(), list[Message]()
    run = ToldRun(tmp_path / "second.jsonl", lambda record: told.extend(news.hear(record)))
    run.start(seen(), seen("US-002"))
    run.say(asks("US-001", "which?"))
    run.begin(2, "US-002")
    run.begin(3, "US-002")
    run.journal.close()
    assert [(m.event, "US-001 asks: which?" in m.text) for m in told] == [(Moment.BLOCKED, True)]


def test_stories_that_are_given_up_are_told_when_the_run_goes_on(tmp_path: Path) -> None:
    news, told = News(), list[Message]()
    run = ToldRun(tmp_path / "events.jsonl", lambda record: told.extend(news.hear(record)))
    run.start(seen(), seen("US-002"), seen("US-003"))
    run.say(
        IterationEnded(
            iteration=1,
            story="US-001",
            mode=Mode.IMPLEMENT,
            kind=Kind.REJECTED,
            headline="check 'tests' failed",
            story_state=State.FAILED,
        ),
        StorySetAside("US-002", "Two", "the same error 5 times in a row"),
    )
    assert not told
    run.begin(2, "US-003")
    run.begin(3, "US-003")
    run.say(StorySetAside("US-003", "Three", "stuck"), RunEnded(Reason.FAILED_STORIES, "3 stories have failed"))
    run.journal.close()
    assert [(message.event, message.reason) for message in told] == [
        (Moment.FAILED, ""),
        (Moment.FAILED, "failed-stories"),
    ]
    assert "gave up on US-001: check 'tests' failed; US-002 was set aside: the same error 5 times" in told[0].text


def test_long_waits_and_pauses_are_told(tmp_path: Path) -> None:
    short, long = WaitStarted(1_700_000_010, "soon"), WaitStarted(1_700_009_000, "the usage limit")
    told = news_of(tmp_path, short, long, Paused())
    assert [(m.event, m.text.splitlines()[0]) for m in told] == [
        (Moment.LIMIT, "the usage limit"),
        (Moment.PAUSED, "`ralph resume` continues it"),
    ]


class Broken:
    name = "the broken one"

    def __init__(self) -> None:
        self.tried = 0

    def problem(self) -> str:
        return ""

    def send(self, message: Message, timeout: float, cancel: StopSignal) -> None:
        self.tried += 1
        if self.tried == 1:
            raise NotSent("it is broken")
        raise ZeroDivisionError


class Hanging(Broken):
    name = "the hanging one"

    def send(self, message: Message, timeout: float, cancel: StopSignal) -> None:
        cancel.wait(60)


class Good(Broken):
    name = "the good one"

    def send(self, message: Message, timeout: float, cancel: StopSignal) -> None:
        self.tried += 1


def test_a_failure_is_told_once_and_keeps_no_other_way_waiting(tmp_path: Path) -> None:
    said: list[str] = []
    good, broken = Good(), Broken()
    begun = time.monotonic()
    with Notifier([broken, Hanging(), good], Notify(timeout=0.2), said.append, StopSignal()) as notifier:
        run = ToldRun(tmp_path / "events.jsonl", notifier)
        run.start(seen())
        for _ in range(2):
            run.say(WaitStarted(1_800_000_000, "the usage limit"))
        run.stop(Reason.TRANSPORT)
        run.journal.close()
    assert time.monotonic() - begun < 10
    assert (good.tried, broken.tried) == (3, 3)
    assert said == [
        "warning: no notification by the broken one: it is broken; the run continues",
        "warning: no notification by the hanging one: timed out; the run continues",
    ]


def end_of_a_run(path: Path, url: str, timeout: float = 5) -> list[str]:
    """What is said while a run that ends at once is announced through a webhook."""
    said: list[str] = []
    with Notifier([Webhook(url)], Notify(timeout=timeout), said.append, StopSignal()) as notifier:
        run = ToldRun(path, notifier)
        run.start(seen())
        run.stop(Reason.COMPLETE)
        run.journal.close()
    return said


def test_a_message_is_sent_again_when_the_service_is_busy(tmp_path: Path) -> None:
    with webhook() as hook:
        hook.first = [(503, {}), (429, {"Retry-After": "3"})]
        assert end_of_a_run(tmp_path / "events.jsonl", hook.url) == []
    assert [got["event"] for got in hook.got] == ["done"] * 3
    assert hook.times[1] - hook.times[0] >= 1
    assert hook.times[2] - hook.times[1] >= 3, "as long as the service asks for"


def test_a_message_is_sent_again_when_the_connection_is_refused(tmp_path: Path) -> None:
    with webhook() as hook:
        port = hook.server_port
    server: list[Hook] = []

    def open_late() -> None:
        time.sleep(1.5)
        server.append(Hook(200, False, port))
        server[0].handle_request()

    thread = threading.Thread(target=open_late)
    thread.start()
    said = end_of_a_run(tmp_path / "events.jsonl", f"http://127.0.0.1:{port}/")
    thread.join()
    server[0].server_close()
    assert (said, [got["event"] for got in server[0].got]) == ([], ["done"])


def test_a_message_that_is_refused_for_good_is_sent_once(tmp_path: Path) -> None:
    with webhook(404) as hook:
        said = end_of_a_run(tmp_path / "events.jsonl", hook.url)
    assert said == ["warning: no notification by the webhook: responded with status 404; the run continues"]
    assert len(hook.got) == 1


def break_off(path: Path, ways: list[Channel], tell: Callable[[str], None]) -> None:
    with Notifier(ways, Notify(), tell, StopSignal()) as notifier:
        run = ToldRun(path, notifier)
        run.start(seen())
        run.journal.close()
        raise OSError(28, "No space left on device")


def test_a_run_that_breaks_off_is_told_too(tmp_path: Path) -> None:
    good, said = Good(), list[str]()
    with pytest.raises(OSError):
        break_off(tmp_path / "events.jsonl", [good], said.append)
    assert (good.tried, said) == (1, [])


@pytest.fixture
def project(tmp_path: Path) -> LoopProject:
    return LoopProject.make(tmp_path / "loop", whole("tasks.json"))


def text_of_state(project: LoopProject) -> str:
    files = (path for path in project.state.rglob("*") if path.is_file())
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


@pytest.mark.slow
def test_a_run_tells_its_end_and_gives_no_secret_away(project: LoopProject) -> None:
    with webhook() as hook:
        config = f"notify: {{webhook: '{hook.url}', command: [sh, -c, 'cat > $HOME/got; exit 3']}}\n"
        project.write(".ralph/config.yaml", CONFIG + config)
        project.git("commit", "-qam", "notify")
        refused = run_ralph(project, RALPH_TRUST="")
        assert refused.code == 78
        assert "+ notify.webhook: http://127.0.0.1:" in refused.err
        assert "+ notify.command: sh -c" in refused.err
        assert hook.got == [], "a workspace is not listened to before somebody has agreed"
        done = run_ralph(project)
        assert done.code == 0, done
        (got,) = hook.got
        shown = run_ralph(project, "config", "show", "--origin")
        as_json = run_ralph(project, "config", "get", "notify.webhook", "--origin", "--json")
        trust = run_ralph(project, "trust")
        test = run_ralph(project, "notify", "test")
    assert (got["event"], got["done"], got["total"], got["exit_code"]) == ("done", 3, 3, 0)
    assert (project.home / "got").read_text().startswith('{"event":"done"')
    assert done.err.count("no notification by the command sh: exited with code 3; the run continues") == 1
    assert "the webhook: sent" in test.out
    assert test.code == 1
    assert "http://127.0.0.1:" in shown.out
    said = (text for each in (refused, done, shown, as_json, trust, test) for text in (each.out, each.err))
    everything = [text_of_state(project), *said]
    assert not [text for text in everything if SECRET in text]


@pytest.mark.slow
def test_a_webhook_that_hangs_does_not_change_a_run(tmp_path: Path) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    with webhook(hangs=True) as hook:
        config = f"notify: {{on: done, webhook: '{hook.url}', timeout: 1s}}\n"
        (project.home / ".ralph").mkdir()
        (project.home / ".ralph/config.yaml").write_text(config)
        begun = time.monotonic()
        done = run_ralph(project, RALPH_TRUST="1")
        assert time.monotonic() - begun < 30
        assert len(hook.got) == 1
    assert done.code == 0
    assert done.err.count("no notification by the webhook: did not respond in time") == 1
    assert SECRET not in done.out + done.err + text_of_state(project)


@pytest.mark.slow
def test_what_is_not_chosen_is_not_told_and_a_wrong_choice_is_an_error(tmp_path: Path) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    with webhook() as hook:
        env = {"RALPH_NOTIFY_WEBHOOK": hook.url, "RALPH_NOTIFY_ON": "failed,limit"}
        assert run_ralph(project, **env).code == 0
        assert hook.got == []
    wrong = run_ralph(project, RALPH_NOTIFY_ON="done,fialed")
    assert wrong.code == 65
    assert "did you mean failed?" in wrong.err
    assert re.search("no notification is configured", run_ralph(project, "notify", "test").err)


@pytest.mark.parametrize(
    "wrong", ["notify: {0}", "notify: {{desktop: {0}}}", "notify: {{on: {0}}}", "notify: {{timeout: {0}}}"]
)
def test_an_address_in_the_wrong_place_is_not_quoted(wrong: str, tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph/config.yaml").write_text(wrong.format(f"https://h.example/{SECRET}"))
    done = ralph_here("config", "show", cwd=tmp_path)
    assert done.code == 65
    assert SECRET not in done.err
