"""Self-signed certificates for tests."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make_certificate(folder: Path, host: str = "localhost", days: float = 29) -> tuple[Path, Path]:
    """Write a certificate for a host name and 127.0.0.1, and its key, into a folder; existing files are replaced.

    It expires in `days`; a negative number gives an expired one.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    number = x509.random_serial_number()
    # A unique name: with two trusted certificates of one name, a verifier may select the wrong one.
    parts = {NameOID.COMMON_NAME: host, NameOID.SERIAL_NUMBER: f"{number:x}"}
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in parts.items()])
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    names = x509.SubjectAlternativeName([x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(number)
        .not_valid_before(end - datetime.timedelta(days=30))
        .not_valid_after(end)
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_file, key_file
