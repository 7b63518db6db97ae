"""What must hold for JSON text of any shape."""

import copy
import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import Code, JSONTextError, ProviderReplyError
from surecall.text import (
    SSEEvent,
    SSEReader,
    apply_patch,
    canonical_bytes,
    canonical_hash,
    decode,
    decode_noting,
    encode,
    encode_text,
    parse_pointer,
    render_comment,
    render_event,
    render_pointer,
    repair_surrogates,
    resolve_pointer,
)

quick = settings(max_examples=100, deadline=None)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = st.sampled_from(["a", "b", ":", "a:b", "", "é", "x/y", "~"]) | texts
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
documents = st.dictionaries(keys, values, max_size=5) | st.lists(values, max_size=5)
json_like = st.text(st.sampled_from('{}[]:,"\\ \n0123456789.eE+-truefalsnNaIi\tu\x00é\ud83d\ude00'))


def typed(value: Any) -> Any:
    """Return a form in which 1, 1.0 and True differ, and so do the zeros."""
    return json.dumps(value, sort_keys=False)


@quick
@given(values)
def test_what_is_written_is_read_back(value: Any) -> None:
    """Decoding undoes encoding, with every type kept."""
    assert typed(decode(encode(value))) == typed(value)
    assert typed(decode(encode_text(value))) == typed(value)


@quick
@given(values, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_valid_json_means_what_the_standard_library_says(
    value: Any, is_ascii: bool, indent: Any
) -> None:
    """Any spelling of valid JSON gives the same value as `json.loads`."""
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    assert typed(decode(text)) == typed(json.loads(text))
    assert typed(decode(text.encode())) == typed(json.loads(text))
    assert decode_noting(text).duplicates == ()


def oracle(text: str) -> tuple[str, Any]:
    """Judge text by the standard library plus our written policy."""

    def finite(literal: str) -> float:
        number = float(literal)
        if not math.isfinite(number):
            raise ArithmeticError
        return number

    def refuse(literal: str) -> None:
        raise ArithmeticError(literal)

    try:
        value = json.loads(text.removeprefix("\ufeff"), parse_float=finite, parse_constant=refuse)
    except ArithmeticError:
        return Code.NON_FINITE_NUMBER, None
    except ValueError:
        return Code.INVALID_JSON, None
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Code.LONE_SURROGATE, None
    return "", value


@quick
@given(json_like)
def test_any_text_is_judged_as_the_standard_library_does(text: str) -> None:
    """Accepted with the same value, or refused with the code that fits."""
    code, value = oracle(text)
    if code:
        with pytest.raises(JSONTextError) as caught:
            decode(text)
        assert caught.value.code == code
        str(caught.value).encode()
    else:
        assert typed(decode(text)) == typed(value)


@quick
@given(values, st.data())
def test_damaged_json_is_judged_as_the_standard_library_does(value: Any, data: Any) -> None:
    """One character dropped, doubled or changed: accepted or refused as `json.loads` would."""
    text = json.dumps(value)
    place = data.draw(st.integers(0, len(text)))
    patch = data.draw(st.sampled_from(["", ",", '"', "[", "}", "\\", ":", "0", "\n", "\ufeff"]))
    damaged = text[:place] + patch + text[place + data.draw(st.integers(0, 1)) :]
    code, expected = oracle(damaged)
    if code:
        with pytest.raises(JSONTextError) as caught:
            decode(damaged)
        assert caught.value.code == code
    else:
        assert typed(decode(damaged)) == typed(expected)


@quick
@given(st.binary(max_size=40) | json_like.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_give_a_value_or_a_coded_error(data: bytes) -> None:
    """No other exception leaves, whatever the surrogate policy, and positions are inside."""
    for policy in ("refuse", "replace", "keep"):
        try:
            decode_noting(data, surrogates=policy)
        except JSONTextError as error:
            position = error.position
        else:
            position = 0
        assert position is not None
        assert 0 <= position <= len(data)


@quick
@given(st.lists(st.sampled_from(["a", "\\ud83d", "\\ude00", "\\\\", "ud83d", "\ud83d", "\ude00"])))
def test_surrogate_policies_agree_with_each_other(pieces: list[str]) -> None:
    """Replacing equals keeping and then mending, up to pairs that were never one character."""
    text = '"' + "".join(pieces) + '"'
    kept = decode(text, surrogates="keep")
    replaced = decode(text, surrogates="replace")
    assert kept == json.loads(text)
    replaced.encode("utf-8")
    assert len(repair_surrogates(kept)) <= len(kept)
    if kept.isascii() or repair_surrogates(kept) == kept:
        assert replaced == kept == decode(text)
    else:
        with pytest.raises(JSONTextError) as caught:
            decode(text)
        assert caught.value.code == Code.LONE_SURROGATE


@st.composite
def objects_with_repeats(draw: Any, depth: int = 3) -> str:
    """Write JSON text whose objects may repeat keys."""
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind == 0:
        return draw(st.sampled_from(["1", "1.0", "true", "null", '":"', r'"\u003a"', '"a:b"']))
    if kind == 1:
        return draw(st.sampled_from(["{}", "[]", '""', '"::"']))
    inner = draw(st.lists(objects_with_repeats(depth - 1), max_size=3))
    if kind == 2:
        return "[" + ",".join(inner) + "]"
    names = st.sampled_from(['"a"', '"b"', '":"', r'"\u003a"', r'"\u0061"', '"c:d"'])
    return "{" + ",".join(f"{draw(names)}: {item}" for item in inner) + "}"


class Pairs(list[Any]):
    """All members of an object, in order."""


def plain(node: Any) -> Any:
    """Return what a naive reader would keep."""
    if isinstance(node, Pairs):
        return {key: plain(child) for key, child in node}
    return [plain(child) for child in node] if isinstance(node, list) else node


def contradicted(node: Any, parts: tuple[Any, ...]) -> set[str]:
    """Collect the pointers of keys with differing values, the naive way."""
    found: set[str] = set()
    if isinstance(node, Pairs):
        for key, child in node:
            said = {json.dumps(plain(item), sort_keys=True) for name, item in node if name == key}
            if len(said) > 1:
                found.add(render_pointer((*parts, key)))
            found |= contradicted(child, (*parts, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            found |= contradicted(child, (*parts, index))
    return found


@quick
@given(objects_with_repeats())
def test_repeated_keys_are_found_as_a_naive_reader_finds_them(text: str) -> None:
    """Counting colons never misses a contradiction and never invents one."""
    tree = json.loads(text, object_pairs_hook=Pairs)
    for data in (text, text.encode()):
        noted = decode_noting(data)
        assert typed(noted.value) == typed(json.loads(text))
        assert sorted(noted.duplicates) == sorted(contradicted(tree, ()))


@quick
@given(st.integers(100, 160), st.sampled_from(["[]", '{"a":}', '[1,"[[",]']), st.booleans())
def test_depth_is_counted_exactly(depth: int, shape: str, is_wide: bool) -> None:
    """128 containers are read and 129 are not, whatever they hold."""
    head, tail = shape[:-1], shape[-1]
    text = head * (depth - 1) + "[]" + tail * (depth - 1)
    text = f"[{text},{text}]" if is_wide else text
    if depth + is_wide <= 128:
        assert decode(text) == json.loads(text)
    else:
        with pytest.raises(JSONTextError) as caught:
            decode(text)
        assert caught.value.code == Code.JSON_TOO_DEEP


@quick
@given(values, st.randoms(use_true_random=False))
def test_canonical_form_does_not_depend_on_key_order(value: Any, random: Any) -> None:
    """Shuffling keys changes nothing, and the form reads back as the value."""

    def shuffled(node: Any) -> Any:
        if isinstance(node, dict):
            items = list(node.items())
            random.shuffle(items)
            return {key: shuffled(child) for key, child in items}
        return [shuffled(child) for child in node] if isinstance(node, list) else node

    other = shuffled(value)
    assert canonical_bytes(other) == canonical_bytes(value)
    assert canonical_hash(other) == canonical_hash(value)
    again = decode(canonical_bytes(value))
    assert json.dumps(again, sort_keys=True) == json.dumps(value, sort_keys=True)


@quick
@given(st.lists(texts))
def test_pointers_round_trip(parts: list[str]) -> None:
    """Parsing undoes rendering for any keys."""
    assert parse_pointer(render_pointer(parts)) == tuple(parts)


def paths(node: Any, parts: tuple[Any, ...] = ()) -> list[str]:
    """List the pointers of everything in a document, the document first."""
    found = [render_pointer(parts)]
    items: Any = ()
    if isinstance(node, (dict, list)):
        items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, child in items:
        found += paths(child, (*parts, key))
    return found


@quick
@given(documents, st.data())
def test_every_pointer_of_a_document_can_be_taken_out_and_put_back(
    document: Any, data: Any
) -> None:
    """Removing a value and adding it again gives the document back, apart from key order."""
    path = data.draw(st.sampled_from(paths(document)))
    value = resolve_pointer(document, path)
    before = copy.deepcopy(document)
    if path:
        restored = apply_patch(
            document,
            [
                {"op": "test", "path": path, "value": value},
                {"op": "remove", "path": path},
                {"op": "add", "path": path, "value": value},
            ],
        )
        assert restored == before
    replaced = apply_patch(document, [{"op": "replace", "path": path, "value": "new"}])
    assert resolve_pointer(replaced, path) == "new"
    back = apply_patch(replaced, [{"op": "replace", "path": path, "value": value}])
    assert typed(back) == typed(before)
    assert typed(document) == typed(before)


@quick
@given(documents, st.data())
def test_a_patch_applies_whole_or_not_at_all(document: Any, data: Any) -> None:
    """Any list of operations gives a result or a coded error, and touches nothing given."""
    places = st.sampled_from([*paths(document), "/-", "/0", "/a", "/a/b", "", "nonsense", "/~"])
    operations = data.draw(
        st.lists(
            st.fixed_dictionaries(
                {"path": places},
                optional={
                    "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
                    "from": places,
                    "value": values,
                },
            ),
            max_size=4,
        )
    )
    before = typed(document), typed(operations)
    try:
        told = encode_text(apply_patch(document, operations))
    except JSONTextError as error:
        told = f"{error.code} {error.message}"
    assert told.startswith("INVALID_PATCH operation ") or encode_text(decode(told)) == told
    assert (typed(document), typed(operations)) == before


STREAM_PIECES = """data: |data:|data|event: e|id: 1|retry: 20|: c|:|x| |\n|\r|\r\n|\n\n|é😀|\0
|\ufeff|data: {"a":1}\n\n|data: [DONE]\n\n|event: m\r\ndata: 1\r\n\r\n"""
streams = st.lists(
    st.sampled_from([b"\xff", *(piece.encode() for piece in STREAM_PIECES.split("|"))]), max_size=30
).map(b"".join)


def outcome(chunks: list[bytes], max_line_bytes: int) -> tuple[list[SSEEvent], str, int]:
    """Return what a reader tells: the events, how it ended, and the comments."""
    reader = SSEReader(max_line_bytes)
    events: list[SSEEvent] = []
    try:
        for chunk in chunks:
            events += reader.feed(chunk)
        events += reader.close()
    except ProviderReplyError as error:
        return events, error.code, reader.comments
    return events, "", reader.comments


def naive_events(stream: bytes) -> list[tuple[str, str]]:
    """Read a whole stream by the letter of the standard, plus the trailing event."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    events: list[tuple[str, str]] = []
    data = name = ""
    for line in [*lines, ""]:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                events.append((data.removesuffix("\n"), name or "message"))
            data = name = ""
        elif field == "data":
            data += value + "\n"
        elif field == "event":
            name = value
    return events


@quick
@given(streams, st.lists(st.integers(0, 400)), st.sampled_from([9, 12, 1000]))
def test_any_split_of_a_stream_gives_the_same_events(
    stream: bytes, cuts: list[int], max_line_bytes: int
) -> None:
    """Whole, byte by byte, or cut anywhere: the same events, then the same end."""
    whole = outcome([stream], max_line_bytes)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(places)]
    assert outcome(pieces, max_line_bytes) == whole
    assert outcome([bytes([byte]) for byte in stream], max_line_bytes) == whole
    if not whole[1]:
        assert [(event.data, event.event) for event in whole[0]] == naive_events(stream)


@quick
@given(
    st.lists(st.tuples(st.text(max_size=20), texts.map(lambda text: "e" + text.strip()))),
    st.integers(1, 7),
)
def test_rendered_events_are_read_back(items: list[tuple[str, str]], size: int) -> None:
    """Any data survives; line breaks of every kind come back as line feeds."""
    stream = b""
    expected: list[tuple[str, str]] = []
    for data, name in items:
        name = "".join(character for character in name if character not in "\r\n\0")
        stream += render_comment(data) + render_event(data, event=name)
        lines = data.replace("\r\n", "\n").replace("\r", "\n")
        expected.append((repair_surrogates(lines), name))
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    events, end, _ = outcome(chunks, 1000)
    assert end == ""
    assert [(event.data, event.event) for event in events] == expected
