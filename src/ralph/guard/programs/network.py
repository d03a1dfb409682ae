"""Downloads and uploads: with curl and wget, as copies, by email, in DNS lookups."""

from ralph.guard import effects
from ralph.guard import paths as at
from ralph.guard.effects import contents, is_local_host, keep
from ralph.guard.invocation import Invocation, Options
from ralph.guard.taint import NETWORK, SECRET, UNKNOWN, is_known, is_mark


def netcat(call: Invocation) -> str:
    options = call.options()
    if options.has("-e", "--exec", "--sh-exec", "--lua-exec") or options.value("-c"):
        call.deny("remote-shell", "This gives the other end of a connection access to a program")
    return judge_socket(call, options.rest, listens=options.has("-l"), probes=options.has("-z"))


def judge_socket(call: Invocation, words: list[str], listens: bool = False, probes: bool = False) -> str:
    """A raw connection: probing a port is fine, and so is the local machine."""
    hosts = [host_of(word) for word in words if not word.isdigit() and not word.startswith("-")]
    if probes or (not listens and hosts and is_local_host(hosts[0])):
        return UNKNOWN + NETWORK
    if SECRET in call.stdin:
        leaks(call, hosts[0] if hosts else "another machine")
    if listens and call.stdin and not is_known(call.stdin):
        call.deny("exfiltration", "This serves data to anyone who connects")
    if call.stdin and not is_known(call.stdin):
        call.deny("exfiltration", "This sends raw data to another machine")
    return NETWORK


def relay(call: Invocation) -> str:
    """socat."""
    for word in call.args:
        lower = word.lower()
        call.look(word.partition(":")[2].partition(",")[0] if lower.startswith(("file:", "open:", "gopen:")) else "")
        if lower.startswith(("exec:", "system:", "shell:")):
            call.deny("remote-shell", "This gives the other end of a connection access to a program")
    if any(word.lower().startswith(("tcp", "udp", "openssl", "ssl")) for word in call.args):
        hosts = [word.split(":")[1] for word in call.args if word.count(":") > 1]
        return judge_socket(call, hosts or ["another"], listens="listen" in " ".join(call.args).lower())
    return UNKNOWN


_SSH_VALUED = "bcDEeFIiJLlmOopQRSWwB"


def secure_shell(call: Invocation) -> str:
    options = call.options()
    for name, value in options.values:
        if name == "-o" and value.lower().startswith(
            ("proxycommand", "localcommand", "permitlocalcommand", "knownhostscommand")
        ):
            call.run_text(value.partition("=")[2] or value.partition(" ")[2])
    if options.has("-V", "-G", "-Q") or not options.rest:
        return UNKNOWN
    host, command = options.rest[0], options.rest[1:]
    while command and command[0].startswith("-"):
        command = command[2:] if command[0][1:2] in _SSH_VALUED and len(command[0]) == 2 else command[1:]
    if options.has("-R", "-D", "-w") or any(arg.startswith("-R") for arg in call.args):
        call.deny("remote-shell", "This opens a tunnel to another machine")
    if SECRET in call.stdin or any(SECRET in word for word in command):
        leaks(call, host)
    if host.startswith("git@"):
        return UNKNOWN
    if options.has("-N") or (options.has("-L") and not command):
        return UNKNOWN
    inner = call.shell.elsewhere()
    text = " ".join(command) or call.stdin
    if not text:
        call.deny("remote-shell", f"This opens a shell on {host}")
        return NETWORK
    from ralph.guard.programs.shells import judge_script

    judge_script(inner, text, call.argv, call.stdin if command else "")
    if call.stdin and not is_known(call.stdin) and command and text.split()[0] in ("cat", "tar", "tee", "dd"):
        call.deny("exfiltration", f"This sends files to {host}")
    return NETWORK


def with_password(call: Invocation) -> str:
    return call.run(call.options().rest)


def serve(call: Invocation) -> str:
    """Web servers: of files in the workspace, or in a temporary folder."""
    folders = [arg.rpartition("=")[2] for arg in call.args if "/" in arg and "://" not in arg] or ["."]
    for place in map(call.shell.locate, folders):
        if place.kind not in (at.INSIDE, at.TEMP, at.UNSURE) and place.path != call.shell.places.workspace:
            call.deny("exfiltration", f"This serves {place.path} to anyone who connects")
    return UNKNOWN


def telnet(call: Invocation) -> str:
    return judge_socket(call, call.args)


_SHOWN = ("-H", "--header", "-A", "--user-agent", "-b", "--cookie", "-e", "--referer", "-u", "--user")
_SENT = (
    *("-d", "--data", "--data-binary", "--data-urlencode", "--data-ascii", "--json", "-F", "--form", "--data-raw"),
    *("--form-string", "--url-query"),
)


_METADATA = ("169.254.169.254", "169.254.170.2", "metadata.google.internal", "100.100.100.200", "metadata")
"""Where a virtual machine asks for its credentials."""
_FORGES = ("://api.github.com/", "/api/v4/", "/api/v1/repos", "://api.bitbucket.org/", "/api/v3/repos")


def _judge_address(call: Invocation, urls: list[str], method: str) -> None:
    for url in urls:
        if host_of(url) in _METADATA:
            call.deny("exfiltration", "This asks for the credentials of the machine")
        if method == "DELETE" and is_known(host_of(url)):
            call.deny("cloud", f"This deletes something on {host_of(url)}")
        if method in ("PUT", "PATCH") and any(part in url for part in _FORGES):
            call.deny("cloud", "This changes the project for everyone")
        if url.startswith(("telnet:", "dict:", "gopher:")) and SECRET in call.stdin:
            leaks(call, host_of(url))


def host_of(url: str) -> str:
    rest = url.partition("://")[2] or url
    rest = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
    return rest.rpartition("]")[0].lstrip("[") if rest.startswith("[") else rest.partition(":")[0]


def curl(call: Invocation) -> str:
    options = call.options()
    urls = [*options.rest, *options.all("--url")]
    is_local = bool(urls) and all(is_local_host(host_of(url)) for url in urls)
    if not is_local:
        _judge_sent(call, options, urls)
        _judge_address(call, urls, (options.value("-X", "--request") or "").upper())
    if _empties_an_index(urls, (options.value("-X", "--request") or "").upper()):
        call.deny("databases", "This deletes a search index or its content")
    data = NETWORK if not is_local else UNKNOWN + NETWORK
    targets = [path for path in options.all("-o", "--output") if path not in ("-", "/dev/stdout")]
    for path in targets:
        call.store(path, NETWORK)
    if options.has("-O", "--remote-name", "--remote-name-all", "-J"):
        _keep_remote_names(call, urls)
        return ""
    call.look(*options.all("-K", "--config"), *(url for url in urls if url.startswith("file:")))
    return "" if targets else data


def _empties_an_index(urls: list[str], method: str) -> bool:
    """Search servers by their default ports."""
    if any("_delete_by_query" in url for url in urls):
        return True
    return method == "DELETE" and any(f":{port}/" in url for url in urls for port in (9200, 7700, 8983, 6333))


def _keep_remote_names(call: Invocation, urls: list[str]) -> None:
    for url in urls:
        name = url.partition("?")[0].rstrip("/").rpartition("/")[2]
        if name:
            keep(call.shell, name, NETWORK)


def _judge_sent(call: Invocation, options: Options, urls: list[str]) -> None:
    target = host_of(urls[0]) if urls else "another machine"
    for name, value in options.values:
        if name in _SENT:
            _judge_body(call, value, target)
        elif (
            name in ("-T", "--upload-file")
            and (SECRET in _body(call, value) or (value in (".", "-") and SECRET in call.stdin))
        ) or (name in _SHOWN and SECRET in _shown(call, value, target)):
            leaks(call, target)
    for url in urls:
        if SECRET in _without_keys(call, url):
            leaks(call, target)


_SERVICES = (".googleapis.com", ".run.app", "api.github.com", ".azure.com", ".amazonaws.com", "gitlab.com")
"""Where the tokens belong that `gcloud`, `gh`, `az` and others print."""


def _shown(call: Invocation, value: str, target: str) -> str:
    if target.endswith(_SERVICES) and value.startswith("Authorization:"):
        return ""
    is_file = value[:1] == "@" or (value[:1] in "/.~" and "=" not in value)
    return _body(call, value.removeprefix("@")) if is_file else _without_variables(call, value)


def _judge_body(call: Invocation, value: str, target: str) -> None:
    if SECRET in value and (SECRET in _without_variables(call, value) or not _names_a_login(value)):
        leaks(call, target)
    path = value.partition("=@")[2] or value.partition("=<")[2] or value.partition("@")[2]
    if path and SECRET in _body(call, path.partition(";")[0]):
        leaks(call, target)


def _body(call: Invocation, path: str) -> str:
    """The content of the file that is sent."""
    return call.stdin if path in ("-", "/dev/stdin") else contents(call.shell, path)


_DROPS = (
    *("webhook.site", "requestbin.com", "pipedream.net", "ngrok.io", "ngrok-free.app", "oastify.com", "interact.sh"),
    *("burpcollaborator.net", "file.io", "transfer.sh", "0x0.st", "termbin.com", "hastebin.com", "pastebin.com"),
)
"""Sites where anyone can post anything."""


def _names_a_login(value: str) -> bool:
    """A token is passed to the service it is for: `client_secret=$X&grant_type=…`, `{"token": …}`."""
    return any(
        word in value for word in ("client_id", "grant_type", "password=", '"password"', "username", "refresh_token")
    )


def leaks(call: Invocation, target: str) -> None:
    call.deny("exfiltration", f"This sends secrets to {target}")


def _without_variables(call: Invocation, text: str) -> str:
    """Secrets in a variable are commonly put into headers; file contents are not."""
    out = ""
    for i, letter in enumerate(text):
        if letter == SECRET and i and call.shell.names.name(text[i - 1]):
            continue
        out += letter
    return out


def _without_keys(call: Invocation, url: str) -> str:
    """Some services expect `?key=$API_KEY`."""
    query = url.partition("?")[2]
    if host_of(url).endswith(_DROPS):
        return url
    names = ("key=", "api_key=", "apikey=", "access_token=", "token=", "appid=", "auth=")
    if query.startswith(names) or any(f"&{name}" in query for name in names) or "@" in url:
        return _without_variables(call, url)
    return url


def wget(call: Invocation) -> str:
    options = call.options()
    urls = options.rest
    if not (urls and all(is_local_host(host_of(url)) for url in urls)):
        target = host_of(urls[0]) if urls else "another machine"
        _judge_address(call, urls, (options.value("--method") or "").upper())
        for path in options.all("--post-file", "--body-file"):
            if SECRET in _body(call, path):
                leaks(call, target)
        for text in [value for _, value in options.values] + urls:
            if SECRET in _without_keys(call, _without_variables(call, text) if text not in urls else text):
                leaks(call, target)
    call.look(*(url for url in urls if url.startswith("file:")), *options.all("-i", "--input-file"))
    output = options.value("-O", "--output-document")
    if output is None and not options.has("--spider"):
        folder = options.value("-P", "--directory-prefix")
        if folder:
            effects.write(call.shell, folder, call.argv, appends=True)
        _keep_remote_names(call, urls)
        return ""
    if output in ("-", "/dev/stdout"):
        return NETWORK
    if output:
        call.store(output, NETWORK)
    return ""


def downloader(call: Invocation) -> str:
    """aria2c, httpie, xh, lynx -dump: their output comes from the network."""
    is_local = any(is_local_host(host_of(arg)) for arg in call.args if not arg.startswith("-"))
    is_secret = SECRET in call.stdin or any(SECRET in _without_variables(call, arg) for arg in call.args)
    is_secret = is_secret or any(SECRET in arg and "=" in arg and not _names_a_login(arg) for arg in call.args[1:])
    if is_secret and not is_local:
        leaks(call, "another machine")
    for arg in call.args:
        at = max(arg.find("@"), arg.find("=@"))
        if at >= 0 and SECRET in contents(call.shell, arg[at + 1 :].lstrip("@")):
            leaks(call, "another machine")
    if call.name in ("aria2c", "axel", "fetch"):
        _keep_remote_names(call, [arg for arg in call.args if "://" in arg])
    if not is_local:
        _judge_address(call, call.args[1:2], call.args[0].upper() if call.args else "")
    return NETWORK


def secure_copy(call: Invocation) -> str:
    options = call.options()
    for name, value in options.values:
        if name in ("-S",) or (name == "-o" and value.lower().startswith("proxycommand")):
            call.run_text(value.partition("=")[2] or value)
    if len(options.rest) < 2:
        return NETWORK
    target = options.rest[-1]
    if ":" in target.partition("/")[0]:
        judge_upload(call, options.rest[:-1], target)
    else:
        call.write(target)
    return NETWORK


def judge_upload(call: Invocation, paths: list[str], target: str) -> None:
    for path in paths:
        text = contents(call.shell, path) if path and not (is_mark(path[0]) and len(path) == 1) else path
        if SECRET in text or call.shell.full(path) in (call.shell.places.home, "/", "/etc"):
            leaks(call, target.partition(":")[0])


def file_transfer(call: Invocation) -> str:
    """sftp, ftp, lftp, tftp: their commands come from stdin or an option."""
    text = " ".join([*call.args, call.stdin])
    words = text.replace(";", " ").split()
    pairs = [(words[i], words[i + 1]) for i in range(len(words) - 1)]
    for verb, path in pairs:
        if verb in ("put", "mput", "send", "mirror") and (effects.is_secret(call.shell, path) or SECRET in path):
            leaks(call, "another machine")
        if verb in ("rm", "mrm", "delete", "mdelete", "rmdir"):
            call.deny("destruction", "This deletes files on another machine")
        if verb.startswith("!") and len(verb) > 1:
            call.run_text(text.partition("!")[2])
    return NETWORK


def mail(call: Invocation) -> str:
    sent = call.stdin + "".join(call.args)
    attached = [arg for arg in call.args if effects.is_secret(call.shell, arg)]
    if SECRET in sent or attached:
        leaks(call, "someone by email")
    return ""


def lookup(call: Invocation) -> str:
    """dig, nslookup, host, ping: a name can carry data out."""
    for arg in call.args:
        if SECRET in arg:
            leaks(call, "a name server")
        if not is_known(arg) and "." in arg and any(is_mark(letter) for letter in arg.partition(".")[0]):
            names = call.shell.names.names_in(arg)
            if not names or len(arg.partition(".")[0]) > 1:
                call.deny("exfiltration", "This sends data in a DNS lookup")
    return UNKNOWN


def send_file(call: Invocation) -> str:
    """wormhole, croc, ffsend, rclone, and other ways to send a file to someone."""
    for path in call.args:
        if not path.startswith("-") and SECRET in contents(call.shell, path):
            leaks(call, "someone else")
    if SECRET in call.stdin or any(SECRET in _without_variables(call, arg) for arg in call.args):
        leaks(call, "someone else")
    from ralph.guard.programs.rules import apply_rules

    apply_rules(call, call.name, call.args)
    return UNKNOWN


def evaluate_expression(call: Invocation) -> str:
    """PowerShell's `iex`."""
    if NETWORK in call.stdin or any(NETWORK in arg for arg in call.args) or any("(" in arg for arg in call.args):
        call.deny("remote-code")
    return call.run_text(" ".join(call.args) or call.stdin)
