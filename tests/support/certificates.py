"""Certificates for tests: an authority of one's own, and what it signs.

authority = Authority(folder)
authority.file                      the authority, to be trusted
authority.issue("name.test")        a certificate and its key, in one file
"""

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_PEM = serialization.Encoding.PEM
_LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


class Authority:
    """An authority whose certificate also serves a name by itself."""

    def __init__(self, folder: Path, name: str = "authority.test") -> None:
        self._folder = folder
        self._count = 0
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self.file = self._write(name, self._key, self._sign(name, self._key, is_authority=True))

    def issue(self, name: str, *, days: int = 1, password: bytes | None = None) -> Path:
        """Return a certificate for a name and 127.0.0.1; with days below zero it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._write(name, key, self._sign(name, key, days=days), password)

    def _sign(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        *,
        days: int = 1,
        is_authority: bool = False,
    ) -> x509.Certificate:
        self._count += 1
        now = dt.datetime.now(dt.UTC)
        names = x509.SubjectAlternativeName([x509.DNSName(name), _LOOPBACK])
        return (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(self._count)
            .not_valid_before(now - dt.timedelta(days=30))
            .not_valid_after(now + dt.timedelta(days=days))
            .add_extension(names, critical=False)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def _write(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        certificate: x509.Certificate,
        password: bytes | None = None,
    ) -> Path:
        path = self._folder / f"{name}-{self._count}.pem"
        locked = (
            serialization.BestAvailableEncryption(password)
            if password
            else serialization.NoEncryption()
        )
        private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, locked)
        path.write_bytes(private + certificate.public_bytes(_PEM))
        return path


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
