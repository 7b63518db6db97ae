"""What holds for every patch: whole or not at all, one version at a time, locks untouched."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import WorkspaceError
from surecall.text import canonical_bytes, encode, render_pointer
from surecall.workspace import OPERATIONS, new_state, patch_part
from surecall.workspace.patches import find_value, split_path

keys = st.sampled_from(["a", "b", "0", "1", "-1", "~0"])
leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.text("xy", max_size=3)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
drafts = st.dictionaries(keys, values, max_size=4)
paths = st.lists(keys, max_size=4).map(lambda parts: "/draft/" + "/".join(parts))
operations = st.fixed_dictionaries(
    {"op": st.sampled_from([*OPERATIONS, "bad"]), "path": paths | st.just("/facts/a")},
    optional={"value": values, "index": st.integers(-2, 4)},
)
patches = st.lists(operations, min_size=1, max_size=4)


@st.composite
def locked_drafts(draw: st.DrawFn) -> tuple[dict[str, Any], str, list[Any]]:
    """Draw a draft, the path of something in it, and operations close to that path."""
    draft = draw(drafts.filter(bool))
    parts: list[str] = []
    found: Any = draft
    while found.__class__ in (dict, list) and found and (not parts or draw(st.booleans())):
        is_object = isinstance(found, dict)
        keys: list[Any] = sorted(found) if is_object else list(range(len(found)))
        key: Any = draw(st.sampled_from(keys))
        parts.append(str(key))
        found = found[key]
    operations = draw(st.lists(_operations_near(parts), min_size=1, max_size=3))
    return draft, render_pointer(["draft", *parts]), operations


def _operations_near(parts: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    above = st.integers(0, len(parts)).map(lambda count: parts[:count])
    beside = st.tuples(above, keys).map(lambda pair: [*pair[0][:-1], pair[1]])
    path = (above | beside).map(lambda way: render_pointer(["draft", *way, *([] if way else [""])]))
    fields = {"path": path, "value": values, "index": st.integers(0, 1)}
    return st.fixed_dictionaries({"op": st.sampled_from(OPERATIONS), **fields})


def data_of(state: Any) -> bytes:
    """Return everything a state holds, as bytes."""
    return encode(state)


@settings(max_examples=200, deadline=None)
@given(draft=drafts, patch=patches)
def test_a_patch_is_applied_whole_or_leaves_no_trace(draft: dict[str, Any], patch: Any) -> None:
    """The old state is never touched, and the version rises by exactly one on success."""
    state = new_state(draft=draft)
    before = data_of(state)
    given_patch = canonical_bytes(patch)
    try:
        after = patch_part(state, patch)
    except WorkspaceError:
        after = None
    assert data_of(state) == before
    assert canonical_bytes(patch) == given_patch
    if after is not None:
        assert (after.draft_version, after.revision) == (1, 1)
        assert (after.facts, after.facts_version) == (state.facts, 0)


@settings(max_examples=200, deadline=None)
@given(draft=drafts, patch=patches)
def test_a_patch_is_the_same_as_its_operations_one_by_one(draft: Any, patch: Any) -> None:
    """Operations see what the ones before them did."""
    state = new_state(draft=draft)
    try:
        whole = patch_part(state, patch)
    except WorkspaceError:
        return
    for operation in patch:
        state = patch_part(state, [operation])
    assert canonical_bytes(state.draft) == canonical_bytes(whole.draft)


@settings(max_examples=200, deadline=None)
@given(locked=locked_drafts())
def test_a_locked_value_is_never_changed(locked: Any) -> None:
    """Whatever the operations are, what a lock covers stays as it was."""
    draft, lock, patch = locked
    state = new_state(draft=draft, locks=[lock])
    try:
        after = patch_part(state, patch)
    except WorkspaceError:
        return
    parts = split_path(lock)
    before = find_value({"draft": state.draft}, parts)
    assert repr(find_value({"draft": after.draft}, parts)) == repr(before)


@settings(max_examples=200, deadline=None)
@given(draft=drafts, path=paths, value=values)
def test_what_was_set_is_found_there(draft: Any, path: str, value: Any) -> None:
    """Reading a path gives what was written to it."""
    state = new_state(draft=draft)
    try:
        after = patch_part(state, [{"op": "set", "path": path, "value": value}])
    except WorkspaceError:
        return
    found = after.select([path])
    assert canonical_bytes(list(found.values())) == canonical_bytes([value])
