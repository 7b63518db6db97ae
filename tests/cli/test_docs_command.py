"""`surecall docs`: every page that hints and codes name can be read without a network."""

import re
from pathlib import Path

import pytest

from surecall.base.codes import all_codes
from surecall.base.errors import ConfigError
from surecall.cli import ExitCode
from surecall.cli.manual import KINDS, find_page, list_pages

from .harness import document, invoke

SOURCE = Path(__file__).parents[2] / "src" / "surecall"


def test_all_pages_are_listed_with_their_titles() -> None:
    """Every topic is there once, under its kind."""
    pages = document(invoke("docs", "--json"))["pages"]
    topics = [page["topic"] for page in pages]
    assert len(topics) == len(set(topics)) > 60
    assert {page["kind"] for page in pages} == set(KINDS)
    assert {"topic": "install", "kind": "how-to", "title": "Install surecall"} in pages


def test_topics_are_unique_over_all_folders() -> None:
    """No page hides another of the same name."""
    folder = SOURCE.parents[1] / "docs"
    files = [path for kind in KINDS for path in (folder / kind).glob("*.md")]
    assert len(files) == len(list_pages())


@pytest.mark.parametrize(
    "written", ["read-any-reply", "Read any reply", "read_any_reply", "how-to/read-any-reply.md"]
)
def test_a_page_is_found_however_it_is_written(written: str) -> None:
    """Case, blanks, underscores and paths do not matter."""
    assert find_page(written).title == "Read any reply"


def test_a_page_is_printed_as_it_is_into_a_pipe() -> None:
    """What is piped on is Markdown."""
    printed = invoke("docs", "install").stdout
    assert printed == find_page("install").text


def test_a_page_is_set_for_a_terminal() -> None:
    """At a terminal headings have no hash."""
    printed = invoke("--color", "always", "docs", "install").stdout
    assert "# Install" not in printed
    assert "Install surecall" in printed


def test_a_word_that_nothing_speaks_of_is_an_error() -> None:
    """The error says where all pages are listed."""
    result = invoke("docs", "zzqq", "--json")
    assert result.exit_code == ExitCode.USAGE
    error = document(result)
    assert error["code"] == "UNKNOWN_TOPIC"
    assert "`surecall docs` lists them all" in error["hint"]
    with pytest.raises(ConfigError):
        find_page("")


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("instal", "install"),
        ("openai client wrap", "wrap-your-client"),
        ("statistics rates", "statistics"),
    ],
)
def test_words_that_are_no_name_find_the_pages_with_them(words: str, first: str) -> None:
    """The page whose title has the words comes first."""
    found = document(invoke("docs", *words.split(), "--json"))
    assert found["type"] == "found"
    assert found["pages"][0]["topic"] == first


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("auth", "code"),
        ("max_turns", "option"),
        ("replace-quotes", "rule"),
        ("ToolLoopRunner", "word"),
        ("plan.llm_options", "word"),
    ],
)
def test_codes_and_names_are_explained_where_pages_are_found(word: str, kind: str) -> None:
    """Nobody has to know beforehand what kind of name it is."""
    found = document(invoke("docs", word, "--json"))
    assert found["type"] == "explanation"
    assert (found.get("kind") or "code") == kind


@pytest.mark.parametrize("text", [text for text in all_codes() if text.page], ids=lambda t: t.code)
def test_every_page_a_code_names_is_there(text: object) -> None:
    """`explain` never sends anybody to a page that does not exist."""
    page = getattr(text, "page", "")
    assert find_page(page).topic == page


def test_every_page_a_hint_names_is_there() -> None:
    """Hints name pages by the command that prints them."""
    texts = [path.read_text("utf-8") for path in SOURCE.rglob("*.py")]
    texts.append((SOURCE / "base" / "codes.toml").read_text("utf-8"))
    named = {
        topic for text in texts for topic in re.findall(r"surecall docs (?!explain)([a-z-]+)", text)
    }
    assert named >= {"codes", "options", "settings"}
    assert [topic for topic in sorted(named) if find_page(topic).topic != topic] == []


def test_explain_says_where_to_read_on() -> None:
    """A code with a page of its own names it."""
    printed = invoke("docs", "explain", "ARGUMENTS_TRUNCATED").stdout
    assert "surecall docs arguments-are-cut-off" in printed
