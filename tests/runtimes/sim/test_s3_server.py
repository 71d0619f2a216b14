"""Tests of the simulated object store: one object's requests, refused signatures, and the paths of a bucket."""

from hashlib import sha256

import pytest

from runtimes.sim.s3_server import S3Service, s3_core, sign_s3_request_at
from runtimes.sim.simulation import Simulation
from svc_proto.settings import S3Bucket
from tests.support.sim_http import HttpClientConnection, RequestClient, ServerAddress

BUCKET = S3Bucket("http://10.0.0.8:9000/uploads/a", "eu-north-1", "AKID", "secret", "token")
URL = f"{BUCKET.url}/name"
DATA = b"0123456789"


class Store:
    def __init__(self) -> None:
        self.world = Simulation(1)
        host = self.world.host("s3", "10.0.0.8")
        process = host.start(lambda entropy: s3_core(BUCKET, entropy), [9000])
        self.crowd = self.world.host("crowd", "10.0.8.1")
        self.world.run_until(lambda: process.ready)

    def ask(
        self, method: str, data: bytes = b"", *, url: str = URL, late: float = 0.0, key: S3Bucket = BUCKET, **more: str
    ) -> tuple[int, bytes]:
        digest = more.pop("digest", sha256(data).hexdigest())
        fields = sign_s3_request_at(key, method, url, digest, wall=self.crowd.wall() - late)
        fields.pop("host")
        target = ServerAddress("10.0.0.8", 9000, "10.0.0.8:9000")
        shown = {name.lower().replace("_", "-"): value for name, value in {**fields, **more}.items() if value}
        what = (method, url.removeprefix("http://10.0.0.8:9000"), shown, data)
        carrier = HttpClientConnection(self.crowd, target, bytes)
        caller = RequestClient(carrier, target, what, on_done=lambda caller: None)
        self.world.run_until(lambda: caller.is_closed)
        return caller.answer.status, caller.answer.body


def test_put_get_and_delete_an_object() -> None:
    store = Store()
    assert store.ask("GET") == (404, b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code></Error>')
    assert store.ask("PUT", DATA)[0] == 200
    assert store.ask("GET") == (200, DATA)
    assert store.ask("HEAD") == (200, b"")
    assert store.ask("GET", range="bytes=2-4") == (206, b"234")
    assert store.ask("GET", range="bytes=10-")[0] == 416
    assert store.ask("DELETE")[0] == 204
    assert store.ask("DELETE")[0] == 204
    assert store.ask("GET")[0] == 404


def test_requests_with_invalid_signatures_are_refused() -> None:
    store = Store()
    for key in (
        S3Bucket(BUCKET.url, BUCKET.region, "AKID", "another", "token"),
        S3Bucket(BUCKET.url, "us-east-1", "AKID", "secret", "token"),
    ):
        status, text = store.ask("GET", key=key)
        assert (status, b"SignatureDoesNotMatch" in text) == (403, True)
    status, text = store.ask("GET", key=S3Bucket(BUCKET.url, BUCKET.region, "AKID", "secret", "old"))
    assert (status, b"InvalidToken" in text) == (400, True)
    for late in (-901.0, 901.0):
        status, text = store.ask("GET", late=late)
        assert (status, b"RequestTimeTooSkewed" in text) == (403, True)
    status, text = store.ask("GET", x_amz_date="today")
    assert (status, b"AccessDenied" in text) == (403, True)
    assert store.ask("GET", x_amz_meta_unsigned="1")[0] == 403
    assert store.ask("PUT", DATA, digest=sha256(b"else").hexdigest())[0] == 400


def test_a_core_of_a_bucket() -> None:
    assert S3Service(BUCKET).router.match("GET", "/uploads/a/b").params["name"] == "b"
    with pytest.raises(Exception, match="there"):
        S3Service(BUCKET).router.match("GET", "/uploads/b")
