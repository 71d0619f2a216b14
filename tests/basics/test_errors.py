from svc_proto.basics.errors import Refused, RemoteProtocolError


def test_a_remote_error_has_status_and_close_code() -> None:
    error = RemoteProtocolError("bad length")
    assert (str(error), error.status, error.close_code) == ("bad length", 400, 1002)
    error = RemoteProtocolError("too long", status=413, close_code=1009)
    assert (error.status, error.close_code) == (413, 1009)


def test_extra_members_of_a_refusal_are_copied() -> None:
    extra = {"matches": 2}
    refused = Refused(409, "several", "two match", extra=extra)
    extra["matches"] = 3
    assert refused.extra == {"matches": 2}


def test_a_401_names_its_scheme() -> None:
    assert Refused(401, "unauthorized", "who?").headers == ((b"www-authenticate", b"Bearer"),)
    basic = ((b"www-authenticate", b"Basic"),)
    assert Refused(401, "unauthorized", "who?", headers=basic).headers == basic
