"""Certificates for tests: an authority, and certificates that it signs, as PEM files."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Selkie"), x509.NameAttribute(NameOID.COMMON_NAME, name)])


def pem_of_key(key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class Authority:
    """A certificate authority in a folder. Its certificate is in the file `ca`."""

    def __init__(self, folder: Path, name: str = "authority"):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.name = folder, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder().subject_name(named(name)).issuer_name(named(name)).public_key(self.key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - DAY).not_valid_after(now + 30 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
        )
        self.certificate = builder.sign(self.key, hashes.SHA256())
        self.ca = self.write(f"{name}.pem", self.certificate.public_bytes(serialization.Encoding.PEM))

    def write(self, name: str, contents: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(contents)
        path.chmod(0o600)
        return path

    def issue(self, name: str, hosts: tuple[str, ...] = ("localhost", "127.0.0.1"), days: float = 10, client: bool = False,
              file: str | None = None) -> Path:
        """Issues a certificate that expires after `days`. Returns a file with it and its key; the
        key alone is in the file beside it that ends with `.key`."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        builder = (
            x509.CertificateBuilder().subject_name(named(name)).issuer_name(self.certificate.subject)
            .public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now - 100 * DAY).not_valid_after(now + days * DAY)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        names = [alternative_name(host) for host in hosts]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        file = file or f"{self.name}-{name}"
        self.write(f"{file}.key", pem_of_key(key))
        return self.write(f"{file}.pem", certificate + pem_of_key(key))


def alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
