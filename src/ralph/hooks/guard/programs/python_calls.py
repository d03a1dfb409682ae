"""What Python's functions do and return: processes, files, sockets, decoding."""

from collections.abc import Callable

from ralph.hooks.guard import acts
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import LOCAL, NETWORK, OPAQUE, SECRET, UNKNOWN, is_known, is_secret_name
from ralph.hooks.guard.programs import python_texts
from ralph.hooks.guard.programs.network import host_of
from ralph.hooks.guard.programs.python_values import Method, Path, Reference, Value, as_text, indexed, join_paths
from ralph.hooks.guard.programs.sql import harm_in, is_trial_name
from ralph.hooks.guard.wordlist import one_of

_SHELL = one_of(
    """
    os.system os.popen subprocess.getoutput subprocess.getstatusoutput commands.getoutput
    commands.getstatusoutput asyncio.create_subprocess_shell popen2.popen2 posix.system nt.system platform.popen
    asyncio.subprocess_shell
    """
)
_SPAWN = one_of(
    """
    subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen pty.spawn
    asyncio.create_subprocess_exec sh.Command
    """
)
_DELETE = one_of(
    """
    os.remove os.unlink os.rmdir os.removedirs shutil.rmtree send2trash.send2trash posix.unlink posix.remove
    distutils.dir_util.remove_tree
    """
)
_WRITE_FIRST = frozenset(("os.truncate", "os.mknod", "os.utime"))
_WRITE_SECOND = one_of(
    """
    shutil.copy shutil.copy2 shutil.copyfile shutil.copytree os.symlink os.link shutil.unpack_archive
    """
)
_MOVE = one_of("shutil.move os.rename os.replace os.renames")
_SENDS = one_of(
    """
    requests.post requests.put requests.patch requests.get requests.request requests.delete httpx.post httpx.put
    httpx.get httpx.patch urllib.request.urlopen urllib.request.Request urllib2.urlopen urllib.urlopen
    httpx.request urllib.request.urlretrieve aiohttp.post webbrowser.open
    """
)
_SENDING = one_of("send sendall sendto sendmail send_message post put patch request upload_file put_object storbinary")
_MOST_ITEMS = 300
KNOWN = _SHELL | _SPAWN | _DELETE | _WRITE_FIRST | _WRITE_SECOND | _MOVE | _SENDS


class World:
    """The effects of the program: each call is judged when it is reached."""

    def __init__(self, call: Invocation, run_code: "Callable[[str], None]") -> None:
        self.call = call
        self.run_code = run_code
        self.endless = 0
        self.narrowed = 0
        """Under a condition: not everything a loop iterates over."""
        self.argv = ["-c", *call.args[call.args.index("-c") + 2 :]] if "-c" in call.args else []
        self.database = ""
        self.has_cloud = False
        self.is_connected = False
        self.gives_streams = False

    def attribute(self, base: Value, name: str) -> Value:
        if isinstance(base, Reference):
            if base.path in ("os", "posix") and name in ("environ", "environb"):
                return UNKNOWN + SECRET
            return Reference(f"{base.path}.{name}")
        if isinstance(base, Path) and name in ("parent", "name", "stem"):
            head, _, tail = str(base).rstrip("/").rpartition("/")
            return Path(head or "/") if name == "parent" else tail
        if isinstance(base, str) and name in ("text", "content", "stdout") and not is_known(base):
            return base
        return Method(base, name)

    def item(self, base: Value, index: Value) -> Value:
        if isinstance(base, Reference) and base.path == "sys.argv" and isinstance(index, int):
            return self.argv[index] if 0 <= index < len(self.argv) else None
        if isinstance(index, int):
            return indexed(base, index)
        if isinstance(base, str) and SECRET in base and isinstance(index, str):
            return self._variable(index)
        if isinstance(base, Reference) and isinstance(index, str):  # globals()["x"], sys.modules["os"]
            return Reference(index)
        return base if isinstance(base, str) else None

    def _variable(self, name: str) -> str:
        known = self.call.shell.value(name)
        if known is not None:
            return known[0]
        return self.call.shell.names.mark(name) + (SECRET if is_secret_name(name) else "")

    def assigned(self, base: str, index: Value, value: Value) -> None:
        if SECRET in base and isinstance(index, str):
            from ralph.hooks.guard.environment import judge_variable

            judge_variable(self.call.shell, index, as_text(value))

    def run(self, function: Reference | Method, args: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(function, Method):
            return self._method(function, args, named)
        path = function.path.removeprefix("builtins.")
        first = args[0] if args else next(iter(named.values()), None)
        if path in _SHELL:
            return self.call.run_text(as_text(first), "")
        if path in _SPAWN or path.startswith(("os.exec", "os.spawn", "os.posix_spawn")):
            return self._spawn(path, args, named)
        if path in _DELETE:
            self._delete(first, path.endswith(("rmtree", "remove_tree")))
            return None
        if path in _MOVE and len(args) > 1:
            acts.move(self.call.shell, as_text(args[0]), as_text(args[1]), self.call.argv)
            self._write(args[1])
            return None
        if path in _WRITE_FIRST or (path in _WRITE_SECOND and len(args) > 1):
            self._write(args[1] if path in _WRITE_SECOND else args[0])
            return None
        if path in _SENDS:
            return self._send(args, named)
        return self._other(path, args, named)

    def _other(self, path: str, args: list[Value], named: dict[str, Value]) -> Value:
        first = args[0] if args else None
        if path in ("map", "filter") and len(args) > 1 and isinstance(first, Reference) and isinstance(args[1], list):
            return [self.run(first, [item], {}) for item in args[1][:_MOST_ITEMS]]
        if path in ("exec", "eval", "execfile"):
            return self._evaluate(as_text(first))
        if path == "compile":
            return first
        if path in ("open", "io.open", "codecs.open"):
            return self._open(as_text(first), as_text(args[1]) if len(args) > 1 else as_text(named.get("mode", "r")))
        if path in ("__import__", "importlib.import_module") and isinstance(first, str):
            return Reference(first)
        if path == "getattr" and len(args) > 1 and isinstance(args[1], str):
            return self.attribute(first, args[1])
        if path in ("os.chmod", "os.chown", "os.lchown", "shutil.chown") and first is not None:
            acts.change(self.call.shell, as_text(first), self.call.argv, "the permissions", True)
        elif path in ("os.kill", "os.killpg"):
            self.call.run(["kill", "-9", as_text(first)]) if first != "0" else None
        elif path in ("os.fork", "multiprocessing.Process", "os.forkpty", "threading.Thread"):
            if self.endless and path == "os.fork":
                self.call.deny("fork-bomb")
        elif path in ("os.setuid", "os.setgid", "os.seteuid", "os.setreuid"):
            self.call.deny("privilege")
        elif path in ("os.chdir", "os.fchdir") and isinstance(first, str):
            self.call.shell.cwd = self.call.shell.full(first)
        elif path == "os.dup2":
            self._stream()
        elif path in ("sqlite3.connect", "psycopg2.connect", "pymysql.connect"):
            self.database = as_text(first) if first is not None else ""
            return Method(None, "connection")
        elif path in ("os.getenv", "os.environ.get") and isinstance(first, str):
            return self._variable(first)
        elif path.startswith("socket."):
            return Method(None, "socket")
        return python_texts.value(self.call, path, args, named)

    def _stream(self) -> None:
        self.gives_streams = True
        if self.is_connected:
            self.call.deny("remote-shell", "This gives the other end of a connection a shell")

    def _spawn(self, path: str, args: list[Value], named: dict[str, Value]) -> Value:
        first = args[0] if args else named.get("args")
        if path.startswith("os.spawn"):
            args = args[1:]
        if path.startswith("os."):
            words = args[1] if len(args) > 1 and isinstance(args[1], list) else args[1:]
            program = as_text(args[0]) if args else ""
            first = [program, *[word for word in words[1:] if not isinstance(word, Reference)]]
        elif path == "asyncio.create_subprocess_exec":
            first = list(args)
        if self.is_connected and path in ("pty.spawn", "subprocess.call", "subprocess.Popen", "subprocess.run"):
            self._stream()
        if isinstance(first, list):
            argv = [as_text(word) for word in first]
            if named.get("shell") is not None and argv:
                return self.call.run_text(argv[0], "")
            return self.call.run(argv, as_text(named["input"]) if "input" in named else "")
        return self.call.run_text(as_text(first), "") if isinstance(first, str) else None

    def _delete(self, path: Value, recursive: bool) -> None:
        if isinstance(path, str):
            text = path.replace("*", LOCAL) if self.narrowed else str(path)
            acts.delete(self.call.shell, text, self.call.argv, recursive)

    def _write(self, path: Value, appends: bool = False) -> None:
        if isinstance(path, str):
            acts.write(self.call.shell, str(path), self.call.argv, appends)

    def _open(self, path: str, mode: str) -> Value:
        if any(letter in mode for letter in "wax+"):
            acts.write(self.call.shell, path, self.call.argv, appends="a" in mode)
            return Method(Path(path), "writer")
        acts.look(self.call.shell, path, self.call.argv)
        return Method(acts.contents(self.call.shell, path), "reader")

    def _evaluate(self, text: str) -> Value:
        if NETWORK in text:
            self.call.deny("remote-code", "This runs downloaded code")
        if OPAQUE in text:
            self.call.deny("opaque", "The guard cannot see what this runs")
        if is_known(text):
            self.run_code(text)
        return None

    def _send(self, args: list[Value], named: dict[str, Value]) -> Value:
        url = as_text(args[0]) if args else as_text(named.get("url"))
        if not acts.is_local_host(host_of(url)):
            sent = as_text(args) + "".join(
                as_text(value) for name, value in named.items() if name not in ("headers", "auth")
            )
            if SECRET in sent:
                self.call.deny("exfiltration", f"This sends secrets to {host_of(url)}")
        return NETWORK

    def _method(self, method: Method, args: list[Value], named: dict[str, Value]) -> Value:
        of, name = method.of, method.name
        first = args[0] if args else None
        if isinstance(of, Method):
            return self._chained(of, name, args, named)
        if isinstance(of, Path):
            return self._path_method(of, name, first)
        if isinstance(of, str):
            if name in ("get", "pop") and SECRET in of and isinstance(first, str):
                return self._variable(first)
            return python_texts.method(of, name, args)
        if name in ("execute", "executescript", "executemany", "query", "raw") and isinstance(first, str):
            self._statement(first)
        if name in ("system", "popen") and isinstance(first, str):  # of a C library or a wrapper
            return self.call.run_text(first, "")
        if name in ("connect", "connect_ex") and isinstance(first, list):
            self.is_connected = not acts.is_local_host(as_text(first[0]))
            if self.gives_streams and self.is_connected:
                self._stream()
        if name in _SENDING and SECRET in as_text(args):
            self.call.deny("exfiltration", "This sends secrets to another machine")
        if self.has_cloud and name.startswith(("delete_", "terminate", "remove_", "destroy", "purge_")):
            self.call.deny("cloud")
        if name in ("drop_database", "drop_all", "drop_collection", "flushall", "flushdb"):
            self.call.deny("databases")
        if name in ("extractall", "extract"):
            self._write(first if name == "extractall" else (args[1] if len(args) > 1 else None))
        return Method(None, name)

    def _chained(self, of: Method, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        """Calls on the result of a call: an open file, a connection, a socket."""
        if of.name == "reader" and isinstance(of.of, str):
            return of.of if name in ("read", "readlines", "readline") else Method(of.of, "reader")
        if of.name == "writer" and name in ("write", "writelines") and isinstance(of.of, str):
            acts.keep(self.call.shell, str(of.of), as_text(args[0] if args else None), True)
            return None
        if of.name in ("connection", "cursor", "socket") or of.of is None:
            return self._method(Method(None, name), args, named) if name not in ("cursor", "makefile") else of
        return self._method(Method(None, name), args, named)

    def _path_method(self, path: Path, name: str, first: Value) -> Value:
        if name in ("unlink", "rmdir"):
            self._delete(path, False)
        elif name in ("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to"):
            self._write(path, name == "touch")
            acts.keep(self.call.shell, str(path), as_text(first))
        elif name in ("rename", "replace"):
            acts.move(self.call.shell, str(path), as_text(first), self.call.argv)
            self._write(first)
        elif name in ("read_text", "read_bytes"):
            acts.look(self.call.shell, str(path), self.call.argv)
            return acts.contents(self.call.shell, str(path))
        elif name == "open":
            return self._open(str(path), as_text(first) if first is not None else "r")
        elif name == "chmod":
            acts.change(self.call.shell, str(path), self.call.argv, "the permissions", False)
        elif name in ("glob", "rglob", "iterdir"):
            return [join_paths(str(path), as_text(first) if first is not None else "*")]
        elif name in ("expanduser", "resolve", "absolute", "joinpath", "with_suffix", "with_name"):
            if name == "expanduser" and path.startswith("~"):
                return Path(self.call.shell.places.home + path[1:])
            return join_paths(str(path), as_text(first)) if name == "joinpath" else path
        return None

    def _statement(self, text: str) -> None:
        trial = not self.database or self.database == ":memory:" or is_trial_name(self.database)
        if (harm := harm_in(text)) and not (trial and self.database):
            self.call.deny("databases", f"This runs {' '.join(harm.split()[:4])}")
