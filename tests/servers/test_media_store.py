"""Tests of relays that share uploads, in a folder or a bucket.

moto (PyPI: `moto[server]`, 300 MB) and s3rver (npm) are tested if they are on the PATH.
"""

import base64
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

from runtimes.host.compute import sign_s3_request
from runtimes.sim.s3_server import S3Service
from servers.launch import CannotStartError
from servers.relay_program import read_relay_config
from svc_proto.settings import S3Bucket
from tests.servers.program_process import TIMEOUT, call, environment
from tests.servers.relay_cluster import RelayCluster, needs_nodes, until
from tests.support.background_program import running_service
from tests.support.ports import free_port

pytestmark = needs_nodes

DATA = random.Random(1).randbytes(3_000_000)
needs_signatures = pytest.mark.skipif(find_spec("aws_request_signer") is None, reason="the extra s3 is not installed")
STORES = {
    "moto": ["moto_server", "-H", "127.0.0.1", "-p"],
    "s3rver": ["s3rver", "-d", "s3rver", "-a", "127.0.0.1", "-p"],
}


def asked(bucket: S3Bucket, method: str, url: str, digest: str = "UNSIGNED-PAYLOAD") -> int:
    """Send a signed S3 request; return the status, or 0 without a server."""
    place = url.split("/", 3)
    try:
        with closing(HTTPConnection(place[2], timeout=TIMEOUT)) as connection:
            connection.request(method, f"/{place[3]}", headers=sign_s3_request(bucket, method, url, digest))
            return connection.getresponse().status
    except OSError:
        return 0


@contextmanager
def store(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """Provide a store for uploads and yield its environment variables."""
    if kind == "folder":
        (folder / "uploads").mkdir()
        yield {"SVC_MEDIA_URL": f"file://{folder}/uploads"}
        return
    port = free_port()
    key = S3Bucket(f"http://127.0.0.1:{port}/uploads", "us-east-1", "S3RVER", "S3RVER")
    env = {
        "SVC_MEDIA_URL": f"s3://uploads/of/svc?endpoint=http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": key.key,
        "AWS_SECRET_ACCESS_KEY": key.secret,
    }
    with ExitStack() as stack:
        if kind in STORES:
            process = subprocess.Popen(
                [*STORES[kind], str(port)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            until(lambda: asked(key, "PUT", key.url) == 200, "there is a bucket")
        else:
            whole = S3Bucket(f"{key.url}/of/svc", key.region, key.key, key.secret)
            stack.enter_context(running_service(S3Service(whole), port=port))
        yield env


def fetched(port: int, path: str, token: str, method: str = "GET", **fields: str) -> tuple[int, bytes]:
    answer = call(port, method, path, token=token, headers=fields)
    return answer.status, answer.data


@pytest.mark.parametrize(
    "kind",
    [
        "folder",
        pytest.param("simulated", marks=needs_signatures),
        *(
            pytest.param(
                kind, marks=[needs_signatures, pytest.mark.skipif(which(words[0]) is None, reason=f"no {words[0]}")]
            )
            for kind, words in STORES.items()
        ),
    ],
)
def test_an_upload_outlives_the_node_that_was_killed(kind: str, tmp_path: Path) -> None:
    with store(kind, tmp_path) as env, RelayCluster(tmp_path, env=env) as cluster:
        token = cluster.pair("hal", 0).token
        body = {"content": base64.b64encode(DATA).decode(), "content_type": "image/png", "file_name": "shot.png"}
        uploaded = call(cluster.ports[0], "POST", "/media/upload", body, token=token)
        assert uploaded.status == 200, uploaded.body
        path = f"/media/{uploaded.body['token']}"
        for killed in (False, True):
            if killed:
                cluster.kill(0)
            for port in cluster.ports[killed:]:
                assert fetched(port, path, token) == (200, DATA)
                assert fetched(port, path, token, Range="bytes=1000000-1999999") == (206, DATA[1_000_000:2_000_000])
                assert fetched(port, path, token, "HEAD") == (200, b"")
                assert fetched(port, path, token, Range="bytes=9999999-")[0] == 416
        cluster.start_node(0)
        until(lambda: fetched(cluster.ports[0], path, token)[0] == 200, "the node that is back was told")
        assert fetched(cluster.ports[0], path, token) == (200, DATA)
        assert call(cluster.ports[1], "POST", "/media/upload", body, token=token).status == 200
        assert len(call(cluster.ports[2], "GET", "/media/inspect").body["media"]) == 2
        seen = "\n".join(line for node in cluster.nodes if node is not None for line in node.seen)
        assert "S3RVER" not in seen


def test_a_bucket_without_the_signing_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servers.relay_program.find_spec", lambda name: None)
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    env = environment(tmp_path, {"SVC_MEDIA_URL": "s3://uploads", **keys})
    with pytest.raises(CannotStartError, match=r"svc-relay\[s3\]") as error:
        read_relay_config(env, {})
    assert error.value.code == 2
