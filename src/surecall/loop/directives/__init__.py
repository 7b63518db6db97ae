"""Directives: what an application is to do, in the answer itself, next to what the user reads."""

from .envelope import Directive, Envelope, parse_envelope
from .form import DirectResult, EnvelopeForm, direct
from .patch import PATCH_PREFIXES, read_patch
from .registry import DirectiveRegistry, DirectiveType
from .text_reader import MemberTextReader

__all__ = [
    "PATCH_PREFIXES",
    "DirectResult",
    "Directive",
    "DirectiveRegistry",
    "DirectiveType",
    "Envelope",
    "EnvelopeForm",
    "MemberTextReader",
    "direct",
    "parse_envelope",
    "read_patch",
]
