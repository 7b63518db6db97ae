"""Fields, docstrings and cells of tables, as pages show them."""

import ast
import inspect
import textwrap
from typing import Any, NamedTuple


class FieldDoc(NamedTuple):
    """A field of a record as a page shows it."""

    name: str
    type: str
    default: str
    doc: str


def field_docs(record: type) -> list[FieldDoc]:
    """List the fields of a class in order, with the text that stands below each."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found: list[FieldDoc] = []
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if not node.target.id.startswith("_"):
            default = ast.unparse(node.value) if node.value else ""
            found.append(
                FieldDoc(node.target.id, ast.unparse(node.annotation), default, literal(after))
            )
    return found


def literal(node: ast.stmt | None) -> str:
    """Return the text of a bare string statement, on one line."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return ""


def cell(text: str) -> str:
    """Escape text for a table."""
    return text.replace("|", "\\|")


def code(text: str) -> str:
    """Set text as code inside a table, or leave the cell empty."""
    return f"`{cell(text)}`" if text else ""


def doc_of(value: Any) -> str:
    """Return the cleaned docstring."""
    return inspect.cleandoc(value.__doc__ or "")


def one_line(text: str) -> str:
    """Return the first paragraph of a text on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def field_list(record: type) -> list[str]:
    """List the fields of a record with their types."""
    return [
        f"- `{doc.name}`: `{doc.type}`" + (f". {doc.doc}" if doc.doc else "")
        for doc in field_docs(record)
    ]
