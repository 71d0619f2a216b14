import base64
import datetime
import hashlib
from contextlib import suppress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.basics.certificate_pins import is_pin, pin_of


def made(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, name: str = "localhost") -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=3))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


KEY = ec.generate_private_key(ec.SECP256R1())
CERTIFICATE = made(KEY)


@pytest.mark.parametrize("key", [KEY, rsa.generate_private_key(65_537, 2048)])
def test_the_pin_is_of_the_key(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    info = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    expected = "sha256/" + base64.b64encode(hashlib.sha256(info).digest()).decode()
    assert pin_of(made(key)) == pin_of(made(key, "another.example")) == expected
    assert is_pin(expected)


@pytest.mark.parametrize("key", [b"\x30\x02\x05\x00", b"\x30\x00"])
def test_a_certificate_without_a_version(key: bytes) -> None:
    body = b"".join(b"\x30\x01" + bytes([n]) for n in range(5)) + key
    tbs = b"\x30" + bytes([len(body)]) + body
    whole = b"\x30" + bytes([len(tbs)]) + tbs
    assert pin_of(whole) == "sha256/" + base64.b64encode(hashlib.sha256(key).digest()).decode()


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x31\x00", b"\x30\x05ab", CERTIFICATE[:-1], b"\x30\x82", b"\x30\x00"])
def test_no_certificate(data: bytes) -> None:
    with pytest.raises(ValueError, match="certificate"):
        pin_of(data)


@given(st.integers(0, len(CERTIFICATE) - 1), st.integers(0, 255))
@settings(max_examples=50)
def test_invalid_certificates_raise_value_error_only(at: int, byte: int) -> None:
    damaged = bytearray(CERTIFICATE)
    damaged[at] = byte
    with suppress(ValueError):
        assert is_pin(pin_of(bytes(damaged)))


@pytest.mark.parametrize(
    ("value", "good"),
    [
        pytest.param(pin_of(CERTIFICATE), True, id="a pin"),  # of a new key: no name for a test
        ("sha256/x", False),
        ("", False),
        ("x" * 51, False),
    ],
)
def test_is_pin(value: str, good: bool) -> None:
    assert is_pin(value) is good
