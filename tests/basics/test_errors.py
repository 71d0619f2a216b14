from __future__ import annotations

from svc_proto.basics.errors import LocalProtocolError, ProtocolError, Refused, RemoteProtocolError


def test_error_classes() -> None:
    assert issubclass(LocalProtocolError, ProtocolError)
    assert issubclass(RemoteProtocolError, ProtocolError)
    assert not issubclass(Refused, ProtocolError)


def test_a_remote_error_has_status_and_close_code() -> None:
    error = RemoteProtocolError("bad length")
    assert (str(error), error.status, error.close_code) == ("bad length", 400, 1002)
    error = RemoteProtocolError("too long", status=413, close_code=1009)
    assert (error.status, error.close_code) == (413, 1009)


def test_a_refusal_is_an_answer() -> None:
    refused = Refused(404, "not_found", "no such thing")
    assert (str(refused), refused.status, refused.code, refused.message) == (
        "no such thing",
        404,
        "not_found",
        "no such thing",
    )
    assert (refused.extra, refused.headers) == ({}, ())
    extra = {"matches": 2}
    refused = Refused(409, "several", "two match", extra=extra, headers=((b"allow", b"GET"),))
    extra["matches"] = 3
    assert (refused.extra, refused.headers) == ({"matches": 2}, ((b"allow", b"GET"),))


def test_a_401_names_its_scheme() -> None:
    assert Refused(401, "unauthorized", "who?").headers == ((b"www-authenticate", b"Bearer"),)
    basic = ((b"www-authenticate", b"Basic"),)
    assert Refused(401, "unauthorized", "who?", headers=basic).headers == basic
