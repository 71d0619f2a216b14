import sys
import time
from importlib.util import find_spec
from typing import Any

import pytest

from runtimes.failures import HostError
from runtimes.host.compute import sign_s3_request
from runtimes.sim.s3_server import sign_s3_request_at as sign_at
from svc_proto.facts import FailureKind
from svc_proto.settings import S3Bucket

URL = "https://uploads.s3.eu-north-1.amazonaws.com/of/svc/name"
DIGEST = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.skipif(find_spec("aws_request_signer") is None, reason="the extra s3 is not installed")
@pytest.mark.parametrize("token", ["", "soon-over"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
@pytest.mark.parametrize("url", [URL, "http://127.0.0.1:9000/uploads/name", "https://s3.lan/uploads/name?x-id=a%20b"])
def test_the_library_signs_as_the_simulated_store_wants_it(token: str, method: str, url: str) -> None:
    bucket = S3Bucket("https://x", "eu-north-1", "AKIDEXAMPLE", "very/secret+4711", token)
    before, signed, after = time.time(), sign_s3_request(bucket, method, url, DIGEST), time.time()
    assert signed in [sign_at(bucket, method, url, DIGEST, wall=wall) for wall in (before, after)]
    assert bucket.secret not in str(signed)


def test_the_example_of_the_manual() -> None:
    """The signature equals that of the AWS manual's example: GET a bucket's lifecycle."""
    bucket = S3Bucket("", "us-east-1", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    wall = 1_369_353_600.0  # 20130524T000000Z
    signed = sign_at(bucket, "GET", "https://examplebucket.s3.amazonaws.com/?lifecycle", DIGEST, wall=wall)
    assert signed["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
        "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    )


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Any = None
    monkeypatch.setitem(sys.modules, "aws_request_signer", nothing)
    with pytest.raises(HostError, match="svc-relay\\[s3\\]") as error:
        sign_s3_request(S3Bucket("", "r", "k", "s"), "GET", URL, DIGEST)
    assert error.value.failure.kind is FailureKind.UNSUPPORTED
