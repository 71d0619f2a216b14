"""A relay whose Redis speaks TLS, with a certificate of the operator's own."""

from __future__ import annotations

from pathlib import Path

from tests.runtimes.certificates import make_certificate
from tests.runtimes.redis_server import PASSWORD, RedisServer, needs_redis
from tests.servers.support import call, running_relay

pytestmark = needs_redis


def test_a_private_certificate_is_good_if_it_is_named_and_not_otherwise(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    with RedisServer(tmp_path, tls=(cert, key)) as server:
        url = f"rediss://:{PASSWORD}@127.0.0.1:{server.port}/0"
        for trusted, status in (({"SSL_CERT_FILE": str(cert)}, 200), ({}, 503)):
            env = {"SVC_CLUSTER_URL": url, "RELAY_LOCAL_TRUST": "address", **trusted}
            with running_relay(tmp_path / f"home-{status}", env=env) as (_, port):
                answer = call(port, "POST", "/pairing")
                assert answer.status == status, answer.body
