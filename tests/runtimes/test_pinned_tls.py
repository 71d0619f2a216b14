import ssl
from pathlib import Path

from runtimes.tls.contexts import PinnedTrust
from svc_proto.basics.certificate_pins import pin_of

OTHER = "sha256/" + "A" * 43 + "="


def leaf(certificate: tuple[Path, Path]) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate[0].read_text())


def test_without_a_pin_the_system_trust_applies(certificate: tuple[Path, Path]) -> None:
    tls = PinnedTrust()
    context = tls.context("h", 443)
    assert context is tls.context("other", 1)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert tls.seen("h", 443) is None
    assert tls.accepts("h", 443, leaf(certificate))
    assert tls.seen("h", 443) == pin_of(leaf(certificate))
    assert tls.seen("h", 444) is None


def test_with_a_pin_only_the_pin_counts(certificate: tuple[Path, Path]) -> None:
    tls = PinnedTrust()
    tls.expect("h", 443, pin_of(leaf(certificate)))
    context = tls.context("h", 443)
    assert context is tls.context("h", 443)
    assert context.verify_mode is ssl.CERT_NONE
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert tls.context("other", 443).verify_mode is ssl.CERT_REQUIRED
    assert tls.accepts("h", 443, leaf(certificate))
    tls.expect("h", 443, OTHER)
    assert not tls.accepts("h", 443, leaf(certificate))
    tls.expect("h", 443, None)
    tls.expect("h", 443, None)
    assert tls.context("h", 443).verify_mode is ssl.CERT_REQUIRED


def test_neither_no_certificate_nor_a_refused_one_is_stored(certificate: tuple[Path, Path]) -> None:
    tls = PinnedTrust()
    assert tls.accepts("h", 443, None)
    tls.expect("h", 443, OTHER)
    for refused in (None, b"nonsense", leaf(certificate)):
        assert not tls.accepts("h", 443, refused)
    assert tls.seen("h", 443) is None
