"""Templates of the report: what is put into them stays text."""

from collections.abc import Iterator
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.evals.report import markup
from surecall.evals.report.markup import Html, fill, name

TEMPLATE = """<ul>
  {{#rows}}<li{{#css}} class="{{css}}"{{/css}}>{{who}}
    {{#tags}}[{{.}}]{{/tags}}{{^tags}} none{{/tags}}</li>
  {{/rows}}
</ul>{{left}}"""


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have one template under every name."""
    monkeypatch.setattr(markup, "read_asset", lambda *_: TEMPLATE)
    markup._split.cache_clear()
    yield
    markup._split.cache_clear()


@pytest.mark.usefixtures("show")
def test_sections_repeat_and_look_outwards() -> None:
    """A list repeats, what is not there is left out, and an inner key wins over an outer one."""
    rows = [{"who": "a", "css": "x", "tags": ["1", "2"]}, {"tags": [], "css": None}]
    shown = fill("any.html", "any", {"who": "outer", "rows": rows, "left": None})
    assert shown == '<ul><li class="x">a[1][2]</li><li>outer none</li></ul>'


@pytest.mark.usefixtures("show")
@given(st.text())
def test_whatever_a_text_holds_it_stays_text(text: str) -> None:
    """No markup comes out of a value, a place in braces included; markup itself is kept."""
    shown = fill("any.html", "any", {"rows": [], "left": f"{text}{{{{rows}}}}<b>"})
    assert shown.count("<") == 2
    assert unescape(shown.removeprefix("<ul></ul>")).endswith("{{rows}}<b>")
    assert fill("any.html", "any", {"rows": [], "left": Html("<b>")}).endswith("</ul><b>")


def test_a_name_can_break_at_its_joints_and_hides_nothing() -> None:
    """A long name gets places to break, and a sign that turns the text is shown by number."""
    assert name("a/b_c") == "<bdi>a/<wbr>b_<wbr>c</bdi>"
    assert name("a/b", whole=True) == "<bdi>a/b</bdi>"
    assert name("a\u202eb") == '<bdi>a<span class="unseen">U+202E</span>b</bdi>'
