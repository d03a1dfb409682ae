"""What tokens of well-known services look like. Only data: `redaction` reads it.

The prefixes and lengths are those that the issuers document and that public secret scanners use. A shape is listed if
it can be recognized without the text around it; a bare hash, UUID or password cannot.
"""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    prefixes: str
    """Literal texts that a token begins with, separated by spaces. They do not follow a letter, a digit, `_` or `-`."""
    body: str
    """A regular expression for the rest. If it has a group, only the group is the secret."""


_URL64 = "[A-Za-z0-9_-]"
_END = "(?![A-Za-z0-9])"
AWS_SECRET = r"[\\\"'\s]{0,6}[=:][\\\"'\s]{0,6}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])"
"""What follows its name."""

SHAPES = (
    # models
    Shape("sk-", f"(?:ant|proj|svcacct|admin|or-v1|lf)-{_URL64}{{20,400}}|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{32,200}}"),
    Shape("gsk_", "[A-Za-z0-9]{48,60}"),
    Shape("xai-", "[A-Za-z0-9]{70,90}"),
    Shape("pplx-", "[A-Za-z0-9]{40,60}"),
    Shape("r8_", "[A-Za-z0-9]{37}"),
    Shape("hf_ api_org_", f"[A-Za-z]{{34}}{_END}"),
    # forges
    Shape("ghp_ gho_ ghs_ ghu_ ghr_", "[A-Za-z0-9]{36,255}"),
    Shape("github_pat_", "[A-Za-z0-9_]{40,255}"),
    Shape(
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-",
        "[A-Za-z0-9_-]{20,300}(?:[.][a-z0-9]{2}[.]?[a-z0-9]{7})?",
    ),
    Shape("GR1348941", f"{_URL64}{{20}}"),
    Shape("ATATT3 ATCTT3 ATBB", "[A-Za-z0-9_=-]{24,250}"),
    Shape("sgp_", "(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}"),
    # clouds
    Shape("AKIA ASIA ABIA ACCA", f"[A-Z0-9]{{16}}{_END}"),
    Shape("AIza", f"{_URL64}{{35}}(?!{_URL64})"),
    Shape("GOCSPX-", f"{_URL64}{{28}}"),
    Shape("ya29.", f"{_URL64}{{40,1000}}"),
    Shape("LTAI", f"[A-Za-z0-9]{{20}}{_END}"),
    Shape("AKID", f"[A-Za-z0-9]{{32}}{_END}"),
    Shape("dop_v1_ doo_v1_ dor_v1_", "[a-f0-9]{64}"),
    Shape("dapi", f"[a-f0-9]{{32}}(?:-[0-9])?{_END}"),
    Shape("fo1_ fm1a_ fm1r_ fm2_", "[A-Za-z0-9_+/=-]{43,2000}"),
    Shape("HRKU-", f"{_URL64}{{36,70}}"),
    Shape("dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", "[A-Za-z0-9_.-]{40,100}"),
    Shape("hvs. hvb. hvr.", f"{_URL64}{{24,300}}"),
    Shape(".atlasv1.", f"{_URL64}{{60,70}}"),
    Shape("pul-", f"[a-f0-9]{{40}}{_END}"),
    Shape("AccountKey= SharedAccessKey=", "[A-Za-z0-9+/]{40,90}={0,2}"),
    Shape("aws_secret_access_key AWS_SECRET_ACCESS_KEY", AWS_SECRET),
    # messages
    Shape("xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs- xoxd-", "[A-Za-z0-9%-]{15,300}"),
    Shape("xapp-", "[0-9]-[A-Za-z0-9-]{20,200}"),
    Shape("hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/", "[A-Za-z0-9+/_-]{30,100}"),
    Shape("discord.com/api/webhooks/ discordapp.com/api/webhooks/", f"[0-9]{{17,20}}/{_URL64}{{60,70}}"),
    Shape(".webhook.office.com/webhookb2/", "[A-Za-z0-9@/-]{60,300}"),
    Shape(":AA", f"(?<=[0-9]{{8}}:AA){_URL64}{{33}}(?!{_URL64})"),  # Telegram
    Shape("MT Mj Mz ND NT Nj Nz OD OT", rf"[A-Za-z0-9]{{22,26}}\.{_URL64}{{6}}\.{_URL64}{{27,40}}"),  # Discord
    Shape("SG.", rf"{_URL64}{{22}}\.{_URL64}{{43}}"),
    Shape("xkeysib-", "[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    Shape("key-", f"[a-f0-9]{{32}}{_END}"),
    Shape("SK", f"[a-f0-9]{{32}}{_END}"),
    # payment and shops
    Shape("sk_test_ sk_live_ sk_prod_ rk_test_ rk_live_ rk_prod_", "[A-Za-z0-9]{20,250}"),
    Shape("whsec_", "[A-Za-z0-9+/]{32,64}"),
    Shape("sq0atp- sq0csp- sq0idp-", f"{_URL64}{{22,60}}"),
    Shape("shpat_ shpca_ shppa_ shpss_ shptka_", "[a-fA-F0-9]{32}"),
    # registries
    Shape("npm_", f"[A-Za-z0-9]{{36}}{_END}"),
    Shape("_authToken=", "[A-Za-z0-9_.=-]{20,400}"),
    Shape("pypi-", f"AgE{_URL64}{{50,1000}}"),
    Shape("rubygems_", "[a-f0-9]{48}"),
    Shape("dckr_pat_ dckr_oat_", f"{_URL64}{{20,60}}"),
    Shape("CLOJARS_", "[a-z0-9]{60}"),
    Shape("AKCp", "[A-Za-z0-9]{69}"),
    # tools
    Shape("lin_api_ lin_oauth_", "[A-Za-z0-9]{32,64}"),
    Shape("ntn_", "[0-9]{11}[A-Za-z0-9]{35}"),
    Shape("secret_", f"[A-Za-z0-9]{{43}}{_END}"),
    Shape("figd_", f"{_URL64}{{40,60}}"),
    Shape("PMAK-", "[a-f0-9]{24}-[a-f0-9]{34}"),
    Shape("NRAK- NRII- NRJS- NRAA-", "[A-Za-z0-9-]{19,42}"),
    Shape("glsa_ glc_", "[A-Za-z0-9+/=_]{32,400}"),
    Shape("sntrys_ sntryu_", "[A-Za-z0-9+/=_]{40,400}"),
    Shape("dt0c01. dt0s01. dt0s02. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    Shape("pscale_tkn_ pscale_oauth_ pscale_pw_", "[A-Za-z0-9_=.-]{32,64}"),
    Shape("sbp_", f"[a-f0-9]{{40}}{_END}"),
    Shape("pnu_", f"[A-Za-z0-9]{{36}}{_END}"),
    Shape("tfp_", "[A-Za-z0-9_.=-]{40,70}"),
    Shape("AGE-SECRET-KEY-1", "[A-Z0-9]{58}"),
    Shape("A3-", f"[A-Z0-9]{{6}}-[A-Z0-9]{{6,11}}(?:-[A-Z0-9]{{5}}){{3,4}}{_END}"),
    Shape("ops_eyJ", "[A-Za-z0-9+/=]{250,2000}"),
    # JSON Web Tokens: signed, and encrypted
    Shape(
        "eyJ",
        rf"{_URL64}{{17,4000}}\.(?:eyJ{_URL64}{{17,4000}}(?:\.{_URL64}{{10,1400}})?"
        rf"|{_URL64}{{0,600}}\.{_URL64}{{16}}\.{_URL64}{{16,4000}}\.{_URL64}{{16,22}})",
    ),
    # headers of HTTP requests
    Shape("Bearer bearer", r" ((?=[^\s\"\\]{0,4000}[0-9])[A-Za-z0-9_.~+/=-]{20,4000})"),
    Shape("Authorization", r"[\\\"']{0,4}: ?[\\\"']{0,4}(?:Basic|Token|token) ([A-Za-z0-9_.~+/=-]{20,4000})"),
)  # fmt: skip

CONTINUED = "hook whsec_ fm2_ glc_ sntrys_"
"""In the beginning of tokens that contain `/` or `+`."""
