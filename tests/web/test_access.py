"""Who gets in: tried from outside on a running `ralph serve`."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hostile_runs import journal_of, tell, tell_hostile
from support.processes import wait_for
from support.told_runs import RUN
from support.web_server import Served, served

PAGES = (
    "/",
    "/api/home",
    f"/api/runs/{RUN}",
    f"/api/runs/{RUN}/stream",
    f"/report/{RUN}",
    "/metrics",
    "/static/app.js",
)
NOTE = {"verb": "note", "text": "Mind the gap"}
OWN: dict[str, Any] = {"Sec_Fetch_Site": "same-origin"}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("access") / "state"
    tell_hostile(place)
    return place


@pytest.fixture(scope="module")
def server(state: Path) -> Iterator[Served]:
    with served(state) as found:
        yield found


@pytest.fixture
def fresh(state: Path) -> Iterator[Served]:
    """One that no other test has used up the patience of."""
    with served(state) as found:
        yield found


# --- the token -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PAGES, "/nowhere"])
def test_nothing_is_answered_without_the_token(server: Served, path: str) -> None:
    answer = server.ask(path, token="")
    assert answer.status == 401
    assert b"Shop" not in answer.body
    assert server.token not in answer.text
    if path == "/":
        assert "Open the address that <code>ralph serve</code> printed" in answer.text
        assert "<script" not in answer.text


def test_the_token_in_the_address_becomes_a_cookie(server: Served) -> None:
    answer = server.ask(f"/?token={server.token}", token="")
    cookie, *facts = answer.headers["set-cookie"].split("; ")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert server.token not in cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/"} == set(facts)
    assert server.ask("/", cookie=cookie, Sec_Fetch_Site="none").status == 200
    assert server.ask("/api/home", cookie=cookie, **OWN).status == 200


@pytest.mark.parametrize("path", ["/api/home?token={}", "/static/app.js?token={}", "/metrics?token={}"])
def test_the_token_in_the_address_opens_the_first_page_only(server: Served, path: str) -> None:
    assert server.ask(path.format(server.token), token="").status == 401


def test_a_program_sends_the_token_as_bearer(server: Served) -> None:
    assert server.ask("/api/home").json["runs"][0]["run"] == RUN
    assert server.ask("/api/home", token="", Authorization=f"bearer {server.token}").status == 200
    assert server.ask("/api/home", token="", Authorization=f"Basic {server.token}").status == 401


def test_wrong_tokens_are_limited_and_the_right_one_never(fresh: Served) -> None:
    answers = [fresh.ask("/api/home", token=f"{number}{fresh.token}") for number in range(40)]
    assert {answer.status for answer in answers} == {401, 429}
    assert answers[0].status == 401
    refused = next(answer for answer in answers if answer.status == 429)
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json["error"] == "too many wrong tokens"
    assert fresh.ask("/", cookie=f"ralph_{fresh.port}=wrong").status in (401, 429)
    assert fresh.ask("/", token="", Authorization="Bearer ü").status in (401, 429)
    assert fresh.ask("/api/home").status == 200
    assert fresh.ask("/api/home", cookie=fresh.log_in(), **OWN).status == 200
    assert fresh.ask("/", token="").status == 401, "nothing was tried"


def test_the_token_is_in_no_argument_and_in_no_log(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    with served(state, "--token-file", str(file)) as server:
        assert file.read_text() == server.token
        assert file.stat().st_mode & 0o777 == 0o600
        server.ask(f"/?token={server.token}", token="")
        assert server.token.encode() not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert server.token.encode() not in Path(f"/proc/{server.pid}/environ").read_bytes()
        found = [path for path in state.rglob("*") if path.is_file() and server.token.encode() in path.read_bytes()]
        assert found == []
    assert not file.exists(), "the token ends with the server"


def test_a_token_file_that_others_could_read_is_replaced(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("an older one")
    file.chmod(0o644)
    with served(state, "--token-file", str(file)):
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_of_the_machine_gets_nothing() -> None:
    """In a folder that everybody may enter: only Ralph's own permissions are in the way."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "open").write_text("for everybody")
        state, token = folder / "state", folder / "token"
        tell_hostile(state)
        with served(state, "--token-file", str(token)) as server:
            found = json.loads(_as_nobody(_TRY, server.url, str(token), str(journal_of(state)), str(server.pid)))
    assert found == {
        "/": 401,
        "/api/home": 401,
        f"/api/runs/{RUN}/journal": 401,
        "/metrics": 401,
        "act": 401,
        "open": "for everybody",
        "token file": "refused",
        "environment": "refused",
        "journal": "refused",
    }


_TRY = f"""
import json, sys, urllib.error, urllib.request
url, token, journal, pid = sys.argv[1:]
found = {{}}
for path in ("/", "/api/home", "/api/runs/{RUN}/journal", "/metrics"):
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(url + path)
        found[path] = 200
    except urllib.error.HTTPError as error:
        found[path] = error.code
kind = {{"Content-Type": "application/json"}}
act = urllib.request.Request(url + "/api/runs/{RUN}/acts", b'{{"verb": "pause"}}', kind)
try:
    urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(act)
except urllib.error.HTTPError as error:
    found["act"] = error.code
places = {{"open": token.replace("token", "open"), "token file": token, "journal": journal}}
for name, path in (*places.items(), ("environment", f"/proc/{{pid}}/environ")):
    try:
        found[name] = open(path).read()
    except PermissionError:
        found[name] = "refused"
print(json.dumps(found))
"""


def _as_nobody(code: str, *arguments: str) -> str:
    for python in (str(Path(sys.executable).resolve()), "/usr/bin/python3"):
        command = [python, "-I", "-c", code, *arguments]
        nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
        with contextlib.suppress(PermissionError, FileNotFoundError):
            done = subprocess.run(command, cwd="/", **nobody, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return str(done.stdout)
    pytest.skip("no Python that another user may run")


# --- other sites -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "[::1]",
        "[::1]:1",
        "[::2]:{port}",
        "::1:{port}",
        "127.0.0.1:{port}@evil.example",
        "0.0.0.0:{port}",
        "127.1:{port}",
        "2130706433:{port}",
        "",
    ],
)
def test_a_name_that_is_not_served_is_refused_even_with_the_token(server: Served, host: str) -> None:
    answer = server.ask("/api/home", host=host.format(port=server.port))
    assert (answer.status, b"Shop" in answer.body) == (421, False)
    assert "this server is not reached by that name" in answer.json["error"]
    assert server.ask(f"/?token={server.token}", token="", host=host.format(port=server.port)).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_names_of_this_machine_are_served(server: Served, host: str) -> None:
    assert server.ask("/api/home", host=host.format(port=server.port)).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_cannot_read_with_the_cookie(server: Served, site: str) -> None:
    cookie = server.log_in()
    for path in PAGES[1:]:
        assert server.ask(path, cookie=cookie, Sec_Fetch_Site=site).status == 403, path
    assert server.ask("/", cookie=cookie, Sec_Fetch_Site=site).status == 200, (
        "a link to the page is none of its business"
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://{host}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://{host}.evil.example"},
        {"Origin": "http://{host}/"},
        {"Origin": "http://[::"},
        {"Origin": "", "Sec_Fetch_Site": "same-origin"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {},
    ],
)
def test_an_act_with_the_cookie_comes_from_our_page(fresh: Served, headers: dict[str, str]) -> None:
    named: dict[str, Any] = {name: value.format(host=fresh.host) for name, value in headers.items()}
    answer = fresh.act(RUN, NOTE, cookie=fresh.log_in(), **named)
    assert (answer.status, answer.json["error"]) == (403, "another page asked for this")


@pytest.mark.parametrize("headers", [{"Origin": "http://{host}"}, {"Sec_Fetch_Site": "same-origin"}])
def test_an_act_of_our_page_is_heard(fresh: Served, headers: dict[str, str]) -> None:
    named: dict[str, Any] = {name: value.format(host=fresh.host) for name, value in headers.items()}
    answer = fresh.act(RUN, NOTE, cookie=fresh.log_in(), **named)
    assert "is no longer there" in answer.json["error"], "it was looked at: the plan of this run is gone"


@pytest.mark.parametrize("path", [*PAGES, "/nowhere", "/static/nothing"])
def test_every_answer_has_the_headers(server: Served, path: str) -> None:
    if path.endswith("/stream"):
        return
    for token in (None, ""):
        headers = server.ask(path, token=token).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe-eval" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy or path.startswith("/report")
        assert "script-src" not in policy or "script-src 'self';" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "PATCH", "POST", "TRACE"])
def test_a_preflight_and_other_methods_are_refused(server: Served, method: str) -> None:
    answer = server.ask("/api/home", method, Origin="http://evil.example", Access_Control_Request_Method="POST")
    assert answer.status in (403, 405, 415)
    assert "access-control-allow-origin" not in answer.headers


# --- acts ------------------------------------------------------------------------------------------------------------


def test_acts_are_limited(fresh: Served) -> None:
    answers = [fresh.act(RUN, NOTE) for _ in range(20)]
    assert 429 in {answer.status for answer in answers}
    last = answers[-1]
    assert int(last.headers["retry-after"]) >= 1
    assert fresh.ask("/api/home").status == 200, "who only looks is not limited"
    wait_for(lambda: fresh.act(RUN, NOTE).status != 429)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"verb": "note", "text": "' + b"x" * 70_000 + b'"}', "application/json", 413),
        (b'{"verb": "note", "text": "x"}', "text/plain", 415),
        (b'{"verb": "note", "text": "x"}', "application/x-www-form-urlencoded", 415),
        (b"verb=note", "application/json", 400),
        (b"", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"verb": "explode"}', "application/json", 400),
        (b'{"verb": "note", "text": 7}', "application/json", 400),
        (b'{"verb": "note", "x": ' + b"[" * 60_000 + b"}", "application/json", 400),
        (b'{"verb": "note", "text": "\xff"}', "application/json", 400),
    ],
)
def test_a_body_is_a_small_act_in_json(fresh: Served, body: bytes, kind: str, status: int) -> None:
    answer = fresh.ask(f"/api/runs/{RUN}/acts", "POST", body=body, Content_Type=kind)
    assert answer.status == status
    assert answer.json["error"]


def test_a_body_without_a_length_is_cut_off(fresh: Served) -> None:
    head = fresh.request(f"/api/runs/{RUN}/acts").replace(b"GET", b"POST", 1).removesuffix(b"\r\n")
    head += b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", fresh.port), timeout=30) as connection:
        connection.sendall(head)
        for _ in range(9):
            connection.sendall(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
        assert b" 413 " in connection.recv(1000)


def test_read_only_means_every_act(state: Path) -> None:
    with served(state, "--read-only") as server:
        assert server.ask("/api/home").json["read_only"] is True
        assert server.ask(f"/api/runs/{RUN}").json["acts"] == []
        for verb in (
            "pause",
            "resume",
            "stop",
            "stop_now",
            "note",
            "answer",
            "retry",
            "skip",
            "confirm",
            "reject",
            "x",
        ):
            answer = server.act(RUN, {"verb": verb, "text": "x"})
            assert (answer.status, answer.json["error"]) == (403, "this server is read-only")


# --- paths -----------------------------------------------------------------------------------------------------------

_ABROAD = (
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%252f..%252fetc%252fpasswd",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "..%5c..%5cetc",
    "..;/etc/passwd",
    "%00",
    "....//",
    f"{RUN}%0a",
    f"{RUN}%2f..%2f{RUN}",
    "%c0%ae%c0%ae%c0%af",
    "..",
    ".",
    "%20",
)


@pytest.mark.parametrize("name", _ABROAD)
@pytest.mark.parametrize(
    "path",
    [
        "/static/{}",
        "/api/runs/{}",
        "/api/runs/{}/journal",
        "/api/runs/{}/stream",
        "/report/{}",
        f"/api/runs/{RUN}/stories/{{}}",
        f"/api/runs/{RUN}/attempts/{{}}",
        f"/api/runs/{RUN}/attempts/1/checks/{{}}",
        f"/api/runs/{RUN}/charts/{{}}.svg",
        "/api/compare?runs={},{}",
    ],
)
def test_no_name_leads_out(server: Served, path: str, name: str) -> None:
    answer = server.ask(path.format(name, name))
    assert answer.status in (400, 404, 405), answer
    assert b"root:" not in answer.body


def test_a_run_is_named_by_its_whole_id(state: Path, tmp_path: Path) -> None:
    place = tmp_path / "state"
    tell(place)
    (place / "shop-1" / "runs" / "secret").symlink_to(tmp_path)
    with served(place) as server:
        for name in (RUN[:-1], "secret", "*", f"{RUN[:-1]}?"):
            assert server.ask(f"/api/runs/{name}").status == 404
        assert server.ask(f"/api/runs/{RUN}").status == 200
