"""Redaction: recall, false positives and speed.

  python bench/redaction.py                 all three, on this machine's own files
  python bench/redaction.py --show          also print each false positive

Recall: tokens made at random from the formats that their issuers publish, in the contexts in which agents print them,
read in pieces of random size. False positives: real files without secrets (installed packages, lock files, hashes,
UUIDs, images in base64). Files are split by a hash of their name; the second half was never looked at while the shapes
were written. Speed: a ratio to copying the same bytes once, so that it does not depend on the machine.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import random
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from ralph.core.redaction import Redactor, Stream

_LOWER, _UPPER, _DIGIT = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_SETS = {
    "a": _LOWER + _UPPER + _DIGIT,
    "l": _LOWER + _UPPER,
    "h": "0123456789abcdef",
    "d": _DIGIT,
    "U": _UPPER + _DIGIT,
    "T": _UPPER + "234567",
    "z": _LOWER + _DIGIT,
    "u": _LOWER + _UPPER + _DIGIT + "_-",
    "b": _LOWER + _UPPER + _DIGIT + "+/",
}
FORMATS = {
    "anthropic": "sk-ant-api03-{u93}AA",
    "anthropic admin": "sk-ant-admin01-{u93}AA",
    "anthropic oauth": "sk-ant-oat01-{u93}AA",
    "openai": "sk-{a20}T3BlbkFJ{a20}",
    "openai project": "sk-proj-{u74}T3BlbkFJ{u74}",
    "openrouter": "sk-or-v1-{h64}",
    "perplexity": "pplx-{a48}",
    "hugging face": "hf_{l34}",
    "github pat": "ghp_{a36}",
    "github oauth": "gho_{a36}",
    "github app": "ghs_{a36}",
    "github fine-grained": "github_pat_{a22}_{a59}",
    "gitlab": "glpat-{u20}",
    "gitlab trigger": "glptt-{h40}",
    "gitlab runner": "glrt-{u20}",
    "gitlab registration": "GR1348941{u20}",
    "atlassian": "ATATT3{u186}",
    "aws": "AKIA{T16}",
    "aws session": "ASIA{T16}",
    "aws secret": "aws_secret_access_key = {b40}",
    "google": "AIza{u35}",
    "alibaba": "LTAI{z20}",
    "digitalocean": "dop_v1_{h64}",
    "databricks": "dapi{h32}",
    "fly": "fo1_{u43}",
    "doppler": "dp.pt.{a43}",
    "vault": "hvs.{u100}",
    "terraform": "{a14}.atlasv1.{u65}",
    "pulumi": "pul-{h40}",
    "heroku": "HRKU-AA{u58}",
    "slack bot": "xoxb-{d12}-{d12}-{a24}",
    "slack user": "xoxp-{d12}-{d12}-{d12}-{a32}",
    "slack app": "xapp-1-A{U10}-{d13}-{h64}",
    "slack webhook": "https://hooks.slack.com/services/T{U8}/B{U8}/{a24}",
    "sendgrid": "SG.{u22}.{u43}",
    "brevo": "xkeysib-{h64}-{z16}",
    "twilio": "SK{h32}",
    "mailgun": "key-{h32}",
    "telegram": "{d10}:AA{u33}",
    "stripe": "sk_live_{a24}",
    "stripe restricted": "rk_test_{a99}",
    "shopify": "shpat_{h32}",
    "square": "sq0atp-{u22}",
    "npm": "npm_{a36}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{u150}",
    "rubygems": "rubygems_{h48}",
    "clojars": "CLOJARS_{z60}",
    "artifactory": "AKCp{a69}",
    "linear": "lin_api_{a40}",
    "notion": "ntn_{d11}{a35}",
    "postman": "PMAK-{h24}-{h34}",
    "new relic": "NRAK-{U27}",
    "grafana": "glsa_{a32}_{h8}",
    "sentry": "sntryu_{h64}",
    "dynatrace": "dt0c01.{U24}.{U64}",
    "planetscale": "pscale_tkn_{u43}",
    "prefect": "pnu_{a36}",
    "sourcegraph": "sgp_{h16}_{h40}",
    "age": "AGE-SECRET-KEY-1{U58}",
    "1password": "A3-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}",
    "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{u60}.{u43}",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\n{b64}\n{b64}\n{b64}\n{b40}==\n-----END RSA PRIVATE KEY-----",
}
CONTEXTS = (
    "export TOKEN={}",
    'token: "{}"',
    "{}",
    "curl -H 'Authorization: Bearer {}' https://api.example.com",
    "https://user:{}@example.com/repo.git",
    "2026-01-01T00:00:00Z INFO using {} for the request",
    "\x1b[32m{}\x1b[0m",
    "https://example.com/?key={}&x=1",
)


def secret(form: str, dice: random.Random) -> str:
    return re.sub(r"\{(\w)(\d+)\}", lambda m: "".join(dice.choices(_SETS[m[1]], k=int(m[2]))), form)


def recall(rounds: int, seed: int) -> dict[str, float]:
    """The share of tokens of each format of which nothing secret is left."""
    dice, redactor = random.Random(seed), Redactor()
    shares = {}
    for name, form in FORMATS.items():
        hidden = 0
        for _ in range(rounds):
            token = secret(form, dice)
            text = f"some output before\n{dice.choice(CONTEXTS).format(token)}\nand after\n"
            line = text.encode()
            if dice.random() < 0.6:
                line = (json.dumps({"type": "user", "message": {"content": [{"text": text}]}}) + "\n").encode()
            out = in_pieces(line, redactor, dice)
            essence = max(re.split(r"[^A-Za-z0-9_-]", token.removeprefix("aws_secret_access_key")), key=len).encode()
            hidden += essence not in out and essence[6:-6] not in out
        shares[name] = hidden / rounds
    return shares


def in_pieces(data: bytes, redactor: Redactor, dice: random.Random) -> bytes:
    stream, out = Stream(redactor), b""
    while data:
        size = dice.randint(1, 200)
        out, data = out + stream.feed(data[:size]), data[size:]
    return out + stream.flush()


def samples() -> Iterator[tuple[str, bytes]]:
    """Real text without secrets, by name."""
    roots = [Path(sys.prefix, "lib"), Path(__file__).parents[1]]
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.suffix in {
                ".py",
                ".md",
                ".json",
                ".lock",
                ".toml",
                ".txt",
                ".js",
                ".pyi",
                ".h",
                ".c",
                ".css",
                ".html",
                ".svg",
            }:
                if path.is_file() and path.stat().st_size < 4_000_000 and "redact" not in path.name:
                    yield str(path), path.read_bytes()
            elif path.suffix in {".png", ".gif", ".so", ".exe"} and path.is_file() and path.stat().st_size < 8_000_000:
                yield f"{path}.b64", base64.encodebytes(path.read_bytes())
                yield f"{path}.b64 line", base64.b64encode(path.read_bytes())
    dice = random.Random(1)
    yield "uuids", "\n".join(str(uuid.UUID(int=dice.getrandbits(128))) for _ in range(20_000)).encode()
    yield "sha256 lines", "\n".join(f"    --hash=sha256:{dice.randbytes(32).hex()} \\" for _ in range(20_000)).encode()
    yield (
        "npm integrity",
        "\n".join(
            f'      "integrity": "sha512-{base64.b64encode(dice.randbytes(64)).decode()}",' for _ in range(20_000)
        ).encode(),
    )
    log = subprocess.run(["git", "log", "-p", "--no-color", "-n", "60"], capture_output=True, check=False, timeout=60)
    yield "git log -p", log.stdout


def false_positives(*, show: bool) -> None:
    redactor = Redactor()
    size, wrong, examples = [0, 0], [0, 0], []
    for name, data in samples():
        unseen = hashlib.sha256(Path(name).name.encode()).digest()[0] % 2
        spans = redactor.spans(data)
        size[unseen] += len(data)
        wrong[unseen] += len(spans)
        examples += [(unseen, name, data[start:end][:100]) for start, end, _ in spans]
    for half, label in enumerate(("seen", "unseen")):
        print(
            f"{label:7} {size[half] / 1e6:7.1f} MB  {wrong[half]} matches, {wrong[half] * 1e6 / size[half]:.4f} per MB"
        )
    for unseen, name, text in examples if show else ():
        print(f"  {'unseen' if unseen else 'seen'} {name[-80:]}: {text!r}")


def speed() -> None:
    text = b"".join(data for name, data in samples() if name.endswith(".py"))[:24_000_000]
    lines = [
        json.dumps({"type": "user", "message": {"content": text[at : at + 3000].decode("utf-8", "replace")}}).encode()
        for at in range(0, len(text), 3000)
    ]
    for name, data in {
        "agent's JSON lines": b"\n".join(lines),
        "source code": text,
        "yes": b"y\n" * 12_000_000,
        "base64": base64.b64encode(random.Random(1).randbytes(12_000_000)),
    }.items():
        pieces = [data[at : at + 131_072] for at in range(0, len(data), 131_072)]
        best = min(
            _seconds(pieces, Stream(Redactor({"GITHUB_TOKEN": "x" * 8 + "1234567890abcdefghij"}))) for _ in range(3)
        )
        copy = min(_seconds(pieces, None) for _ in range(3))
        print(f"{name:20} {len(data) / best / 1e6:6.0f} MB/s of CPU time, {best / copy:5.1f} x one bytes.translate")


def _seconds(pieces: list[bytes], stream: Stream | None) -> float:
    table = bytes(range(256))
    began = time.process_time()
    for piece in pieces:
        if stream is None:
            piece.translate(table)
        else:
            stream.feed(piece)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help="tokens of each format")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print each false positive")
    args = parser.parse_args()
    shares = recall(args.rounds, args.seed)
    print(f"recall  {sum(shares.values()) / len(shares):.4f} over {len(shares)} formats, {args.rounds} tokens each")
    for name, share in shares.items():
        if share < 1:
            print(f"  {name}: {share:.3f}")
    false_positives(show=args.show)
    speed()


if __name__ == "__main__":
    main()
