"""A file with errors is refused with all of them: file, line, key, and the likeliest right word."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from surecall.base.errors import ConfigError
from surecall.gateway.settings.load import load_settings

A = '[upstreams.a]\nurl = "http://x"\n'
ENVIRON = {"OPENAI_API_KEY": "k-1234567890-abcdefgh", "SHORT": "abc"}


class Wrong(NamedTuple):
    """A file, and what its error has to say."""

    text: str
    line: int
    key: str
    word: str


WRONG = {
    "misspelt key": Wrong("[server]\nprot = 1\n", 2, "server.prot", "'port'"),
    "misspelt table": Wrong('\n[upstream.a]\nurl = "http://x"\n', 2, "upstream", "'upstreams'"),
    "key of another table": Wrong("port = 8080\n", 1, "port", "[server]"),
    "word of another gateway": Wrong(
        '[upstreams.a]\nbase_url = "http://x"\n', 2, "upstreams.a.base_url", "'url'"
    ),
    "the key itself": Wrong(A + 'api_key = "k"\n', 3, "upstreams.a.api_key", "'api_key_env'"),
    "number in quotes": Wrong('[server]\nport = "8787"\n', 2, "server.port", "port = 8787"),
    "truth in quotes": Wrong(
        '[store]\nkeep_bodies = "True"\n', 2, "store.keep_bodies", "keep_bodies = true"
    ),
    "number for a text": Wrong("[upstreams.a]\nurl = 5\n", 2, "upstreams.a.url", 'url = "5"'),
    "text for a list": Wrong(A + 'models = "gpt-*"\n', 3, "upstreams.a.models", '["gpt-*"]'),
    "value for a table": Wrong("[upstreams]\na = 1\n", 2, "upstreams.a", "[upstreams.a]"),
    "table without a name": Wrong(
        '[upstreams]\nurl = "http://x"\n', 2, "upstreams.url", "[upstreams.NAME]"
    ),
    "one key": Wrong('[keys]\nid = "a"\n', 1, "keys", "[[keys]]"),
    "out of bounds": Wrong("[server]\n\nport = 70000\n", 3, "server.port", "at most 65535"),
    "not a number": Wrong("[limits]\nidle_s = nan\n", 2, "limits.idle_s", "more than 0"),
    "misspelt word": Wrong('[[keys]]\nid = "a"\nrole = "Admins"\n', 3, "keys[0].role", "'admin'"),
    "nothing required": Wrong("[upstreams.a]\n", 1, "upstreams.a", "url"),
    "inside a list": Wrong(
        A + '[routes.r]\ntargets = [\n  {upstream = "a", model = "m", wieght = 2},\n]\n',
        5,
        "routes.r.targets[0].wieght",
        "'weight'",
    ),
    "in the second table": Wrong(
        '[[keys]]\nid = "a"\nkey_sha256 = "' + 64 * "a" + '"\n[[keys]]\nid = "b"\nrpm = 1\n',
        6,
        "keys[1].rpm",
        "'requests_per_minute'",
    ),
    "behind a long text": Wrong(
        A + 'provider = """\n[server]\nport = 1\n"""\nkye = "none"\n', 7, "kye", "'key'"
    ),
    "unknown upstream": Wrong(
        A + '[routes.r]\ntargets = [{upstream = "aa", model = "m"}]\n', 4, "routes.r", "'a'"
    ),
    "bad address": Wrong('[upstreams.a]\nurl = "ftp://x"\n', 2, "upstreams.a.url", "http://"),
    "user in the address": Wrong(
        '[upstreams.a]\nurl = "http://u:p@x/v1"\n', 2, "upstreams.a.url", "user"
    ),
    "key in a header": Wrong(
        A + 'headers = {x-api-key = "k"}\n', 3, "headers.x-api-key", "api_key_env"
    ),
    "misspelt variable": Wrong(
        A + 'api_key_env = "OPENAI_API_KYE"\n', 3, "upstreams.a.api_key_env", "'OPENAI_API_KEY'"
    ),
    "key for a variable": Wrong(
        A + 'api_key_env = "sk-proj-abcdefghijklmnop1234"\n', 3, "api_key_env", "name of a variable"
    ),
    "unknown format": Wrong(
        A + 'protocol = "chat_completion"\n', 3, "upstreams.a.protocol", "'chat_completions'"
    ),
    "unknown capability": Wrong(
        A + "capabilities = {native_tool = 1}\n", 3, "capabilities.native_tool", "Did you mean"
    ),
    "field of clients": Wrong(
        "[models.m]\nrequest_overrides = {stream = true}\n",
        2,
        "models.m.request_overrides.stream",
        "clients",
    ),
    "unknown preset": Wrong('[models.m]\npreset = ["nothing"]\n', 2, "models.m.preset", "nothing"),
    "virtual key without a value": Wrong('[[keys]]\nid = "a"\n', 1, "keys[0]", "key_sha256"),
    "short virtual key": Wrong(
        '[[keys]]\nid = "a"\nkey_env = "SHORT"\n', 3, "keys[0].key_env", "surecall config keys new"
    ),
    "alias of an alias": Wrong('[aliases]\na = "b"\nb = "c"\n', 2, "aliases.a", 'a = "c"'),
    "no weight": Wrong(
        A + '[routes.r]\ntargets = [{upstream = "a", model = "m", weight = 0}]\n',
        4,
        "routes.r.targets",
        "weight = 1",
    ),
    "store that is not set": Wrong('[store]\nurl_env = "NOT_SET"\n', 2, "store.url_env", "NOT_SET"),
    "open to all": Wrong('[server]\nhost = "0.0.0.0"\n', 2, "server.host", "[[keys]]"),
    "half a price": Wrong(
        "[models.m.prices]\ninput = 2.5\n", 1, "models.m.prices", "Add output = 1"
    ),
    "misspelt price": Wrong(
        "[models.m.prices]\ninput = 1\noutput = 2\ncached = 1\n", 4, "cached", "'cached_input'"
    ),
    "money without prices": Wrong(
        '[[keys]]\nid = "a"\nkey_sha256 = "' + 64 * "a" + '"\ncost_per_month = 5\n',
        4,
        "keys[0].cost_per_month",
        ".prices]",
    ),
    "budget of another gateway": Wrong(
        '[[keys]]\nid = "a"\nmax_budget = 5\n', 3, "keys[0].max_budget", "'cost_per_month'"
    ),
    "list for named tables": Wrong(
        '[[upstreams]]\nurl = "http://x"\n', 1, "upstreams", "[upstreams.NAME]"
    ),
    "word for a truth": Wrong('[telemetry]\notel = "on"\n', 2, "telemetry.otel", "otel = true"),
    "key of the whole file": Wrong(
        A + 'relay_paths = ["files"]\n', 3, "upstreams.a.relay_paths", "above all tables"
    ),
    "not quoted": Wrong("[upstreams.a]\nurl = http://x\n", 2, "url", 'url = "http://x"'),
    "capital truth": Wrong(A + "[store]\nkeep_bodies = True\n", 4, "keep_bodies", "= true"),
    "key twice": Wrong(A + 'url = "http://y"\n', 3, "url", "Leave one out"),
    "table twice": Wrong(A + A, 3, "[upstreams.a]", "Leave one out"),
    "open bracket": Wrong("[server\nport = 1\n", 1, "[server", "']'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_error_names_line_key_and_the_right_word(case: str, tmp_path: Path) -> None:
    """Never the words of a library, and never the file's name alone."""
    wrong = WRONG[case]
    path = tmp_path / "gateway.toml"
    path.write_text(wrong.text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(path, environ=ENVIRON)
    message, hint = caught.value.message, caught.value.hint or ""
    assert f"gateway.toml, line {wrong.line}: " in message
    assert wrong.key in message
    assert wrong.word in f"{message} {hint}"
    for foreign in ("Expected `", "- at `", "Object ", "sk-proj"):
        assert foreign not in f"{message} {hint}"


def test_all_errors_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    """In the order of their lines; nothing follows from another error."""
    path = tmp_path / "gateway.toml"
    path.write_text(
        """[server]
host = "0.0.0.0"
workers = "2"
[upstreams.a]
url = "ftp://x"
protocol = "soap"
[upstreams.b]
urll = "http://x"
[routes.r]
targets = [{upstream = "b", model = "m"}]
[[keys]]
id = "a"
role = "boss"
""",
        "utf-8",
    )
    with pytest.raises(ConfigError) as caught:
        load_settings(path, environ={})
    first, *rest = caught.value.message.splitlines()
    assert first.endswith("gateway.toml has 5 errors.")
    keys = [line.split(" ")[2] for line in rest]
    assert keys == [
        "server.workers",
        "upstreams.a.url",
        "upstreams.a.protocol",
        "upstreams.b.urll",
        "keys[0].role",
    ]


def test_a_new_key_is_shown_once_and_stored_as_its_digest(tmp_path: Path) -> None:
    """The entry is added behind what the file has; the same id is refused."""
    path = tmp_path / "gateway.toml"
    path.write_text(A.rstrip(), "utf-8")
    command = [
        sys.executable,
        "-m",
        "surecall",
        "config",
        "keys",
        "new",
        "team-a",
        "--config",
        str(path),
    ]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    key = made.stdout.strip()
    assert len(key) > 40
    assert key not in path.read_text("utf-8") + made.stderr
    (entry,) = load_settings(path, environ={}).keys
    assert entry.settings.id == "team-a"
    assert entry.digest == sha256(key.encode()).digest()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode != 0
    assert "team-a" in again.stderr
    assert len(load_settings(path, environ={}).keys) == 1
