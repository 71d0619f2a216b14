"""Signing of requests to an S3-compatible store, by a library that reads the clock itself."""

from __future__ import annotations

from urllib.parse import urlsplit

from runtimes.failures import HostError
from svc_proto.facts import FailureKind
from svc_proto.settings import S3Bucket

__all__ = ["sign_s3_request"]


def sign_s3_request(bucket: S3Bucket, method: str, url: str, digest: str) -> dict[str, str]:
    """Return the header fields that sign a request whose body has this SHA-256 (AWS Signature Version 4).

    `host` is among them. Raises `HostError` if the library is not installed.
    """
    try:
        from aws_request_signer import AwsRequestSigner  # noqa: PLC0415, RUF100 - an extra
    except ImportError:
        text = "aws-request-signer is not installed: pip install 'svc-relay[s3]'"
        raise HostError(FailureKind.UNSUPPORTED, text) from None
    signer = AwsRequestSigner(bucket.region, bucket.key, bucket.secret, "s3", bucket.token or None)
    return {"host": urlsplit(url).netloc, **signer.sign_with_headers(method, url, {}, digest)}
