"""Mistakes of design that are put into the cluster on purpose, as somebody could have made them: a storm finds each."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.cluster.node import Node
from svc_proto.cluster.redis import Redis
from svc_proto.engine.flow import Flow
from svc_proto.machines.limiter import Limiter
from svc_proto.machines.pairing import PairingMeta
from svc_proto.machines.told_limiter import ToldLimiter
from svc_proto.relay import fellows
from svc_proto.relay.commons import Commons
from svc_proto.relay.fellow_sessions import FellowSessions
from svc_proto.relay.fellows import Fellows
from svc_proto.relay.uploads import Uploads
from svc_proto.schema.members import Members

Plant = Callable[[pytest.MonkeyPatch], None]

# --- codes ---


def a_code_is_read_and_deleted_behind(patch: pytest.MonkeyPatch) -> None:
    ask = Redis.ask

    def asked(self: Redis, *words: Any) -> Flow[Any]:
        answer = yield from ask(self, *("GET" if word == "GETDEL" else word for word in words))
        if words[0] == "GETDEL":
            self.tell("DEL", *words[1:])
        return answer

    patch.setattr(Redis, "ask", asked)


def a_code_is_taken_from_memory_while_redis_is_away(patch: pytest.MonkeyPatch) -> None:
    put, take, mine = Fellows.put_code, Fellows.take_code, dict[tuple[Fellows, str], PairingMeta]()

    def put_code(self: Fellows, code: str, meta: PairingMeta) -> Flow[None]:
        mine[self, code] = meta
        yield from put(self, code, meta)

    def take_code(self: Fellows, code: str) -> Flow[PairingMeta | None]:
        try:
            return (yield from take(self, code))
        except Refused:
            return mine.pop((self, code), None)

    patch.setattr(Fellows, "put_code", put_code)
    patch.setattr(Fellows, "take_code", take_code)


def a_code_has_no_end(patch: pytest.MonkeyPatch) -> None:
    ask = Redis.ask
    patch.setattr(Redis, "ask", lambda self, *words: ask(self, *(words[:3] if words[0] == "SET" else words)))


# --- sessions ---


def what_has_ended_is_not_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FellowSessions, "note_end", lambda self, token_hash: None)


def nobody_looks_into_the_store(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "seek", lambda self, token: None)


def late_news_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FellowSessions, "_is_ahead", lambda self, token_hash, at: False)


def a_lifted_block_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ToldLimiter, "clear", Limiter.clear)


# --- phones and commands ---


def nobody_counts_who_hears(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Node, "_counted", lambda self, answer: None)


def who_loses_redis_goes_on_to_believe(patch: pytest.MonkeyPatch) -> None:
    def on_down(self: Node) -> None:
        self.up_since = inf
        self._timer.cancel()

    patch.setattr(Node, "on_down", on_down)


def a_phone_that_was_forgotten_keeps_its_number(patch: pytest.MonkeyPatch) -> None:
    forget = Fellows._forget

    def forgotten(self: Fellows, number: int | None) -> None:
        before = {node: dict(numbers) for node, numbers in self._numbers.items()}
        forget(self, number)
        self._numbers.update(before)

    patch.setattr(Fellows, "_forget", forgotten)


def each_node_has_a_time_of_its_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Node, "time", property(lambda self: self._engine.now.wall))


def a_place_of_ours_is_never_overtaken(patch: pytest.MonkeyPatch) -> None:
    came = Fellows._came

    def taken(self: Fellows, node: str, entry: Members) -> None:
        before = self.relay.phones.named(entry.text("device_id"))
        if before is None or before.socket < 0:
            came(self, node, entry)

    patch.setattr(Fellows, "_came", taken)


def the_last_word_about_who_is_driven_counts(patch: pytest.MonkeyPatch) -> None:
    def selected(self: Fellows, body: Members) -> None:
        self._active, self._active_since = body.text("device_id"), fellows._since(body)
        self._prefer()

    patch.setattr(Fellows, "_selected", selected)


def who_reaches_nobody_says_there_is_no_phone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "excuse", Commons.excuse)


def nobody_is_asked_what_they_did(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "activity", Commons.activity)


def nobody_is_asked_who_is_online(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "online", Commons.online)


def a_notification_stays_at_its_node(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "notified", Commons.notified)


# --- uploads ---


def an_upload_is_not_told(patch: pytest.MonkeyPatch) -> None:
    tell = Fellows.tell_all
    patch.setattr(Fellows, "tell_all", lambda self, word, body: None if word == "kept" else tell(self, word, body))


def an_upload_is_known_before_others_know_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "told", Commons.told)


def uploads_are_not_in_the_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Uploads, "records", lambda self: [])


def uploads_of_who_is_gone_are_nobodys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Uploads, "orphan", lambda self, node, tell: None)


def who_has_just_joined_hears_nothing_of_orphans(patch: pytest.MonkeyPatch) -> None:
    orphan = Uploads.orphan
    patch.setattr(Uploads, "orphan", lambda self, node, tell: orphan(self, node, tell=False))
