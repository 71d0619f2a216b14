"""Uploads in a bucket: served by all nodes, also after their node is gone; their quota; failures of the store."""

from base64 import b64encode
from typing import Any, cast

import pytest

from fuzz.cluster.deployment import BUCKET, UPLOADS_LIVE, ClusterDeployment
from runtimes.sim.s3_server import S3Service
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response
from svc_proto.wire.events import Headers
from tests.relay.cluster.test_request_forwarding import uploaded
from tests.relay.routes.media_harness import check_quota
from tests.support.scenario_plan import some
from tests.support.sim_http import HttpClientConnection, Pairs, RequestClient

MIB = 1024 * 1024
DATA = bytes(range(256)) * 1_000


def world(nodes: int = 3) -> tuple[ClusterDeployment, S3Service]:
    scene = ClusterDeployment(0, nodes, uploads=BUCKET)
    scene.start()
    assert scene.s3 is not None
    return scene, scene.s3


def got(scene: ClusterDeployment, node: int, path: str, token: str, method: str = "GET", **fields: str) -> Any:
    shown = cast("Pairs", {name.replace("_", "-"): value for name, value in fields.items()})
    return scene.request_and_wait(node, method, path, token=token, fields=shown).answer


def test_upload_is_served_by_all_nodes_and_outlives_its_node() -> None:
    scene, s3 = world()
    phone = scene.pair_phone("P", 0)
    path = uploaded(scene, 1, phone.token, DATA)
    assert list(s3.objects.values()) == [DATA]
    assert not scene.hosts[1].disk.files(scene.hosts[1].spool)
    there = got(scene, 1, path, phone.token)
    assert (there.status, there.body) == (200, DATA)
    tag, day = (str((there.headers.get(name) or b"").decode()) for name in (b"etag", b"last-modified"))
    for round_ in range(2):
        for node in (0, 2) if round_ else (0, 1, 2):
            for method, fields, status, body in (
                ("GET", {}, 200, DATA),
                ("HEAD", {}, 200, b""),
                ("GET", {"range": "bytes=1000-99999"}, 206, DATA[1_000:100_000]),
                ("GET", {"range": "bytes=-1"}, 206, DATA[-1:]),
                ("GET", {"range": "bytes=0-9", "if_range": tag}, 206, DATA[:10]),
                ("GET", {"range": "bytes=0-9", "if_range": '"x"'}, 200, DATA),
                ("GET", {"if_none_match": tag}, 304, b""),
                ("GET", {"if_modified_since": day}, 304, b""),
                ("GET", {"if_match": '"another"'}, 412, None),
                ("GET", {"range": "bytes=999999-"}, 416, None),
            ):
                answer = got(scene, node, path, phone.token, method, **fields)
                assert answer.status == status, (node, method, fields)
                assert body is None or answer.body == body
                if status in (200, 206):
                    assert answer.headers.get(b"etag") == tag.encode()
                    assert answer.headers.get(b"content-type") == b"text/plain"
            assert scene.request_and_wait(node, "GET", path).status == 401
        scene.kill(1)
        scene.sim.run_for(1.0)
    scene.restart(1)
    scene.run(lambda: scene.nodes[1].ready and scene.count_known_nodes(1) == 2)
    scene.sim.run_for(0.5)
    assert got(scene, 1, path, phone.token).body == DATA  # the other nodes announced it
    assert scene.request_and_wait(1, "GET", "/media/inspect").answer.json["media"][0]["size"] == len(DATA)
    scene.check_invariants()


def test_expired_upload_is_deleted_once_by_a_remaining_node() -> None:
    for killed in (False, True):
        scene, s3 = world(2)
        phone = scene.pair_phone("P", 0)
        path = uploaded(scene, 1, phone.token, DATA)
        if killed:
            scene.kill(1)
            scene.sim.run_for(1.0)
        scene.sim.run_for(UPLOADS_LIVE + 1.0)
        assert not s3.objects
        assert [method for method, _ in s3.asked].count("DELETE") == 1
        assert scene.request_and_wait(0, "GET", path, token=phone.token).status == 404
        scene.check_invariants()


def test_quota_applies_to_the_sum_of_all_nodes() -> None:
    scene, s3 = world(2)
    phone, other = scene.pair_phone("P", 0), scene.pair_phone("Q", 0)
    theirs = uploaded(scene, 0, other.token, b"theirs")
    paths = [uploaded(scene, n % 2, phone.token, bytes([n]) * MIB) for n in range(11)]
    scene.sim.run_for(1.0)
    assert sum(map(len, s3.objects.values())) == 10 * MIB + 6
    for node in range(2):
        found = [got(scene, node, path, phone.token).status for path in (*paths[:2], paths[-1], theirs)]
        assert found == [404, 200, 200, 200]
        check_quota(scene.relays[node].media)
    scene.check_invariants()


def test_unreachable_store_fails_only_its_requests() -> None:
    scene, _ = world(2)
    phone = scene.pair_phone("P", 0)
    path = uploaded(scene, 0, phone.token, DATA)
    scene.s3_process.kill()
    body = {"content": "aGk=", "content_type": "text/plain", "file_name": "a.txt"}
    for node in range(2):
        answer = scene.request_and_wait(node, "POST", "/media/upload", token=phone.token, body=body).answer
        assert (answer.status, answer.json["code"]) == (503, "media_store_unavailable")
        answer = got(scene, node, path, phone.token)
        assert (answer.status, answer.json["code"]) == (503, "media_store_unavailable")
        assert got(scene, node, path, phone.token, if_none_match="*").status == 304
        assert not scene.hosts[node].disk.files(scene.hosts[node].spool)
        used = scene.relays[node].media.uploads._used
        assert list(used.values()) == [len(DATA)]
        assert scene.nodes[node].operations.open_handles == 0
        assert scene.request_and_wait(node, "GET", "/ping", token=phone.token).status == 200
    scene.s3_process = scene.s3_process.restart()
    scene.run(lambda: scene.s3_process.ready)
    assert got(scene, 1, path, phone.token).body == DATA
    assert scene.request_and_wait(1, "POST", "/media/upload", token=phone.token, body=body).status == 200
    scene.check_invariants()


@pytest.mark.parametrize(
    "lie",
    [
        lambda request, response: Response(500, Headers(), b"<Error/>"),
        lambda request, response: Response(403, Headers(), b"<Error/>"),
        lambda request, response: Response(200, Headers(), response.body + b"x"),
        lambda request, response: Response(200, Headers(), response.body[:-1]),
        lambda request, response: Response(206, response.headers, response.body),
        lambda request, response: Response(206, Headers([(b"content-range", b"bytes 0-9/11")]), response.body),
        lambda request, response: Response(206, Headers([(b"content-range", b"bytes 0-4/256000")]), DATA[:5]),
    ],
    ids=["500", "403", "longer", "shorter", "a part", "another part", "another part of that length"],
)
@pytest.mark.parametrize("part", some([True, False], 2))
def test_wrong_answers_of_the_store_are_refused(lie: Any, part: bool) -> None:
    scene, s3 = world(1)
    phone = scene.pair_phone("P", 0)
    path = uploaded(scene, 0, phone.token, DATA)
    s3.instead = lie
    fields = {"range": "bytes=5-9"} if part else {}
    answer = got(scene, 0, path, phone.token, **fields)
    if part and lie(None, Response(206, Headers(), b"")).status == 206 and answer.status == 206:
        assert answer.body == DATA[5:10]  # the request had no range
    else:
        assert (answer.status, answer.json["code"]) == (503, "media_store_unavailable")
    s3.instead = lambda request, response: Response(404, Headers(), b"")
    assert got(scene, 0, path, phone.token).status == 404
    s3.instead = lambda request, response: Response(500, Headers(), b"")
    scene.sim.run_for(UPLOADS_LIVE)  # the lifecycle of the bucket removes what the relay could not delete
    assert s3.asked[-1][0] == "DELETE"
    assert not scene.relays[0].media.uploads._used
    scene.check_invariants()


def test_uploads_that_fail_or_are_empty() -> None:
    scene, s3 = world(1)
    phone = scene.pair_phone("P", 0)
    body = {"content": "aGk=", "content_type": "text/plain", "file_name": "a.txt"}
    s3.instead = lambda request, response: Response(503 if request.method == "PUT" else response.status, Headers())
    assert scene.request_and_wait(0, "POST", "/media/upload", token=phone.token, body=body).status == 503
    scene.sim.run_for(1.0)
    assert not s3.objects  # stored despite the error, and deleted again
    assert [method for method, _ in s3.asked] == ["PUT", "DELETE"]
    assert not scene.relays[0].media.uploads._used
    scene.check_invariants()
    scene, s3 = world(2)
    phone = scene.pair_phone("P", 0)
    about = b'Content-Disposition: form-data; name="file"; filename="e.txt"\r\nContent-Type: text/plain'
    fields: Pairs = {"authorization": f"Bearer {phone.token}", "content-type": "multipart/form-data; boundary=x"}
    what = ("POST", "/media/upload", fields, b"--x\r\n" + about + b"\r\n\r\n\r\n--x--\r\n")
    target = scene.target(0)
    carrier = HttpClientConnection(scene.crowd, target, scene.entropy)
    caller = RequestClient(carrier, target, what, on_done=lambda caller: None)
    scene.run(lambda: caller.is_closed)
    assert caller.answer.status == 200, caller.answer
    assert list(s3.objects.values()) == [b""]
    for node in range(2):
        answer = got(scene, node, f"/media/{caller.answer.json['token']}", phone.token)
        assert (answer.status, answer.body, answer.headers.get(b"content-type")) == (200, b"", b"text/plain")
    assert [method for method, _ in s3.asked] == ["PUT"]
    scene.check_invariants()


def test_all_of_an_object_at_once() -> None:
    scene, s3 = world(1)
    phone = scene.pair_phone("P", 0)
    path, media = uploaded(scene, 0, phone.token, DATA), scene.relays[0].media

    def answer(request: Request, token: str) -> Flow[Response]:
        return Response(200, Headers(), (yield from media.read(token, len(DATA) - len(request.raw_query))))

    media.answer = answer  # type: ignore[method-assign]  # as the agent's picture is read
    assert got(scene, 0, path, phone.token).body == DATA
    assert got(scene, 0, f"{path}?x", phone.token).status == 413
    s3.instead = lambda request, response: Response(404, Headers())
    assert got(scene, 0, path, phone.token).status == 404
    s3.instead = lambda request, response: response
    call = scene.request(0, "GET", path, token=phone.token)
    scene.run(lambda: bool(s3.asked) and s3.asked.count(("GET", s3.asked[0][1])) == 3)
    scene.s3_process.kill()
    scene.run(lambda: call.is_closed)
    assert call.status == 503
    scene.check_invariants()


def test_type_that_the_bytes_show_is_served_by_all_nodes() -> None:
    scene, _ = world()
    phone = scene.pair_phone("P", 0)
    content = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(24)).decode()
    body = {"content": content, "content_type": "image/jpeg", "file_name": "a"}
    made = scene.request_and_wait(0, "POST", "/media/upload", token=phone.token, body=body).answer.json["token"]
    scene.sim.run_for(1.0)
    kinds = [got(scene, node, f"/media/{made}", phone.token).headers.get(b"content-type") for node in range(3)]
    assert kinds == [b"image/png"] * 3


def test_downloads_that_cannot_be_signed_or_completed_fail() -> None:
    scene, _ = world(1)
    phone = scene.pair_phone("P", 0)
    path = uploaded(scene, 0, phone.token, DATA)
    del scene.hosts[0].compute["s3.sign"]
    assert got(scene, 0, path, phone.token).status == 503
    scene.check_invariants()
    scene, _ = world(2)
    phone = scene.pair_phone("P", 0)
    path = uploaded(scene, 0, phone.token, bytes(MIB))
    call = scene.request(1, "GET", path, token=phone.token)
    scene.run(lambda: call.head is not None)
    scene.s3_process.kill()
    scene.run(lambda: call.is_closed)
    assert call.status == 0
    scene.check_invariants()
