"""Bugs to plant in the cluster: slips, and mistakes of design that somebody could have made. A storm finds each."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

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
from tests.fuzz.plant import Bed, Patch, Real

__all__ = ["CLUSTER"]

CLUSTER = Bed[str]()


# --- codes ---


@CLUSTER.around(0, Redis, "ask", "has paired")
def a_code_is_read_and_not_taken(ask: Real[Flow[object]], self: Redis, *arguments: Any) -> Flow[object]:
    return ask(self, *("GET" if word == "GETDEL" else word for word in arguments))


@CLUSTER.around(0, Redis, "ask", "has paired")
def a_code_is_read_and_deleted_behind(ask: Real[Flow[Any]], self: Redis, *words: Any) -> Flow[Any]:
    answer = yield from ask(self, *("GET" if word == "GETDEL" else word for word in words))
    if words[0] == "GETDEL":
        self.tell("DEL", *words[1:])
    return answer


@CLUSTER.plant(6, "has paired")
def a_code_is_taken_from_memory_while_redis_is_away(patch: Patch) -> None:
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


@CLUSTER.around(0, Redis, "ask", "for ever")
def a_code_has_no_end(ask: Real[Flow[object]], self: Redis, *words: Any) -> Flow[object]:
    return ask(self, *(words[:3] if words[0] == "SET" else words))


# --- sessions ---


@CLUSTER.instead(53, Fellows, "settle", "revoked")
def a_revocation_that_nobody_hears_is_a_success(self: Fellows) -> Flow[None]:
    yield from ()


# --- phones and commands ---


@CLUSTER.around(0, Node, "tell", "performed 2 times")
def a_command_is_told_twice(tell: Real[bool], self: Node, node: str, word: str, body: Mapping[str, object]) -> bool:
    if word == "command":
        tell(self, node, word, body)
    return tell(self, node, word, body)


@CLUSTER.around(36, Fellows, "_came", "come elsewhere")
def the_last_word_counts_and_not_the_later_place(came: Real[None], self: Fellows, node: str, entry: Members) -> None:
    came(self, node, Members({**entry, "since": 1e18}))


@CLUSTER.instead(11, Fellows, "phone_left", "different phones")
def a_phone_that_leaves_is_not_told(self: Fellows, number: int) -> None:
    self._forget(number)


@CLUSTER.instead(4, Node, "on_down", "reaches nobody")
def who_loses_redis_goes_on_to_believe(self: Node) -> None:
    self.up_since = inf
    self._timer.cancel()


@CLUSTER.around(0, Fellows, "_forget", "has left")
def a_phone_that_was_forgotten_keeps_its_number(forget: Real[None], self: Fellows, number: int | None) -> None:
    before = {node: dict(numbers) for node, numbers in self._numbers.items()}
    forget(self, number)
    self._numbers.update(before)


@CLUSTER.around(1, Fellows, "_came", "come elsewhere")
def a_place_of_ours_is_never_overtaken(came: Real[None], self: Fellows, node: str, entry: Members) -> None:
    before = self.relay.phones.named(entry.text("device_id"))
    if before is None or before.socket < 0:
        came(self, node, entry)


@CLUSTER.instead(3, Fellows, "_selected", "different phones")
def the_last_word_about_who_is_driven_counts(self: Fellows, body: Members) -> None:
    self._active, self._active_since = body.text("device_id"), fellows._since(body)
    self._prefer()


# --- uploads ---


@CLUSTER.around(9, Fellows, "tell_all", "has nothing")
def an_upload_is_not_told(tell: Real[None], self: Fellows, word: str, body: Mapping[str, object]) -> None:
    if word != "kept":
        tell(self, word, body)


@CLUSTER.around(1354, Uploads, "orphan", "which is there")
def who_has_just_joined_hears_nothing_of_orphans(orphan: Real[None], self: Uploads, node: str, *, tell: bool) -> None:
    orphan(self, node, tell=False)


CLUSTER.put(0, "an_end_is_not_told", Fellows, "session_ended", lambda self, session: None, "revoked")
CLUSTER.put(0, "failures_are_counted_by_each_node_alone", ToldLimiter, "failure", Limiter.failure, "has guessed")
CLUSTER.put(16, "what_was_missed_is_not_read", Fellows, "missed", lambda self: None, "may not any more")
CLUSTER.put(1, "a_change_is_not_told", Fellows, "session_saved", lambda self, session: None, "may not any more")
CLUSTER.put(0, "what_has_ended_is_not_kept", FellowSessions, "note_end", lambda self, token_hash: None, "revoked")
CLUSTER.put(2, "nobody_looks_into_the_store", Fellows, "seek", lambda self, token: None, "is not known")
CLUSTER.put(2, "late_news_count", FellowSessions, "_is_ahead", lambda self, token_hash, at: False, "may not any more")
CLUSTER.put(0, "a_lifted_block_is_not_told", ToldLimiter, "clear", Limiter.clear, "is shut out")
CLUSTER.put(4, "phones_of_a_node_that_is_gone_stay", Fellows, "lost", lambda self, node: None, "reaches nobody")
CLUSTER.put(2, "who_is_selected_is_not_told", Fellows, "phone_selected", lambda self: None, "different phones")
CLUSTER.put(9, "nobody_counts_who_hears", Node, "_counted", lambda self, answer: None, "which have gone")
CLUSTER.put(
    1, "each_node_has_a_time_of_its_own", Node, "time", property(lambda self: self._engine.now.wall), "come elsewhere"
)
CLUSTER.put(1, "who_reaches_nobody_says_there_is_no_phone", Fellows, "excuse", Commons.excuse, "reaches nobody")
CLUSTER.put(0, "nobody_is_asked_what_they_did", Fellows, "activity", Commons.activity, "different commands")
CLUSTER.put(2, "nobody_is_asked_who_is_online", Fellows, "online", Commons.online, "are online")
CLUSTER.put(2, "a_notification_stays_at_its_node", Fellows, "notified", Commons.notified, "has not heard")
CLUSTER.put(4, "nobody_asks_the_others_for_a_file", Fellows, "elsewhere", Commons.elsewhere, "which is there")
CLUSTER.put(37, "an_upload_is_known_before_others_know_it", Fellows, "told", Commons.told, "which is there")
CLUSTER.put(34, "uploads_are_not_in_the_state", Uploads, "records", lambda self: [], "has nothing")
CLUSTER.put(
    5, "uploads_of_who_is_gone_are_nobodys", Uploads, "orphan", lambda self, node, tell: None, "nobody deletes it"
)
