"""`ralph serve`: show the runs of this machine in a browser."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from importlib.util import find_spec

from ralph.cli.main import write_bug_log
from ralph.cli.output import emit_line, note, say_raw
from ralph.core.errors import SetupError, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line

_NAME = re.compile(r"(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def run(args: Namespace) -> int:
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        hint = "pip install 'ralph-loop-engine[web]'; from a clone: pip install '.[web]'"
        raise SetupError(f"`ralph serve` needs {' and '.join(missing)}", hint=hint)
    from ralph.web.server import Serving, Wanted, serve

    names = tuple(name.strip().lower() for name in args.allow_host)
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        raise UsageError(
            f"--allow-host {one_line(wrong[0], 80)} is not a host name", hint="NAME or NAME:PORT, without https://"
        )
    if not args.allow_remote and (
        others := [name for name in names if re.sub(r":\d+$", "", name) not in _LOOPBACK_NAMES]
    ):
        raise UsageError(
            f"{others[0]} is reached from elsewhere", hint="add --allow-remote, and put TLS in front of the server"
        )
    wanted = Wanted(
        host=args.host,
        port=args.port,
        read_only=args.read_only,
        allow_remote=args.allow_remote,
        names=names,
        token_file=args.token_file or "",
    )

    def tell(serving: Serving) -> None:
        if args.json:
            emit_line({"url": serving.url, "login": serving.login, "token": serving.token, "pid": os.getpid()})
            return
        say_raw(serving.login, at_once=True)
        note("Open this address in a browser; Ctrl-C ends the server.")
        if args.allow_remote:
            note(_TLS.format(port=serving.port))

    try:
        serve(wanted, os.environ, tell, write_bug_log)
    except KeyboardInterrupt:
        note("")
    return int(ExitCode.COMPLETE)


_TLS = """\
Anyone with the address can control the runs, and without TLS anyone on the way can read it. Put TLS in front:
  caddy reverse-proxy --from ralph.example.com --to 127.0.0.1:{port}
and start the server with `--allow-remote --allow-host ralph.example.com`. Or leave --allow-remote out, and on the
other machine run
  ssh -L {port}:127.0.0.1:{port} THIS-MACHINE"""
