"""Why the Claude client failed, from the typed fields of its events. Pure.

Text written by a model, a tool or a server is never searched: it may mention an error without being one.
"""

from __future__ import annotations

from msgspec import Struct

from ralph.core.agent import Trouble


class Failure(Struct, frozen=True, kw_only=True):
    """What the client reports about a result that is an error."""

    subtype: str = ""
    terminal_reason: str = ""
    status: int = 0
    """Status of the last HTTP response; 0: there was none."""
    names: frozenset[str] = frozenset()
    """`error`, `api_error` and `api_error_type`: the client's and the server's names for the error."""
    limited: bool = False
    """A usage limit with a reset time was reported before."""


_BY_ENDING = {
    "error_max_budget_usd": Trouble.BUDGET,
    "budget_exhausted": Trouble.BUDGET,
    "prompt_too_long": Trouble.CONTEXT,
    "blocking_limit": Trouble.CONTEXT,
}
_BY_STATUS = {
    401: Trouble.AUTHENTICATION,
    402: Trouble.BILLING,
    403: Trouble.AUTHENTICATION,
    404: Trouble.MODEL,
    408: Trouble.TRANSPORT,
    413: Trouble.CONTEXT,
    429: Trouble.TRANSPORT,
}
_BY_NAME = {
    "authentication_failed": Trouble.AUTHENTICATION,
    "authentication_error": Trouble.AUTHENTICATION,
    "billing_error": Trouble.BILLING,
    "oauth_org_not_allowed": Trouble.AUTHENTICATION,
    "model_not_found": Trouble.MODEL,
    "connection_failed": Trouble.TRANSPORT,
    "overloaded": Trouble.TRANSPORT,
    "overloaded_error": Trouble.TRANSPORT,
    "rate_limit": Trouble.TRANSPORT,
    "rate_limit_error": Trouble.TRANSPORT,
    "server_error": Trouble.TRANSPORT,
    "timeout_error": Trouble.TRANSPORT,
}


def classify(failure: Failure) -> Trouble:
    if "usage_limit_reached" in failure.names:
        return Trouble.LIMIT
    if failure.limited and (failure.status == 429 or failure.names & {"rate_limit", "rate_limit_error"}):
        return Trouble.LIMIT  # clients before `usage_limit_reached`
    for word in (failure.subtype, failure.terminal_reason):
        if word in _BY_ENDING:
            return _BY_ENDING[word]
    if "billing_error" in failure.names:  # "Credit balance is too low" has the status 400
        return Trouble.BILLING
    if failure.status >= 500:
        return Trouble.TRANSPORT
    if failure.status in _BY_STATUS:
        return _BY_STATUS[failure.status]
    for name in sorted(failure.names):
        if name in _BY_NAME:
            return _BY_NAME[name]
    is_named = bool(failure.names - {"unknown"})  # such as a refusal, or an answer over the limit of tokens
    if failure.terminal_reason == "api_error" and failure.status < 400 and not is_named:
        return Trouble.TRANSPORT  # an answer that was none: cut off, or a web page of something in between
    return Trouble.OTHER
