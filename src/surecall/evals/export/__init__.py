"""A run in the files of others: summaries, tables, JUnit, Markdown and Parquet."""

from .columns import CALL_COLUMNS, TRIAL_COLUMNS, Column
from .files import check_folder
from .formats import FORMATS, Exported, check_formats, export_run, parse_formats
from .json_summary import write_json
from .junit import write_junit
from .markdown import render_markdown, write_markdown
from .tables import write_csv, write_jsonl, write_parquet

__all__ = [
    "CALL_COLUMNS",
    "FORMATS",
    "TRIAL_COLUMNS",
    "Column",
    "Exported",
    "check_folder",
    "check_formats",
    "export_run",
    "parse_formats",
    "render_markdown",
    "write_csv",
    "write_json",
    "write_jsonl",
    "write_junit",
    "write_markdown",
    "write_parquet",
]
