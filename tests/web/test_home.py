"""What the first page says waits for the user: until it is done, wherever that was."""

from __future__ import annotations

import json
from pathlib import Path

from support.served import BROKEN, Place


def test_a_failed_story_waits_until_it_is_reopened_and_a_question_until_it_is_answered(tmp_path: Path) -> None:
    place = Place.make(tmp_path / "home")
    play = {"US-001": [BROKEN], "US-002": [[{"ask": "Which colour?"}]]}
    root = place.project("shop", play, {"US-001": "One", "US-002": "Two"}).root
    run = place.run(root)
    with place.serve() as server:

        def waiting() -> list[tuple[str, str]]:
            return [(each["kind"], each["story"]) for each in server.ask("/api/home").json["waiting"]]

        assert waiting() == [("question", "US-002"), ("failed", "US-001")]
        assert server.act(run, {"verb": "retry", "story": "US-001"}).status == 200
        assert waiting() == [("question", "US-002")]
        assert server.act(run, {"verb": "answer", "story": "US-002", "text": "Blue"}).status == 200
        assert waiting() == []
        acts = server.ask(f"/api/runs/{run}/stories/US-001").json["acts"]
        assert acts == ["note", "retry", "skip"]
        tasks = root / ".ralph" / "shop" / "tasks.json"
        plan = json.loads(tasks.read_text())
        for story in plan["userStories"]:
            story["passes"] = True
        tasks.write_text(json.dumps(plan))
        acts = server.ask(f"/api/runs/{run}/stories/US-001").json["acts"]
        assert acts == ["note"], "a story that is done by now is neither retried nor skipped"
        assert server.act(run, {"verb": "pause"}).json["error"] == f"run {run} has ended"
