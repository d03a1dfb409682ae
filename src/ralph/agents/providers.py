"""The services that clients for every provider can use: the variable with the key → the service's hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ralph.agents.program import host_of

_HOSTS = {
    "ANTHROPIC_API_KEY": ("api.anthropic.com",),
    "ANTHROPIC_OAUTH_TOKEN": ("api.anthropic.com", "platform.claude.com", "console.anthropic.com"),
    "OPENAI_API_KEY": ("api.openai.com",),
    "AZURE_OPENAI_API_KEY": ("*.openai.azure.com", "*.cognitiveservices.azure.com"),
    "GEMINI_API_KEY": ("generativelanguage.googleapis.com",),
    "GOOGLE_GENERATIVE_AI_API_KEY": ("generativelanguage.googleapis.com",),
    "OPENROUTER_API_KEY": ("openrouter.ai",),
    "AI_GATEWAY_API_KEY": ("ai-gateway.vercel.sh",),
    "OPENCODE_API_KEY": ("opencode.ai",),
    "GROQ_API_KEY": ("api.groq.com",),
    "CEREBRAS_API_KEY": ("api.cerebras.ai",),
    "XAI_API_KEY": ("api.x.ai",),
    "DEEPSEEK_API_KEY": ("api.deepseek.com",),
    "MISTRAL_API_KEY": ("api.mistral.ai",),
    "MOONSHOT_API_KEY": ("api.moonshot.ai", "api.moonshot.cn"),
    "KIMI_API_KEY": ("api.kimi.com",),
    "ZAI_API_KEY": ("api.z.ai",),
    "MINIMAX_API_KEY": ("api.minimax.io",),
    "FIREWORKS_API_KEY": ("api.fireworks.ai",),
    "TOGETHER_API_KEY": ("api.together.xyz",),
    "AWS_BEARER_TOKEN_BEDROCK": ("*.amazonaws.com",),
}
KEYS = tuple(_HOSTS)
_LOGINS = ("github.com", "api.github.com", "*.githubcopilot.com", "chatgpt.com", "auth.openai.com")
"""Of subscriptions that a user can log in with, without a key."""
PROXY = (
    *("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("NODE_EXTRA_CA_CERTS", "AWS_REGION"),
)


def provider_hosts(env: Mapping[str, str], addresses: Iterable[str], *, has_login: bool) -> tuple[str, ...]:
    """The addresses that the user has set, and the services with a key. `has_login`: any other may be logged in to."""
    found = [host_of(address) for address in addresses]
    found += [host for key, hosts in _HOSTS.items() if env.get(key) for host in hosts]
    if has_login or not found:
        found += [*(host for hosts in _HOSTS.values() for host in hosts), *_LOGINS]
    return tuple(dict.fromkeys(found))
