import pytest

from surecall.base.errors import Code, ConfigError
from surecall.models.transport import join_url


@pytest.mark.parametrize(
    ("base_url", "prefix", "path", "expected"),
    [
        pytest.param("http://h", None, "/chat", "http://h/v1/chat", id="no path gets v1"),
        pytest.param("http://h/", None, "/chat", "http://h/v1/chat", id="slash is no path"),
        pytest.param("http://h/api", None, "/chat", "http://h/api/chat", id="own path is kept"),
        pytest.param("http://h/v1//", None, "/chat", "http://h/v1/chat", id="slashes trimmed"),
        pytest.param("http://h/v1", "/v1", "/chat", "http://h/v1/chat", id="prefix not doubled"),
        pytest.param("http://h/v1/", "v1/", "chat", "http://h/v1/chat", id="slashes do not matter"),
        pytest.param("http://h/openai", "/v1", "/chat", "http://h/openai/v1/chat", id="added"),
        pytest.param("http://h/openai/v1", "/v1", "/chat", "http://h/openai/v1/chat", id="ends in"),
        pytest.param("http://h/xv1", "/v1", "/chat", "http://h/xv1/v1/chat", id="whole segments"),
        pytest.param("http://h", "", "/chat", "http://h/chat", id="empty prefix is none"),
        pytest.param("http://[::1]:8000", None, "/chat", "http://[::1]:8000/v1/chat", id="ipv6"),
        pytest.param("https://H:444/a", None, "/chat/x", "https://H:444/a/chat/x", id="port"),
        pytest.param("http://h", None, "", "http://h/v1", id="no path at all"),
    ],
)
def test_a_url_is_joined_with_the_prefix_once(
    base_url: str, prefix: str | None, path: str, expected: str
) -> None:
    """The prefix is there exactly once, whatever slashes were written."""
    assert join_url(base_url, prefix, path) == expected


@pytest.mark.parametrize(
    ("base_url", "prefix", "expected"),
    [
        pytest.param("http://h", None, "http://h/v1beta/models/m:go?alt=sse", id="default"),
        pytest.param("http://h/api", None, "http://h/api/models/m:go?alt=sse", id="own path"),
        pytest.param("http://h", "/v9", "http://h/v9/models/m:go?alt=sse", id="given"),
    ],
)
def test_a_wire_format_has_a_prefix_of_its_own(
    base_url: str, prefix: str | None, expected: str
) -> None:
    """It is used where neither the address nor the caller says another; a query stays."""
    path = "/models/m:go?alt=sse"
    assert join_url(base_url, prefix, path, default_prefix="/v1beta") == expected


@pytest.mark.parametrize(
    ("base_url", "told"),
    [
        pytest.param("ftp://h", "begin with http", id="other scheme"),
        pytest.param("localhost:8000", "begin with http", id="no scheme"),
        pytest.param("", "begin with http", id="empty"),
        pytest.param("http://", "host", id="no host"),
        pytest.param("http://h:0", "host or port", id="port zero"),
        pytest.param("http://h:99999", "not a URL", id="port too large"),
        pytest.param("http://[::1", "not a URL", id="bracket"),
        pytest.param("http://me:hunter2@h", "user information", id="userinfo"),
        pytest.param("http://h/v1?key=hunter2", "query", id="query"),
        pytest.param("http://h/v1#hunter2", "fragment", id="fragment"),
        pytest.param("http://h/ v1", "space", id="space"),
        pytest.param("http://h/v1\n", "control", id="line break"),
        pytest.param("http://h/v1/chat", "already ends in /chat", id="whole endpoint"),
    ],
)
def test_an_unusable_base_url_is_refused_without_repeating_it(base_url: str, told: str) -> None:
    """The refusal says what is wrong and never shows a password or key."""
    with pytest.raises(ConfigError) as caught:
        join_url(base_url, None, "/chat")
    assert caught.value.code == Code.INVALID_CONFIG
    assert told in str(caught.value)
    assert caught.value.hint
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("prefix", ["/v1?x=1", "v 1", "a//b", "/v1#x"])
def test_a_prefix_that_is_not_a_plain_path_is_refused(prefix: str) -> None:
    """A prefix cannot smuggle in a query."""
    with pytest.raises(ConfigError, match="not a plain path"):
        join_url("http://h", prefix, "/chat")
