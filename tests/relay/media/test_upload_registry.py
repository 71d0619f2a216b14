"""Registry of uploads in a cluster: announcements, takeover, deletion, and a folder that hosts share."""

from typing import Any

import pytest

from fuzz.cluster.deployment import BUCKET, UPLOADS_LIVE, ClusterDeployment
from svc_proto.commands import DeleteBlob
from svc_proto.relay_config import RelayConfig
from svc_proto.settings import S3Bucket
from tests.cluster.harness import WHERE
from tests.relay.cluster.test_request_forwarding import uploaded
from tests.relay.coordinator_harness import CoordinatorHarness
from tests.support.core_harness import HOME

FOLDER = "/mnt/uploads"
RECORD = {
    "token": "T" * 22, "name": "abc.txt", "content_type": "text/plain", "shown": "image/png", "file_name": "a.txt",
    "size": 3, "created_at": 1.0, "left": 10.0, "owner": "o",
}  # fmt: skip


def alone(place: S3Bucket | str | None = FOLDER, **config: Any) -> CoordinatorHarness:
    return CoordinatorHarness(RelayConfig(home=HOME, cluster=WHERE, media_store=place, **config))


def deleted(harness: CoordinatorHarness) -> list[str]:
    return [order.path for order in harness.book.ordered(DeleteBlob)]


def test_uploads_in_a_shared_folder() -> None:
    scene = ClusterDeployment(0, 3, uploads=FOLDER)
    scene.start()
    phone = scene.pair_phone("P", 0)
    path = uploaded(scene, 1, phone.token, b"a file")
    disk = scene.hosts[0].disk
    assert len(disk.files(FOLDER)) == 1
    scene.sim.run_for(0.5)
    for _ in range(2):
        for node in (0, 2):
            answer = scene.request_and_wait(node, "GET", path, token=phone.token).answer
            assert (answer.status, answer.body) == (200, b"a file")
            assert answer.headers.get(b"content-type") == b"text/plain"
        scene.stop(1)
        scene.sim.run_for(1.0)
    old = disk.put(f"{FOLDER}/old", b"of a service that is gone")
    scene.sim.run_for(UPLOADS_LIVE)
    assert [*disk.files(FOLDER)] == ["old"]
    assert scene.request_and_wait(0, "GET", path, token=phone.token).status == 404
    scene.restart(1)
    scene.run(lambda: scene.nodes[1].ready)
    assert [*disk.files(FOLDER)] == ["old"]  # a client may hold its token
    old.modified -= 3_600.0
    scene.kill(1)
    scene.restart(1)
    scene.run(lambda: scene.nodes[1].ready)
    assert not disk.files(FOLDER)
    scene.check_invariants()


def test_upload_of_another_node_is_known_until_its_state_omits_it() -> None:
    one = alone()
    media = one.relay.media
    one.deliver("kept", RECORD)
    one.deliver("kept", RECORD)
    entry = media.registry.peek("T" * 22)
    assert entry is not None
    assert (entry.path, entry.owned) == (f"{FOLDER}/abc.txt", True)
    assert (entry.last_accessed, entry.expires_at) == (1.0, one.book.now.wall + 10.0)
    assert media.uploads.record("T" * 22) == RECORD  # a lost node's upload is announced as the node did
    assert media.uploads._used == {"o": 3}
    assert media.uploads.records() == []
    one.deliver("gone", {"token": "T" * 22})
    one.deliver("gone", {"token": "T" * 22})
    assert (len(media.registry), media.uploads._used) == (0, {})
    one.deliver("state", {"uploads": [RECORD]}, to_me=True)
    assert media.has("T" * 22)
    one.deliver("state", {"uploads": []}, to_me=True)
    assert not media.has("T" * 22)
    assert not one.book.ordered(DeleteBlob)


@pytest.mark.parametrize("left", ["node", "no client"])
def test_expired_upload_is_deleted_by_its_node_or_a_remaining_one(left: str) -> None:
    one = alone()
    one.deliver("kept", {**RECORD, "left": 2.0})
    one.deliver("proof", node="c", to_me=True)
    one.deliver("kept", {**RECORD, "token": "U" * 22}, node="c")
    if left == "no client":
        one.deliver("bye")
        assert [row["token"] for row in one.relay.media.uploads.records()] == ["T" * 22]
    one.book.after(2.0)
    assert not one.relay.media.has("T" * 22)
    assert deleted(one) == [f"{FOLDER}/abc.txt"] * (left == "no client")


def test_evicted_and_lost_uploads_are_announced() -> None:
    one = alone(media_max_size_mb=1)
    media = one.relay.media
    one.deliver("kept", RECORD)
    one.new_messages()
    one.book.within(lambda: media.reserve_quota("o", 10 * 1024 * 1024))
    assert one.new_messages() == [("gone", {"token": "T" * 22})]
    assert deleted(one) == [f"{FOLDER}/abc.txt"]
    small = alone(media_lru_cap=1)
    small.deliver("kept", RECORD)
    small.new_messages()
    small.deliver("kept", {**RECORD, "token": "U" * 22})
    assert small.new_messages() == [("gone", {"token": "T" * 22})]
    one = alone()
    one.deliver("proof", node="c", to_me=True)
    one.deliver("kept", RECORD, node="c")
    one.deliver("state", {"uploads": [{**RECORD, "token": "U" * 22}]}, to_me=True)
    one.new_messages()
    one.deliver("bye", node="c")
    assert [(word, body["token"]) for word, body in one.new_messages()] == [("kept", "T" * 22)]
    calm = alone()
    calm.deliver("kept", RECORD)
    calm.new_messages()
    calm.deliver("bye")
    assert calm.new_messages() == []


@pytest.mark.parametrize(
    "wrong", [{"token": "short"}, {"name": "../x"}, {"name": ""}, {"size": -1}, {"left": -1.0}, {"created_at": "x"}]
)
def test_invalid_upload_records_are_ignored(wrong: dict[str, object]) -> None:
    one = alone()
    one.deliver("kept", {**RECORD, **wrong})
    assert len(one.relay.media.registry) == 0


def test_node_without_shared_storage_ignores_uploads() -> None:
    one = alone(None)
    one.deliver("kept", RECORD)
    one.deliver("gone", {"token": "T" * 22})
    assert len(one.relay.media.registry) == 0
    assert one.relay.media.uploads.record("T" * 22) == {}
    about: Any = {"content_type": "a/b", "file_name": None, "size": 0, "owner": "o", "shown": "image/png"}
    one.book.within(lambda: one.relay.media.register("abc", **about))
    assert (len(one.relay.media.registry), one.relay.media.uploads.records()) == (1, [])


def test_unannounced_upload_is_taken_over_on_request() -> None:
    one = alone(BUCKET)
    made: list[Any] = []
    about: Any = {"content_type": "a/b", "file_name": None, "size": 0, "owner": "o", "shown": "image/png"}
    one.book.within(lambda: made.append(one.relay.media.register("abc", **about)))
    (entry,) = made
    assert [word for word, _ in one.new_messages()] == ["kept"]
    one.deliver("asks", {"word": "has", "body": {"what": "media", "name": entry.token}, "ticket": 1}, to_me=True)
    ((_, said),) = one.new_messages()
    assert said["body"]["upload"]["shown"] == "image/png"
    other = alone(BUCKET)
    other.deliver("kept", {**said["body"]["upload"], "left": 5.0})
    assert other.relay.media.has(entry.token)
    one.book.within(one.relay.media.stop)
    assert not one.book.ordered(DeleteBlob)
