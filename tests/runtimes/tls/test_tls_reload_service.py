"""Tests of TLS certificates that change while a listener is open."""

import os
import ssl
from pathlib import Path

import pytest

from runtimes.net.listener import Listener, bind
from runtimes.tls.contexts import server_context
from svc_proto.basics.certificate_pins import pin_of
from svc_proto.commands import ReloadTls, TlsReloaded
from svc_proto.facts import Accepted, Done, Failed, FailureKind, OperationId, Reloading
from tests.runtimes.certificates import make_certificate
from tests.runtimes.scripted_core import RunningCore, read_exactly, running
from tests.runtimes.test_channels import echo

OP = OperationId(1)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return make_certificate(tmp_path)


def shown(live: RunningCore, listener: Listener | None = None) -> str:
    """Return the pin of the certificate that a new connection receives, by default from `RunningCore.extra`."""
    sock = connect(live, listener=listener)
    certificate = sock.getpeercert(binary_form=True)
    sock.close()
    assert certificate is not None
    return pin_of(certificate)


def connect(
    live: RunningCore,
    session: ssl.SSLSession | None = None,
    context: ssl.SSLContext | None = None,
    listener: Listener | None = None,
) -> ssl.SSLSocket:
    context = context or trusting()
    sock = context.wrap_socket(live.connect(listener or live.extra), session=session)
    assert live.expect(Accepted).tls
    return sock


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_a_reload_affects_new_connections_only(runtime: str, files: tuple[Path, Path]) -> None:
    with running(runtime, echo, tls=server_context(*files)) as live:
        old = connect(live)
        before = shown(live)
        make_certificate(files[0].parent)
        assert shown(live) == before  # until the reload
        answer = live.done(ReloadTls(OP))
        assert answer == TlsReloaded((shown(live),))
        assert answer.pins != (before,)
        old.sendall(b"still here")
        assert read_exactly(old, 10) == b"still here"
        old.close()


def test_a_reload_ends_session_resumption(runtime: str, files: tuple[Path, Path]) -> None:
    context = trusting()
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # with a session right after the handshake
    with running(runtime, tls=server_context(*files)) as live:
        first = connect(live, context=context)
        session = first.session
        again = connect(live, session, context)
        assert again.session_reused
        live.done(ReloadTls(OP))
        late = connect(live, session, context)
        assert not late.session_reused
        for sock in (first, again, late):
            sock.close()


def test_every_listener_reloads_its_own_files(runtime: str, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    first, second = (server_context(*make_certificate(folder)) for folder in folders)
    other = bind("127.0.0.1", 0, tls=second)
    with running(runtime, tls=first, more=[other]) as live:
        before = (shown(live), shown(live, other))
        for folder in folders:
            make_certificate(folder)
        pins = live.done(ReloadTls(OP)).pins
        assert pins == (shown(live), shown(live, other))
        assert not set(pins) & set(before)
        make_certificate(folders[0])
        (folders[1] / "cert.pem").unlink()
        assert isinstance(live.run_operation(ReloadTls(OP)), Failed)  # one failure: neither listener changes
        assert pins == (shown(live), shown(live, other))


@pytest.mark.parametrize("fault", ["mismatch", "garbage", "missing", "pipe"])
def test_unusable_certificates_change_nothing(runtime: str, files: tuple[Path, Path], fault: str) -> None:
    cert, key = files
    with running(runtime, tls=server_context(*files)) as live:
        before, secret = shown(live), key.read_bytes()
        if fault == "mismatch":
            make_certificate(cert.parent)
            key.write_bytes(secret)
        elif fault == "garbage":
            cert.write_bytes(b"no certificate")
        else:
            cert.unlink()
            if fault == "pipe":
                os.mkfifo(cert)
        answer = live.run_operation(ReloadTls(OP))
        assert isinstance(answer, Failed)
        assert answer.error.kind is FailureKind.TLS
        assert str(cert) in answer.error.detail
        assert secret.splitlines()[1].decode() not in answer.error.detail
        assert shown(live) == before


def test_reload_by_the_handle(runtime: str, files: tuple[Path, Path]) -> None:
    with running(runtime, lambda fact: [ReloadTls(OP)] if isinstance(fact, Reloading) else []) as live:
        live.handle.reload()
        assert live.expect(Reloading) == Reloading()
        assert live.answer(OP) == Done(OP, TlsReloaded(()))
        handle = live.handle
    handle.reload()  # the loop has ended
    handle.waker.drain()


def test_a_context_has_its_files_and_its_pin(files: tuple[Path, Path]) -> None:
    context = server_context(*files)
    assert (context.cert, context.key) == files
    assert context.reload().pin() == context.pin() == pin_of(ssl.PEM_cert_to_DER_cert(files[0].read_text()))
