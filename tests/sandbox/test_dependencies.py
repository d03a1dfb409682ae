"""What a project has installed in its folder is there for an agent in the sandbox and for its checks, at defaults.

git ignores these folders, so neither the clone nor the clean checkout of a proof would have them by itself.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.cli import Completed, ralph
from support.clients import Project

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.defaults]
CLAIM = 'echo \'{"claim": "done"}\' > .ralph/work/request.json'


def project_of(folder: Path, files: dict[str, str], check: str, script: str, **config: Any) -> Project:
    """Its agent is a shell script, and its only check the project's own tests."""
    agent = {"name": "command", "command": ["/bin/sh", "-ec", f"{script}\n{CLAIM}"]}
    checks = [{"name": "tests", "command": check}]
    config = {"sandbox": {"network": "none"}} | config
    project = Project(folder, own=False, agent=agent, checks=checks, **config)
    for name, text in files.items():
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text(text)
    project.commit()
    return project


def run(project: Project) -> Completed:
    return ralph("run", "-n", "1", "--plain", "-v", cwd=project.root, env=project.env)


def is_proven(project: Project, done: Completed) -> None:
    shown = done.out + done.err
    assert "everything inside its sandbox" in done.out, shown
    assert "checks run outside the sandbox" not in shown
    proof = ralph("proof", "S-1", cwd=project.root, env=project.env)
    assert "clean checkout" in proof.out, shown + proof.out + proof.err
    assert (done.code, proof.code) == (0, 0), shown + proof.out


SHOP = {
    ".gitignore": ".venv/\n__pycache__/\n",
    "src/shop/__init__.py": "PRICE = 7\n",
    "test_shop.py": "import unittest\n\nimport shop\nimport taxes\n\n\nclass Prices(unittest.TestCase):\n"
    "    def test_price(self):\n        self.assertEqual(taxes.add(shop.PRICE), shop.PRICE + 1)\n",
}
NEW_TEST = (
    "import unittest\n\nimport shop\nimport taxes\n\n\nclass Story1(unittest.TestCase):\n"
    "    def test_s1_txt_is_there(self):\n        self.assertEqual(taxes.add(shop.PRICE), 9)\n"
)


def test_a_virtualenv_with_an_editable_install_belongs_to_whichever_copy_uses_it(tmp_path: Path) -> None:
    """The installed package is the code of the clone for the agent, and that of the clean checkout in the proof."""
    script = f"""
        .venv/bin/python -B -m unittest -q
        echo 'PRICE = 8' > src/shop/__init__.py
        cat > test_more.py <<'END'
{NEW_TEST}END
        .venv/bin/python -B -m unittest -q
        .venv/bin/python -B -c 'import shop; print("IMPORTED", shop.__file__)'
        echo x > s1.txt
    """
    project = project_of(tmp_path, SHOP, ".venv/bin/python -B -m unittest -v", script)
    environment = project.root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "taxes.py").write_text("def add(price):\n    return price + 1\n")
    (packages / "__editable__.shop-1.0.pth").write_text(f"{project.root / 'src'}\n")  # as pip installs it
    done = run(project)
    is_proven(project, done)
    [imported] = re.findall(r"IMPORTED (\S+)/src/shop/__init__.py", done.out)
    assert Path(imported).is_relative_to(project.state), "it is the clone's"
    assert (project.root / "src/shop/__init__.py").read_text() == "PRICE = 8\n"
    assert (packages / "__editable__.shop-1.0.pth").read_text() == f"{project.root / 'src'}\n"


@pytest.fixture
def registry() -> Iterator[str]:
    """A registry of npm packages with one: `plus-one`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        about = '{"name": "plus-one", "version": "1.0.0"}'
        files = {"package.json": about, "index.js": "module.exports = n => n + 1\n"}
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    data = packed.getvalue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            whole = b64encode(hashlib.sha512(data).digest()).decode()
            dist = {"tarball": f"{address}/plus-one/-/plus-one-1.0.0.tgz", "integrity": f"sha512-{whole}"}
            version = {"name": "plus-one", "version": "1.0.0", "dist": dist}
            document = {"name": "plus-one", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
            body = data if self.path.endswith(".tgz") else json.dumps(document).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


NODE = {
    ".gitignore": "node_modules/\n",
    "package.json": '{"name": "shop", "version": "1.0.0", "dependencies": {"plus-one": "1.0.0"}}\n',
    "price.js": "module.exports = 7\n",
    "shop.test.js": "const test = require('node:test')\nconst assert = require('node:assert')\n"
    "const add = require('plus-one')\nconst price = require('./price.js')\n"
    "test('price', () => assert.equal(add(price), price + 1))\n",
}


@pytest.mark.needs("node")
@pytest.mark.needs("npm")
def test_node_modules_are_there_and_npm_ci_works_from_a_registry_on_the_list(tmp_path: Path, registry: str) -> None:
    script = """
        node --test
        echo 'module.exports = 8' > price.js
        sed "s/test(.*/test('s1.txt is there', () => assert.equal(add(price), 9))/" shop.test.js > s1.test.js
        rm -rf node_modules
        npm ci --no-audit --no-fund
        node --test
        echo x > s1.txt
    """
    project = project_of(tmp_path, NODE, "node --test", script, sandbox={"allow_hosts": [registry]})
    (project.home / ".npmrc").write_text(f"registry=http://{registry}/\nfund=false\nupdate-notifier=false\n")
    install = ["npm", "install", "--no-audit", "--no-fund"]
    subprocess.run(install, cwd=project.root, env=project.env, check=True, capture_output=True)
    project.commit()
    done = run(project)
    is_proven(project, done)
    assert "added 1 package" in done.out
    assert (project.root / "price.js").read_text() == "module.exports = 8\n"


def test_an_agent_in_a_virtualenv_of_the_home_folder_has_its_packages(tmp_path: Path) -> None:
    """Not on PATH, and its folder is hidden inside, but for what it was installed with."""
    home = tmp_path / "home"
    environment = home / "tools" / "agent"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "agent_library.py").write_text(
        "from pathlib import Path\n\n\ndef work():\n    Path('s1.txt').touch()\n"
    )
    (home / "tools" / "private.txt").write_text("not for agents\n")
    program = environment / "bin" / "agent"
    program.write_text(
        f"#!{environment}/bin/python\nimport os, agent_library\nagent_library.work()\n"
        f"print('BESIDE', os.listdir({str(home / 'tools')!r}))\nos.system({CLAIM!r})\n"
    )
    program.chmod(0o755)
    agent = {"name": "command", "command": [str(program)]}
    project = Project(tmp_path, agent=agent, sandbox={"network": "none"})
    done = run(project)
    assert (done.code, "BESIDE ['agent']" in done.out) == (0, True), done.out + done.err
