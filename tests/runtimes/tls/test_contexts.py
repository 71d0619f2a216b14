import contextlib
import select
import socket
import ssl
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from runtimes.host.host import Services
from runtimes.net import listener as listen_module
from runtimes.tls.contexts import PinnedTrust, TlsFileError, client_context, context_for_certificates, server_context
from svc_proto import facts
from svc_proto.basics.certificate_pins import PIN_CHANGED
from svc_proto.commands import Cancel, CloseWrite, Command, Connect, Connected, PauseReading, ResumeReading, Send
from tests.runtimes.scripted_core import TIMEOUT, Files, connected, read_all, read_exactly, reset, running, tls_client
from tests.runtimes.test_channels import echo
from tests.runtimes.test_operations import refusal

OP = facts.OperationId(1)
CH = facts.ChannelId(1)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_server_echo(runtime: str, certificate: Files, version: ssl.TLSVersion) -> None:
    with running(runtime, echo, tls=server_context(*certificate)) as live:
        sock = tls_client(live, certificate, version=version)
        accepted = live.expect(facts.Accepted)
        assert accepted.tls
        assert accepted.alpn == "h2"
        assert sock.version() == {ssl.TLSVersion.TLSv1_2: "TLSv1.2"}.get(version, "TLSv1.3")
        for n in (1, 200_000):
            sock.sendall(b"x" * n)
            assert read_exactly(sock, n) == b"x" * n
        raw = sock.unwrap()
        assert live.expect(facts.ReadClosed).ch == accepted.ch
        raw.shutdown(socket.SHUT_WR)
        assert live.closed(accepted.ch).why == ""
        assert sum(fact.n for fact in live.seen if isinstance(fact, facts.Sent)) == 200_001
        raw.close()


@pytest.mark.parametrize(
    ("ciphers", "taken"), [("ECDHE+AESGCM", True), ("ECDHE+CHACHA20", True), ("ECDHE+AES:!AESGCM:!AESCCM", False)]
)
def test_ciphers_that_http2_forbids_are_not_taken(ciphers: str, taken: bool, certificate: Files) -> None:
    """A handshake fails if its client has only ciphers of RFC 9113 appendix A (section 9.2.2)."""
    context = ssl.create_default_context(cafile=str(certificate[0]))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(ciphers)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(back, there, server_hostname="localhost")
    server = server_context(*certificate).wrap_bio(there, back, server_side=True)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    with pytest.raises(ssl.SSLWantReadError if taken else ssl.SSLError, match=None if taken else "NO_SHARED_CIPHER"):
        server.do_handshake()


def test_an_end_without_close_notify_is_reported(runtime: str, certificate: Files) -> None:
    with connected(runtime, certificate=certificate) as (live, sock, ch):
        sock.shutdown(socket.SHUT_WR)
        assert "close_notify" in live.closed(ch).why


def test_closing_while_paused_with_data_unread(runtime: str, certificate: Files) -> None:
    def react(fact: facts.Fact) -> list[Command]:
        if isinstance(fact, facts.Accepted) and fact.tls:
            return [PauseReading(fact.ch), Send(fact.ch, b"bye"), CloseWrite(fact.ch)]
        return []

    with running(runtime, react, tls=server_context(*certificate)) as live:
        # the end of the handshake and the first data in one segment
        context = ssl.create_default_context(cafile=str(certificate[0]))
        raw = live.connect(live.extra)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        raw.sendall(outgoing.read())
        while True:
            incoming.write(raw.recv(65536))
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                continue
            break
        tls.write(b"early")
        raw.sendall(outgoing.read())
        ch = live.expect(facts.Accepted).ch
        while received := raw.recv(65536):
            incoming.write(received)
        assert tls.read(100) == b"bye"
        live.accept()[0].close()  # the loop has had another round
        assert not any(isinstance(fact, facts.Received) for fact in live.seen)
        live.order(ResumeReading(ch))
        assert live.expect(facts.Received) == facts.Received(ch, b"early")
        raw.close()
        live.closed(ch)


def test_closing_with_much_unsent_output(runtime: str, certificate: Files) -> None:
    with connected(runtime, certificate=certificate) as (live, sock, ch):
        live.order(Send(ch, b"a" * 3_000_000))
        live.order(CloseWrite(ch))
        assert len(read_all(sock)) == 3_000_000
        reset(sock)
        live.closed(ch)


def test_garbage_in_the_stream_ends_the_channel(runtime: str, certificate: Files) -> None:
    with connected(runtime, certificate=certificate) as (live, sock, ch), socket.socket(fileno=sock.detach()) as raw:
        raw.sendall(b"this is no TLS record at all")
        assert live.closed(ch).why.startswith("TLS")


def test_failed_handshakes_are_not_reported(runtime: str, certificate: Files) -> None:
    with running(runtime, tls=server_context(*certificate)) as live:
        assert live.extra is not None
        first = live.connect(live.extra)
        first.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert first.recv(100)[:1] in {b"", b"\x15"}  # an alert
        second = live.connect(live.extra)
        second.close()
        sock, ch = live.accept()
        assert ch == 4
        for each in (first, sock):
            each.close()


def test_handshakes_are_bounded_in_time_and_number(
    runtime: str, certificate: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen_module, "HANDSHAKE_TIMEOUT", 0.3)
    monkeypatch.setattr(listen_module, "MAX_HANDSHAKES", 2)
    with running(runtime, tls=server_context(*certificate)) as live:
        trickling = [live.connect(live.extra) for _ in range(3)]
        outgoing = ssl.MemoryBIO()
        client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        greeting = outgoing.read()[:-1]
        while trickling:  # one byte after the other, which does not prolong the time
            piece, greeting = greeting[:1], greeting[1:]
            assert piece
            for sock in trickling[:]:
                with contextlib.suppress(ConnectionError):
                    sock.send(piece)
                    if not select.select([sock], [], [], 0.01)[0]:
                        continue
                    assert sock.recv(1) == b""
                trickling.remove(sock)
                sock.close()
        monkeypatch.setattr(listen_module, "HANDSHAKE_TIMEOUT", TIMEOUT)  # a busy machine may need more than 0.3 s
        sock = tls_client(live, certificate)
        assert live.expect(facts.Accepted).tls
        sock.close()


def test_finished_handshakes_count_no_longer(runtime: str, certificate: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen_module, "MAX_HANDSHAKES", 1)
    with running(runtime, tls=server_context(*certificate)) as live, ExitStack() as stack:
        monkeypatch.setattr(listen_module, "HANDSHAKE_TIMEOUT", 1.0)
        sock = stack.enter_context(tls_client(live, certificate))
        accepted = live.expect(facts.Accepted)
        monkeypatch.setattr(listen_module, "HANDSHAKE_TIMEOUT", 2 * TIMEOUT)
        failed = stack.enter_context(live.connect(live.extra))
        failed.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while failed.recv(100):
            pass
        first, second = (stack.enter_context(live.connect(live.extra)) for _ in range(2))
        assert first.recv(1) == b""  # the only one in progress, dropped for the second
        monkeypatch.setattr(listen_module, "HANDSHAKE_TIMEOUT", 1.0)
        third = stack.enter_context(live.connect(live.extra))
        assert second.recv(1) == third.recv(1) == b""  # the second for the third, which times out
        live.order(Send(accepted.ch, b"still open"))
        assert read_exactly(sock, 10) == b"still open"


def test_stopping_drops_handshakes(runtime: str, certificate: Files) -> None:
    with running(runtime, tls=server_context(*certificate)) as live:
        sock = live.connect(live.extra)
        other, _ = live.accept()
        live.handle.stop()
        with contextlib.suppress(ConnectionResetError):  # it was still in the backlog
            assert sock.recv(1) == b""
        sock.close()
        other.close()


class TlsServer:
    """Blocking TLS server: accepts one connection, and after a handshake sends a greeting and echoes until the end."""

    def __init__(self, certificate: Files) -> None:
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.sock.settimeout(TIMEOUT)
        self.port: int = self.sock.getsockname()[1]
        self._context = server_context(*certificate)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        raw, _ = self.sock.accept()
        raw.settimeout(TIMEOUT)
        try:
            sock = self._context.wrap_socket(raw, server_side=True)
        except (ssl.SSLError, OSError):
            raw.close()
            return
        with sock, contextlib.suppress(OSError):  # of a client that does not trust the certificate
            sock.sendall(b"hello")
            while data := sock.recv(65536):
                sock.sendall(data)
            sock.unwrap().close()

    def close(self) -> None:
        self._thread.join(TIMEOUT)
        self.sock.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_client_echo(runtime: str, certificate: Files, host: str) -> None:
    server = TlsServer(certificate)
    with running(runtime, services=Services(client_tls=client_context(certificate[0]))) as live:
        connected = live.done(Connect(OP, CH, host, server.port, tls=True))
        assert connected == Connected(facts.Address("127.0.0.1", server.port), "http/1.1")
        assert live.expect(facts.Received) == facts.Received(CH, b"hello")
        live.order(Send(CH, b"abc"))
        assert live.expect(facts.Received) == facts.Received(CH, b"abc")
        live.order(CloseWrite(CH))
        assert live.expect(facts.ReadClosed).ch == CH
        live.closed(CH)
    server.close()


@pytest.mark.parametrize("pinned", [False, True])
def test_the_protocols_that_are_offered(runtime: str, certificate: Files, pinned: bool) -> None:
    context = client_context(certificate[0])
    for offered, chosen in (((), None), (("h2", "http/1.1"), "h2"), (("http/1.1",), "http/1.1"), (("odd",), None)):
        server = TlsServer(certificate)
        trust = PinnedTrust() if pinned else context
        if isinstance(trust, PinnedTrust):
            trust.expect("localhost", server.port, server_context(*certificate).pin())
        with running(runtime, services=Services(client_tls=trust)) as live:
            connected = live.done(Connect(OP, CH, "localhost", server.port, tls=True, alpn=offered))
            assert connected.alpn == chosen
            live.order(CloseWrite(CH))
            live.closed(CH)
        server.close()


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize(
    ("pin", "why"), [(None, "CERTIFICATE_VERIFY_FAILED"), ("sha256/" + "A" * 43 + "=", PIN_CHANGED)]
)
def test_a_certificate_that_is_not_trusted(runtime: str, certificate: Files, pin: str | None, why: str) -> None:
    server, trust = TlsServer(certificate), PinnedTrust()
    trust.expect("localhost", server.port, pin)
    with running(runtime, services=Services(client_tls=trust)) as live:
        answer = live.run_operation(Connect(OP, CH, "localhost", server.port, tls=True))
        assert isinstance(answer, facts.Failed)
        assert answer.error.kind is facts.FailureKind.TLS
        assert why in answer.error.detail
        assert not any(isinstance(fact, facts.Received) for fact in live.seen)
    server.close()


def test_a_name_that_cannot_be_in_a_certificate(runtime: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", listening.getsockname())]
        with running(runtime, services=Services(resolver=lambda host, port: found)) as live:
            assert refusal(live, Connect(OP, CH, ".example", 1, tls=True)) is facts.FailureKind.TLS


def test_a_server_that_hangs_up_or_is_silent(runtime: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, running(runtime) as live:
        listening.settimeout(TIMEOUT)
        port = listening.getsockname()[1]
        live.order(Connect(OP, CH, "127.0.0.1", port, tls=True))
        peer, _ = listening.accept()
        assert peer.recv(1)
        peer.close()
        answer = live.answer(OP)
        assert isinstance(answer, facts.Failed)
        second = facts.OperationId(2)
        live.order(Connect(second, facts.ChannelId(3), "127.0.0.1", port, tls=True))
        peer, _ = listening.accept()
        assert peer.recv(1)
        live.order(Cancel(second))
        assert refusal(live, second) is facts.FailureKind.CANCELLED
        peer.close()


def test_files_that_cannot_be_used(certificate: Files, tmp_path: Path) -> None:
    cert, key = certificate
    with pytest.raises(TlsFileError, match="cannot read"):
        server_context(tmp_path / "none.pem", key)
    with pytest.raises(TlsFileError, match="NUL"):
        server_context("a\0b")
    with pytest.raises(TlsFileError, match="cannot use"):
        server_context(cert)  # no key in it
    with pytest.raises(TlsFileError, match="cannot use"):
        client_context(tmp_path / "none.pem")
    with pytest.raises(TlsFileError, match="cannot use"):
        context_for_certificates(cert, tmp_path / "none.pem")
    both = tmp_path / "both.pem"
    both.write_bytes(cert.read_bytes() + key.read_bytes())
    assert server_context(both).minimum_version is ssl.TLSVersion.TLSv1_2
