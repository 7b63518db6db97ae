"""How clients are pointed at a gateway: exports and a few lines for each of the usual ones."""

from shlex import quote
from typing import Final

PLACEHOLDER_KEY: Final = "unused"
_KEYS: Final = frozenset({"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"})


def list_exports(url: str, key: str | None = None) -> list[tuple[str, str]]:
    """Return the variables that the usual clients read; without a key those of keys stay unset."""
    exports = [
        ("OPENAI_BASE_URL", f"{url}/v1"),
        ("OPENAI_API_KEY", key),
        ("ANTHROPIC_BASE_URL", url),
        ("ANTHROPIC_API_KEY", key),
        ("GOOGLE_GEMINI_BASE_URL", url),
        ("GEMINI_API_KEY", key),
    ]
    return [(name, value) for name, value in exports if value is not None]


def render_exports(url: str, key: str | None = None) -> str:
    """Return the exports for a shell, which takes every value as it is.

    Without a key, a client keeps the one that its shell has; only where there is none, clients that
    insist on a key find a stand-in.
    """
    lines: list[str] = []
    for name, value in list_exports(url, key or PLACEHOLDER_KEY):
        is_kept = key is None and name in _KEYS
        shown = f'"${{{name}:-{PLACEHOLDER_KEY}}}"' if is_kept else quote(value)
        lines.append(f"export {name}={shown}")
    return "\n".join(lines)


def render_snippets(url: str, model: str, key: str | None = None) -> str:
    """Return ready-to-paste lines for the usual clients; without a key they read their own."""
    own = "" if key is None else f', api_key="{key}"'
    header = f"authorization: Bearer {'$OPENAI_API_KEY' if key is None else key}"
    sent = "" if key == PLACEHOLDER_KEY else f'-H "{header}" '
    return f'''# openai
client = openai.OpenAI(base_url="{url}/v1"{own})

# anthropic
client = anthropic.Anthropic(base_url="{url}"{own})

# LangChain
llm = ChatOpenAI(base_url="{url}/v1"{own}, model="{model}")

# pydantic-ai
provider = OpenAIProvider(base_url="{url}/v1"{own})
agent = Agent(OpenAIChatModel("{model}", provider=provider))

# curl
curl {url}/v1/chat/completions {sent}-H 'content-type: application/json' \\
  -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello"}}]}}'

# shell
{render_exports(url, key)}'''
