"""Certificates for one test run, made when it begins."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER_USE = ExtendedKeyUsageOID.SERVER_AUTH
CLIENT_USE = ExtendedKeyUsageOID.CLIENT_AUTH


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def name(common_name: str, organization: str = "Tests, Inc") -> x509.Name:
    return x509.Name([
        x509.NameAttribute(NameOID.COUNTRY_NAME, "CH"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
        x509.NameAttribute(NameOID.COMMON_NAME, common_name),
    ])


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


class Authority:
    """An authority that writes certificates to a folder. Each is valid for hours."""

    def __init__(self, folder: Path, common_name: str = "Test CA"):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.name = name(common_name)
        self.key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(self.name, self.key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file = self.write(f"{common_name}.pem", pem(builder.sign(self.key, hashes.SHA256())))

    def _builder(self, subject: x509.Name, public_key, hours: tuple[int, int] = (-1, 6)) -> x509.CertificateBuilder:
        begin, end = (now() + datetime.timedelta(hours=count) for count in hours)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
        )

    def write(self, file: str, text: str) -> Path:
        """Writes a file that only its owner can read, in one step."""
        path, temporary = self.folder / file, self.folder / f".{file}"
        temporary.write_text(text)
        temporary.chmod(0o600)
        return temporary.rename(path)

    def issue(self, file: str, usages=(SERVER_USE, CLIENT_USE), hours=(-1, 6), host: str = "localhost",
              common_name: str = "server", organization: str = "Tests, Inc") -> Path:
        """Writes a certificate and its key to one file, as MongoDB's drivers want it."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(host)]
        if host == "localhost":
            names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        certificate = (
            self._builder(name(common_name, organization), key.public_key(), hours)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return self.write(file, pem(certificate) + private.decode())

    def revoke(self, file: str, *certificates: Path) -> Path:
        """Writes the list of revoked certificates."""
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.name)
            .last_update(now() - datetime.timedelta(hours=1))
            .next_update(now() + datetime.timedelta(hours=6))
            .add_extension(x509.CRLNumber(1), critical=False)
        )
        for path in certificates:
            revoked = x509.RevokedCertificateBuilder().serial_number(serial(path)).revocation_date(now())
            builder = builder.add_revoked_certificate(revoked.build())
        revocations = builder.sign(self.key, hashes.SHA256())
        return self.write(file, revocations.public_bytes(serialization.Encoding.PEM).decode())


def serial(path: Path) -> int:
    """Returns the serial number of the first certificate of a file."""
    return x509.load_pem_x509_certificate(path.read_bytes()).serial_number
