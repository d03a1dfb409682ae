"""How a service says no, and that the shared classification of errors agrees with it."""

from __future__ import annotations

import json
import time

import pytest

from ralph.agents.api_errors import api_error
from ralph.core.agent import Trouble
from ralph.trial.failures import FAILURES, RESET, failure

FORMS = ("", "chat", "responses", "gemini")
STATUS = {"401": 401, "404": 404, "429": 429, "reset": 429, "quota": 429, "500": 500}
TROUBLE = {
    "401": Trouble.AUTHENTICATION,
    "404": Trouble.MODEL,
    "429": Trouble.TRANSPORT,
    "reset": Trouble.LIMIT,
    "quota": Trouble.BILLING,
    "500": Trouble.TRANSPORT,
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("form", FORMS)
def test_every_failure_has_a_status_and_a_body(form: str, name: str) -> None:
    status, headers, body = failure(form, name)
    assert status == (400 if (form, name) == ("gemini", "401") else STATUS[name])
    assert body["error"]["message"]
    assert json.loads(json.dumps(body)) == body
    assert all(isinstance(value, str) for value in headers.values())


@pytest.mark.parametrize("name", FAILURES)
def test_an_adapter_that_passes_the_body_on_understands_it(name: str) -> None:
    status, _, body = failure("chat", name)
    error = api_error(json.dumps(body), status)
    assert error.trouble is TROUBLE[name]
    if name == "reset":
        assert error.reset is not None
        assert abs(error.reset - time.time() - RESET) < 60


def test_the_reset_of_claude_is_in_the_headers() -> None:
    _, headers, _ = failure("", "reset")
    assert headers["anthropic-ratelimit-unified-status"] == "rejected"
    assert abs(float(headers["anthropic-ratelimit-unified-reset"]) - time.time() - RESET) < 60


def test_an_unknown_failure_is_a_mistake_of_the_script() -> None:
    with pytest.raises(KeyError):
        failure("chat", "teapot")
