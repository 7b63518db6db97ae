"""How clients are pointed at a gateway: exports and a few lines for each of the usual ones."""

from shlex import quote
from typing import Final

PLACEHOLDER_KEY: Final = "unused"


def list_exports(url: str, key: str = PLACEHOLDER_KEY) -> list[tuple[str, str]]:
    """Return the variables that the usual clients read."""
    return [
        ("OPENAI_BASE_URL", f"{url}/v1"),
        ("OPENAI_API_KEY", key),
        ("ANTHROPIC_BASE_URL", url),
        ("ANTHROPIC_API_KEY", key),
        ("GOOGLE_GEMINI_BASE_URL", url),
        ("GEMINI_API_KEY", key),
    ]


def render_exports(url: str, key: str = PLACEHOLDER_KEY) -> str:
    """Return the exports for a shell, which takes every value as it is."""
    return "\n".join(f"export {name}={quote(value)}" for name, value in list_exports(url, key))


def render_snippets(url: str, model: str, key: str = PLACEHOLDER_KEY) -> str:
    """Return ready-to-paste lines for the usual clients."""
    return f'''# openai
client = openai.OpenAI(base_url="{url}/v1", api_key="{key}")

# anthropic
client = anthropic.Anthropic(base_url="{url}", api_key="{key}")

# LangChain
llm = ChatOpenAI(base_url="{url}/v1", api_key="{key}", model="{model}")

# pydantic-ai
provider = OpenAIProvider(base_url="{url}/v1", api_key="{key}")
agent = Agent(OpenAIChatModel("{model}", provider=provider))

# curl
curl {url}/v1/chat/completions -H 'content-type: application/json' \\
  -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello"}}]}}'

# shell
{render_exports(url, key)}'''
