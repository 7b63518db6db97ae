"""The report of an experiment: one HTML file that needs nothing but a browser."""

from .page import MAX_FILE_BYTES, BodyChoice, render_html, write_html

__all__ = ["MAX_FILE_BYTES", "BodyChoice", "render_html", "write_html"]
