"""Reading envelopes: what is taken, what is left out, and what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.errors import ConfigError
from surecall.loop.directives import DirectiveRegistry, parse_envelope
from surecall.text import encode_text

from .types import Toast, make_registry

REGISTRY = make_registry()
FORM = {"type": "ui.show_form", "payload": {"form_id": "c"}}
TOAST = {"type": "ui.toast", "payload": {"message": "Saved", "level": "info"}}
PATCH = {
    "type": "ui.patch",
    "payload": {"ops": [{"op": "set", "path": "/draft/foo", "value": [1, {"a": "b"}]}]},
}
UPLOAD = {"type": "ui.request_upload", "payload": {"purpose": "image", "max_bytes": 1200}}


def envelope(*directives: Any, text: Any = "Hi") -> dict[str, Any]:
    """Return an envelope."""
    return {"assistant_text": text, "directives": list(directives)}


def test_a_clean_envelope_is_certain_and_leaves_no_receipt() -> None:
    """Everything is there as it was written."""
    found = parse_envelope(encode_text(envelope(FORM, TOAST, PATCH, UPLOAD)), REGISTRY)
    assert found.envelope is not None
    assert found.envelope.assistant_text == "Hi"
    said = [{"type": item.type, "payload": item.payload} for item in found.envelope.directives]
    assert said == [FORM, TOAST, PATCH, UPLOAD]
    assert (found.certainty, found.receipts, found.warnings) == ("certain", (), ())


def test_a_payload_becomes_an_object_of_its_type() -> None:
    """A dataclass is built, with what it adds by itself."""
    found = parse_envelope(envelope({"type": "ui.toast", "payload": {"message": "x"}}), REGISTRY)
    assert found.envelope is not None
    assert found.envelope.directives[0].value == Toast("x", "info")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "EMPTY"),
        ("  \n", "EMPTY"),
        ("x" * 200_001, "TOO_LARGE"),
        ("[1, 2]", "NOT_OBJECT"),
        ("I cannot do that.", "INVALID_JSON"),
        ('{"directives": []}', "MISSING_ASSISTANT_TEXT"),
        ('{"assistant_text": 3, "directives": []}', "MISSING_ASSISTANT_TEXT"),
        ('{"assistant_text": "x"}', "MISSING_DIRECTIVES"),
        ('{"assistant_text": "x", "directives": null}', "MISSING_DIRECTIVES"),
        ('{"assistant_text": "x", "directives": [', "VALUE_TRUNCATED"),
        ('{"assistant_text": "x", "directives": []', "VALUE_TRUNCATED"),
    ],
)
def test_what_is_refused_as_a_whole(text: str, code: str) -> None:
    """There is no envelope, and the first error says why."""
    found = parse_envelope(text, REGISTRY)
    assert found.envelope is None
    assert found.errors[0].code == code


@pytest.mark.parametrize(
    ("directive", "code", "path"),
    [
        ("toast", "DIRECTIVE_NOT_OBJECT", "/directives/1"),
        ({"payload": {}}, "MISSING_TYPE", "/directives/1/type"),
        ({"type": " ", "payload": {}}, "MISSING_TYPE", "/directives/1/type"),
        ({"type": "ui.dance", "payload": {}}, "UNKNOWN_DIRECTIVE_TYPE", "/directives/1/type"),
        ({"type": "ui.toast"}, "MISSING_PAYLOAD", "/directives/1/payload"),
        ({"type": "ui.toast", "payload": 3}, "MISSING_PAYLOAD", "/directives/1/payload"),
        ({"type": "ui.toast", "payload": {}}, "PAYLOAD_INVALID", "/directives/1/payload"),
        ({"type": "ui.request_upload", "payload": {}}, "MISSING_PURPOSE", "/directives/1/payload"),
        ({"type": "ui.patch", "payload": {}}, "MISSING_OPS", "/directives/1/payload/ops"),
    ],
)
def test_a_directive_of_no_use_is_left_out_with_a_warning(
    directive: Any, code: str, path: str
) -> None:
    """The others count, and the warning says where and why."""
    found = parse_envelope(encode_text(envelope(FORM, directive, TOAST)), REGISTRY)
    assert found.envelope is not None
    assert [item.type for item in found.envelope.directives] == ["ui.show_form", "ui.toast"]
    assert [(item.code, item.path) for item in found.warnings] == [(code, path)]


def test_a_type_that_is_not_allowed_is_left_out() -> None:
    """A list of allowed types narrows the registry."""
    found = parse_envelope(envelope(FORM, TOAST), REGISTRY, allowed=["ui.toast"])
    assert found.envelope is not None
    assert [item.type for item in found.envelope.directives] == ["ui.toast"]
    assert [item.code for item in found.warnings] == ["DISALLOWED_DIRECTIVE_TYPE"]


def test_a_validator_that_raises_is_reported_as_such() -> None:
    """Its exception is a warning, and not raised."""

    def check(payload: dict[str, Any]) -> None:
        raise KeyError("level")

    registry = DirectiveRegistry().add("a", payload=check)
    found = parse_envelope(envelope({"type": "a", "payload": {}}), registry)
    assert found.envelope is not None
    assert found.envelope.directives == ()
    assert [item.code for item in found.warnings] == ["PAYLOAD_VALIDATOR_ERROR"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"Assistant\u2011Text": "Hi", "directives": []}', "rename_key"),
        (('{"assistant_text": "Hi", "directives": {"type": "ui.toast", '
         '"payload": {"message": "x"}}}'), "wrap_in_array"),
        ('{"assistant_text": "Hi", "directives": "[]"}', "decode_json_text"),
        (('{"assistant_text": "Hi", "directives": [{"type": "UI-Toast", '
         '"payload": {"message": "x"}}]}'), "match_enum"),
        (('{"assistant_text": "Hi", "directives": [{"type": "open_form", '
         '"payload": {"form_id": "x"}}]}'), "match_enum"),
        (('{"assistant_text": "Hi", "directives": [{"type": "ui.toast", '
         '"payload": "{\\"message\\": \\"x\\"}"}]}'), "decode_json_text"),
        (('{"assistant_text": "Hi", "directives": [{"type": "ui.show_form", '
         '"payload": {"form_id": "x", "steps": "3"}}]}'), "parse_number_text"),
    ],
)  # fmt: skip
def test_a_slip_that_can_mean_one_thing_is_read_with_a_receipt(text: str, rule: str) -> None:
    """The envelope is whole, and the change is written down."""
    found = parse_envelope(text, REGISTRY)
    assert found.envelope is not None
    assert found.warnings == ()
    assert rule in [item.rule for item in found.receipts]


@pytest.mark.parametrize(
    "around", ["Sure:\n```json\n{}\n```", "<directives>{}</directives>", "A {}"]
)
def test_an_envelope_in_prose_is_only_likely(around: str) -> None:
    """It is taken by default, says so, and is refused where only certain ones are."""
    text = around.replace("{}", encode_text(envelope(TOAST)))
    found = parse_envelope(text, REGISTRY)
    assert (found.ok, found.certainty) == (True, "likely")
    assert found.doubt
    strict = parse_envelope(text, REGISTRY, accept="certain")
    assert [error.code for error in strict.errors] == ["VALUE_NOT_CERTAIN"]


def test_two_different_envelopes_are_ambiguous() -> None:
    """Nobody can say which of them is meant."""
    text = f"{encode_text(envelope(TOAST))}\n\n{encode_text(envelope(FORM))}"
    found = parse_envelope(text, REGISTRY)
    assert found.envelope is None
    assert found.errors[0].code == "VALUE_AMBIGUOUS"


PAYLOADS = st.fixed_dictionaries(
    {"message": st.text(max_size=12)},
    optional={"level": st.sampled_from(["info", "error"])},
).map(lambda payload: {"type": "ui.toast", "payload": payload})
ANY = st.sampled_from([FORM, TOAST, PATCH, UPLOAD]) | PAYLOADS


@given(
    directives=st.lists(ANY, max_size=4),
    text=st.text(max_size=12),
    finish=st.sampled_from(["stop", "length", None, "odd"]),
    lead_in=st.sampled_from(["", "Sure: ", "```json\n", "<think>x</think>"]),
    place=st.integers(0, 4000),
)
def test_a_cut_envelope_yields_no_directive_that_differs(
    directives: list[Any], text: str, finish: str | None, lead_in: str, place: int
) -> None:
    """Wherever a reply is cut: the whole envelope is read, or nothing of it."""
    document = lead_in + encode_text(envelope(*directives, text=text))
    whole = parse_envelope(document, REGISTRY)
    assert whole.envelope is not None
    cut = parse_envelope(document[: place % (len(document) + 1)], REGISTRY, finish_reason=finish)
    if cut.envelope is not None:
        assert cut.envelope == whole.envelope


@given(st.text(max_size=80) | st.text(alphabet='{}[]":, adirectivestx_', max_size=60))
def test_no_text_raises(text: str) -> None:
    """There is an envelope, or there are errors."""
    found = parse_envelope(text, REGISTRY)
    assert (found.envelope is None) == bool(found.errors)


def test_names_that_cannot_be_told_apart_are_refused() -> None:
    """A registry has one meaning for each name."""
    with pytest.raises(ConfigError):
        DirectiveRegistry([{"type": "ui.toast"}, {"type": "x", "aliases": ("UI toast",)}])
    with pytest.raises(ConfigError):
        DirectiveRegistry([{"type": "a"}, {"type": "a"}])
    with pytest.raises(ConfigError) as caught:
        REGISTRY.schema(["ui.tost"])
    assert "ui.toast" in str(caught.value)


def test_the_registry_says_what_it_knows() -> None:
    """The model is told each type; the schema holds it to these."""
    assert REGISTRY.types == ("ui.show_form", "ui.toast", "ui.patch", "ui.request_upload")
    assert REGISTRY.aliases == {"open_form": "ui.show_form"}
    assert "- ui.show_form: Shows a form." in REGISTRY.instructions()
    assert "ui.toast" not in REGISTRY.instructions(["ui.patch"])
    one = REGISTRY.schema(["ui.request_upload"])["properties"]["directives"]["items"]
    assert one["properties"]["type"] == {"type": "string", "enum": ["ui.request_upload"]}
    assert one["properties"]["payload"] == {"type": "object"}
