"""Tests of a relay with special Redis servers: TLS with a private certificate, and Redis Cluster."""

from pathlib import Path

from tests.runtimes.certificates import make_certificate
from tests.runtimes.redis_server import RedisServer, needs_redis
from tests.servers.program_process import call, running, running_relay
from tests.support.ports import free_port

pytestmark = needs_redis


def test_a_private_certificate_must_be_trusted_explicitly(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    with RedisServer(tmp_path, tls=(cert, key)) as server:
        for trusted, status in (({"SSL_CERT_FILE": str(cert)}, 200), ({}, 503)):
            env = {"SVC_CLUSTER_URL": server.url, "RELAY_LOCAL_TRUST": "address", **trusted}
            with running_relay(tmp_path / f"home-{status}", env=env) as (_, port):
                answer = call(port, "POST", "/pairing")
                assert answer.status == status, answer.body


def test_a_member_of_a_redis_cluster_is_refused_by_name(tmp_path: Path) -> None:
    """The relay logs that its Redis is a Redis Cluster."""
    # the default is 10,000 above, where connections are
    options = {"cluster-enabled": "yes", "cluster-port": str(free_port())}
    with (
        RedisServer(tmp_path, db=0, tls=None, **options) as server,
        running(tmp_path / "home", "servers.relay", "--port", "0", env={"SVC_CLUSTER_URL": server.url}) as relay,
    ):
        relay.line("cluster not reached.*this is a Redis Cluster: name a Redis that is none, or Sentinels")
