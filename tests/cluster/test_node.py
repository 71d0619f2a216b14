"""Node of a cluster: messages, known nodes, and recovery from missed messages."""

from math import inf
from typing import Any

import pytest

from svc_proto.cluster import node as module
from svc_proto.cluster.node import HEARTBEAT_INTERVAL, LEASE, Node
from svc_proto.cluster.redis_client import PAUSE
from svc_proto.commands import Connect
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject
from svc_proto.settings import RedisAddress
from svc_proto.wire.resp import Push, RespError
from tests.cluster.harness import SIGNER, RedisHarness, opened, signed

WHERE = RedisAddress("redis.example", db=3)
ALL = b"svc:3:all"


class Town:
    """`NodeHandler` that records states, messages and lost nodes, and answers requests with their own content."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def export_state(self) -> dict[str, object]:
        return {"mine": 1}

    def apply_state(self, node: str, state: JsonObject) -> None:
        self.heard.append((node, "state", dict(state)))

    def on_message(self, node: str, word: str, body: JsonObject) -> None:
        self.heard.append((node, word, dict(body)))

    def on_request(self, node: str, word: str, body: JsonObject) -> dict[str, object]:
        return {"to": word, "with": body}

    def on_messages_missed(self) -> None:
        self.heard.append("missed")

    def on_node_lost(self, node: str) -> None:
        self.heard.append((node, "lost"))

    def news(self) -> list[object]:
        heard, self.heard = self.heard, []
        return heard


class Scene:
    """A started node, and the cluster around it; unless `up` is False, it is connected."""

    def __init__(self, *, up: bool = True) -> None:
        self.town = Town()
        self.book = RedisHarness(lambda engine: Node(engine, WHERE, self.town))
        self.node = self.book.made
        self.mine = f"svc:3:node:{self.node.id}".encode()
        self.told: dict[str, int] = {}
        self.book.spawn(self.node.start())
        self.book.give_secret()
        if up:
            self.up()

    def up(self) -> None:
        greeting = self.book.open("OK")
        assert greeting[1:] == [[b"SELECT", b"3"], [b"SUBSCRIBE", ALL, self.mine]]
        assert self.said() == [["TIME"], ("all", "hello", {})]
        self.book.answers([b"1800000100", b"500000"], 1)
        assert self.town.news() == ["missed"]

    def pulse(self) -> dict[str, object]:
        return {"name": self.node.id, "since": self.node.heartbeat().since, "load": 0}

    def said(self) -> list[object]:
        """Return the node's new messages as (recipient, word, body), and its other Redis commands."""
        found: list[object] = []
        for words in self.book.new_commands():
            assert isinstance(words, list)
            if words[0] == b"PUBLISH":
                text = opened(words)
                assert text["from"] == self.node.id
                where = words[1].decode().removeprefix("svc:3:")
                found.append((where, text["word"], text["body"]))
            else:
                found.append([word.decode() for word in words])
        return found

    def hear(self, node: str, word: str, body: object = None, *, told: int | None = None, to_me: bool = False) -> None:
        """Deliver a message of another node; `told` is the number of its broadcasts so far, by default counted here."""
        if told is None:
            counted = not to_me and word not in ("hello", "beat", "bye")
            told = self.told.get(node, 0) + counted
        self.told[node] = told
        message = {"from": node, "told": told, "word": word, "body": body or {}}
        self.raw(signed(self.mine if to_me else ALL, message), to_me=to_me)

    def raw(self, data: bytes, *, to_me: bool = False) -> None:
        self.book.answers(Push([b"message", self.mine if to_me else ALL, data]))

    def prove(self, node: str) -> None:
        """Deliver the state of another node, sent to this node alone, and drop the records of the handler."""
        self.hear(node, "state", to_me=True)
        self.town.news()


def known() -> Scene:
    """Return a scene in which the node has discovered the node `b`, and all earlier messages were read."""
    scene = Scene()
    scene.hear("b", "hello")
    scene.said()
    scene.book.answers(1, 1)
    scene.prove("b")
    return scene


@pytest.fixture
def scene() -> Scene:
    return known()


def test_hello_and_requests_exchange_the_states(scene: Scene) -> None:
    scene = Scene()
    scene.hear("b", "hello")
    assert scene.said() == [("node:b", "which", {}), ("node:b", "state", {"mine": 1})]
    assert list(scene.node.members) == ["b"]
    assert scene.town.news() == ["missed"]
    scene.hear("b", "state", {"theirs": 2}, to_me=True)
    assert scene.town.news() == [("b", "state", {"theirs": 2})]
    assert "node joined" in scene.book.events()
    scene.hear("b", "which", to_me=True)
    assert scene.said() == [("node:b", "state", {"mine": 1})]
    scene.hear("b", "state", {"theirs": [{}] * 80_000}, to_me=True)
    assert scene.town.news() == [("b", "state", {"theirs": [{}] * 80_000})]


def test_second_hello_voids_the_earlier_state_of_a_node(scene: Scene) -> None:
    answers = asked(scene)
    scene.said()
    scene.book.answers(1)
    scene.hear("b", "hello")
    assert answers == [module._GONE]
    assert scene.said() == [("node:b", "which", {}), ("node:b", "state", {"mine": 1})]
    assert scene.town.news() == [("b", "lost"), "missed"]
    scene.hear("b", "news")
    assert scene.town.news() == []  # not proven again


@pytest.mark.parametrize(("word", "told"), [("beat", 7), ("beat", 0), ("news", 1)])
def test_joining_node_reports_missed_messages(word: str, told: int) -> None:
    scene = Scene()
    scene.hear("b", word, {}, told=told)
    assert scene.said() == [("node:b", "which", {})]
    assert scene.town.news()[0] == "missed"


def test_missed_broadcast_requests_the_state(scene: Scene) -> None:
    scene.hear("b", "news")
    scene.hear("b", "beat")
    assert scene.town.news() == [("b", "news", {})]
    assert scene.said() == []
    scene.hear("b", "beat", told=2)
    assert scene.town.news() == ["missed"]
    assert scene.said() == [("node:b", "which", {})]
    scene.hear("b", "news", told=4)
    assert scene.town.news() == ["missed", ("b", "news", {})]
    scene.hear("b", "command", {"a": 1}, to_me=True)
    assert scene.town.news() == [("b", "command", {"a": 1})]


def test_heartbeat_counts_the_receivers() -> None:
    scene, time = Scene(), [b"1800000101", b"0"]
    scene.book.after(HEARTBEAT_INTERVAL)
    assert scene.said() == [("all", "beat", scene.pulse()), ["TIME"]]
    scene.book.answers(1, time)
    scene.hear("b", "hello")
    scene.said()
    assert scene.town.news() == ["missed"]
    scene.book.answers(1, 1)
    scene.book.after(HEARTBEAT_INTERVAL)
    assert scene.said() == [("all", "beat", scene.pulse()), ["PUBSUB", "NUMSUB", "svc:3:node:b"], ["TIME"]]
    scene.book.answers(2, [b"svc:3:node:b", 1], time)
    assert scene.node.cluster_time == 1_800_000_101.0  # independent of the local clock
    assert scene.town.news() == []
    scene.book.after(HEARTBEAT_INTERVAL)
    scene.said()
    scene.book.answers(2, [b"svc:3:node:b", 0], time)
    assert scene.town.news() == [("b", "lost")]
    assert not scene.node.members
    assert scene.book.events()[-1] == "node left"


@pytest.mark.parametrize("answer", [RespError("ERR", "no"), [b"svc:3:node:b"], [0, 0], [b"\xff", 0], 7])
def test_unexpected_heartbeat_reply_is_ignored(scene: Scene, answer: object) -> None:
    scene.book.after(HEARTBEAT_INTERVAL)
    scene.said()
    scene.book.answers(2, answer, answer)
    assert scene.town.news() == []


def beat(scene: Scene) -> None:
    scene.book.after(HEARTBEAT_INTERVAL)
    scene.book.answers(*(1 if words[0] == "all" else [] for words in scene.said()))  # type: ignore[index]  # words or a tuple


def test_silent_nodes_are_lost_unless_a_message_prolongs_the_lease(scene: Scene) -> None:
    for _ in range(2 * int(LEASE / HEARTBEAT_INTERVAL)):
        beat(scene)
        scene.hear("b", "beat")
    assert scene.town.news() == []
    for _ in range(int(LEASE / HEARTBEAT_INTERVAL) - 1):
        beat(scene)
    assert scene.town.news() == []
    beat(scene)
    assert scene.town.news() == [("b", "lost")]


def test_undelivered_messages_and_byes_are_the_loss_of_a_node(scene: Scene) -> None:
    scene.book.within(lambda: scene.node.send_to("b", "command", {"x": 1}))
    assert scene.said() == [("node:b", "command", {"x": 1})]
    scene.book.answers(1)
    assert scene.town.news() == []
    scene.book.within(lambda: scene.node.send_to("b", "command", {}))
    scene.book.answers(0)
    assert scene.town.news() == [("b", "lost")]
    assert not scene.node.send_to("b", "command", {})
    assert scene.said() == [("node:b", "command", {})]
    scene = known()
    scene.hear("b", "bye")
    assert scene.town.news() == [("b", "lost")]
    scene.hear("b", "bye")
    assert scene.town.news() == []


def test_lost_connections_lose_all_nodes_and_broadcasts_are_counted(scene: Scene) -> None:
    scene.book.close()
    assert scene.town.news() == [("b", "lost")]
    assert (scene.node.is_up, scene.node.up_since) == (False, inf)
    scene.book.within(lambda: scene.node.broadcast("news", {}))
    scene.book.after(PAUSE)
    scene.book.open("OK")
    assert scene.said()[-1] == ("all", "hello", {})
    scene = known()
    texts = []
    for _ in range(2):
        scene.book.within(lambda: scene.node.broadcast("news", {}))
        (words,) = scene.book.new_commands()
        texts.append(opened(words)["told"])
        scene.book.answers(1)
    assert texts == [1, 2]
    scene.book.close()
    scene.book.within(lambda: scene.node.broadcast("news", {}))
    scene.book.after(PAUSE)
    scene.book.open("OK")
    hello: Any = scene.book.new_commands()[-1]
    assert opened(hello)["told"] == 3


def asked(scene: Scene) -> list[JsonObject | Failure]:
    answers: list[JsonObject | Failure] = []
    scene.book.within(lambda: scene.book.engine.spawn(scene.node.request("b", "how", {"x": 1}), on_done=answers.append))
    return answers


def test_requests_are_answered_in_both_directions(scene: Scene) -> None:
    answers = asked(scene)
    ((where, word, body),) = scene.said()  # type: ignore[misc]
    assert (where, word, body["word"], body["body"]) == ("node:b", "asks", "how", {"x": 1})  # type: ignore[has-type]
    scene.book.answers(1)
    ticket = body["ticket"]  # type: ignore[has-type]
    for wrong in (None, "1", ticket + 1000):
        scene.hear("b", "says", {"ticket": wrong, "body": {"no": 1}}, to_me=True)
    scene.hear("c", "says", {"ticket": ticket, "body": {"no": 1}}, to_me=True)
    assert not answers
    scene.hear("b", "says", {"ticket": ticket, "body": {"so": 2}}, to_me=True)
    assert answers == [{"so": 2}]
    scene.said()
    scene.hear("b", "asks", {"word": "how", "body": {"x": 1}, "ticket": 9}, to_me=True)
    assert scene.said() == [("node:b", "says", {"ticket": 9, "body": {"to": "how", "with": {"x": 1}}})]


def test_requests_fail_when_their_node_is_lost_or_silent(scene: Scene) -> None:
    answers = asked(scene)
    scene.book.answers(1)
    scene.hear("c", "hello")
    scene.hear("c", "bye")
    assert not answers
    scene.hear("b", "bye")
    assert answers == [module._GONE]
    assert asked(scene) == [module._GONE]
    scene = known()
    answers = asked(scene)
    scene.book.answers(1)
    for _ in range(2):
        beat(scene)
        scene.hear("b", "beat")
    assert len(answers) == 1
    assert isinstance(answers[0], Failure)


def test_unsigned_and_recorded_messages_are_dropped(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WARNING_INTERVAL", 0.25)
    other = f"{ALL.decode()}!"
    message = b'{"from":"b","number":9999999,"told":0,"word":"news","body":{}}'
    for data in (message, SIGNER.sign(other, message), b""):
        scene.raw(data)
    warning = "cluster message with a wrong signature"
    assert scene.book.events()[-2:] == ["node joined", warning]
    scene.book.after(0.25)
    scene.raw(b"")
    assert scene.book.events()[-2:] == [warning, warning]
    assert scene.town.news() == []
    scene.raw(SIGNER.sign(ALL.decode(), message))
    assert scene.town.news() == ["missed", ("b", "news", {})]
    scene = known()
    recorded = signed(scene.mine, {"from": "b", "told": 0, "word": "command", "body": {"tap": 1}})
    scene.raw(recorded, to_me=True)
    assert scene.town.news() == [("b", "command", {"tap": 1})]
    scene.raw(recorded, to_me=True)
    scene.hear("b", "bye")
    scene.raw(recorded, to_me=True)  # nor while the node is not there
    scene.hear("b", "hello")
    scene.raw(recorded, to_me=True)
    assert scene.town.news() == [("b", "lost"), "missed"]


def test_broadcasts_wait_for_a_message_to_this_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.hear("b", "news", {"x": 1})
    scene.hear("b", "beat")
    scene.hear("b", "more", {"x": 2})
    assert scene.town.news() == ["missed"]
    scene.hear("b", "state", {"x": 3}, to_me=True)
    assert scene.town.news() == [("b", "news", {"x": 1}), ("b", "more", {"x": 2}), ("b", "state", {"x": 3})]
    scene.hear("b", "news")
    assert scene.town.news() == [("b", "news", {})]
    monkeypatch.setattr(module, "MAX_HELD", 1)
    scene.hear("c", "news")
    assert scene.town.news() == ["missed"]
    scene.hear("c", "news")
    assert scene.town.news() == [("c", "lost")]


def test_nodes_that_depart_before_they_are_proven_or_have_the_secret() -> None:
    scene = Scene()
    scene.hear("b", "hello")
    scene.hear("b", "bye")
    scene.town.news()
    scene.hear("b", "news", told=-1)
    assert scene.town.news() == []
    book = RedisHarness(lambda engine: Node(engine, WHERE, Town()))
    book.spawn(book.made.start())
    book.within(book.made.stop)
    book.give_secret()
    book.after(PAUSE)
    assert not book.ordered(Connect)


@pytest.mark.parametrize(
    "data", [b"no JSON", b"[1]", b"{}", b'{"from":"b","word":"x"}', b'{"from":"b","told":1}', b'{"told":1,"word":"x"}']
)
def test_invalid_message_is_logged(data: bytes) -> None:
    scene = Scene()
    scene.raw(SIGNER.sign(ALL.decode(), data))
    assert scene.book.events()[-1] == "cluster message not understood"
    assert not scene.node.members


def test_own_messages_and_too_many_nodes_are_ignored(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.hear(scene.node.id, "news", told=5)
    assert scene.town.news() == []
    assert not scene.node.members
    scene = known()
    monkeypatch.setattr(module, "MAX_NODES", 1)
    scene.hear("c", "news")
    assert list(scene.node.members) == ["b"]
    assert scene.town.news() == []


def test_a_stopping_node_says_bye_and_then_answers_no_requests(scene: Scene) -> None:
    scene.book.within(scene.node.stop)
    assert scene.said() == [("all", "bye", {})]
    scene.said()
    scene.book.answers(1)
    scene.book.after(HEARTBEAT_INTERVAL)
    assert scene.said() == [["PUBSUB", "NUMSUB", "svc:3:node:b"], ["TIME"]]
    scene.book.answers([b"svc:3:node:b", 0], [b"1", b"0"])
    assert scene.town.news() == [("b", "lost")]
    scene = known()
    scene.book.within(scene.node.stop)
    scene.book.within(lambda: scene.node.broadcast("news", {}))
    words = list(map(opened, scene.book.new_commands()))
    assert [(text["word"], text["told"]) for text in words] == [("bye", 0), ("news", -1)]
    scene.book.answers(1, 1)
    for word in ("hello", "which", "asks"):
        scene.hear("c", word)
    assert not scene.said()
    assert list(scene.node.members) == ["b"]


def test_departed_nodes_get_answers_but_do_not_come_back(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.hear("b", "bye")
    scene.hear("b", "news", {"x": 1}, told=-1)
    assert scene.town.news() == [("b", "lost"), ("b", "news", {"x": 1})]
    assert not scene.node.members
    assert not scene.said()
    scene = known()
    scene.hear("b", "bye")
    assert scene.town.news() == [("b", "lost")]
    scene.hear("b", "asks", {"word": "what", "body": {}, "ticket": 4}, told=-1, to_me=True)
    assert [words[:2] for words in scene.said()] == [("node:b", "says")]  # type: ignore[index]  # PUBLISH
    scene.book.answers(1)
    scene.book.within(lambda: scene.node.send_to("b", "answered", {}))
    assert [words[:2] for words in scene.said()] == [("node:b", "answered")]  # type: ignore[index]  # PUBLISH
    scene.book.answers(0)
    assert not scene.node.send_to("b", "answered", {})
    monkeypatch.setattr(module, "DEPARTURE", 0.0)
    scene.hear("b", "bye")
    assert not scene.node.send_to("b", "answered", {})
    assert not scene.node.members
    assert scene.town.news() == []


def test_cluster_time_is_the_clock_of_redis() -> None:
    scene = Scene(up=False)
    assert (scene.node.cluster_time, scene.node.greeted) == (scene.book.engine.now.wall, 0)
    scene.up()
    assert scene.node.cluster_time == 1_800_000_100.5
    scene.book.after(0.25)
    assert scene.node.cluster_time == 1_800_000_100.75
    late = Scene(up=False)
    late.book.open("OK")
    late.book.answers(RespError("ERR", "no"), RespError("ERR", "no"))
    assert (late.node.cluster_time, late.node.greeted) == (late.book.engine.now.wall, 0)


def test_the_error_without_the_other_nodes() -> None:
    error = module.cluster_unavailable_error("a lock", module.RETRY)
    assert (error.status, error.code, error.headers) == (503, "cluster_unavailable", ((b"retry-after", b"1"),))


def test_keys_and_values_are_of_this_service(scene: Scene) -> None:
    assert Scene(up=False).node.key("code", "ABC123") == "svc:3:code:ABC123"
    signed_text = scene.node.sign("a", "text")
    assert (scene.node.verify("a", signed_text), scene.node.verify("b", signed_text)) == (b"text", None)


def test_the_url_of_a_node_is_that_of_its_heartbeat_once_the_node_is_proven() -> None:
    scene = Scene()
    beat = {"name": "http://b", "since": 1.0, "load": 0}
    scene.hear("b", "beat", beat)
    assert (scene.node.url_of("b"), scene.node.url_of("c")) == ("", "")
    scene.hear("b", "news", to_me=True)
    assert scene.node.url_of("b") == "http://b"
    scene.hear("c", "news", to_me=True)
    assert scene.node.url_of("c") == ""
