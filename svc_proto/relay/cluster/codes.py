"""Pairing codes of a service with several nodes: keys of Redis, of which one node gets the value.

An invite may hold a key of the pairing's own, which is good before its code was shown to anybody (`PairingApiKeys`). So
who makes such a code tells all, and so does who uses it up: a node knows the codes of all living invites, by which it
takes their keys, and Redis alone says who may pair with them. What a node has heard of while it may have missed
something counts as far as Redis still has it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.cluster.node import cluster_unavailable_error
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.machines.pairing_codes import CODE_LIFETIME, MAX_CODES, PairingMeta, normalize_code, parse_meta
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.cluster.node import Node
    from svc_proto.cluster.redis_client import Reply
    from svc_proto.relay.service import Relay

__all__ = ["ClusterCodes"]


class ClusterCodes:
    """See the module. Codes whose invites hold a key are in `Relay.codes` as well, as those of one process are."""

    def __init__(self, relay: Relay, node: Node) -> None:
        self._relay = relay
        self._node = node
        self._invites: ExpiringMap[str, tuple[str, float]] = ExpiringMap(MAX_CODES)  # hash of the key, and since when

    def register(self, code: str, meta: PairingMeta) -> Flow[None]:
        """In place of one that reads the same. `Refused` 400 or 503. Others hear of a key before anybody can pair."""
        code = normalize_code(code)
        text = strict_json.dumps({name: value for name, value in _described(meta).items() if value is not None})
        if meta.key_hash or code in self._invites:
            self.key_issued(code, meta.key_hash, 0.0)
            self._node.broadcast("invited", {"code": code, "key_hash": meta.key_hash})
        if isinstance(
            (yield from self._node.redis.execute("SET", self._key(code), text, "EX", int(CODE_LIFETIME))), Failure
        ):
            raise cluster_unavailable_error("a pairing code")

    def consume(self, code: str) -> Flow[PairingMeta | None]:
        """Nobody gets what somebody else has got. A lost answer leaves a code that is used up."""
        try:
            code = normalize_code(code)
        except Refused:
            return None
        text = yield from self._node.redis.execute("GETDEL", self._key(code))
        if isinstance(text, Failure):
            raise cluster_unavailable_error("a code")
        meta = _read(text) if isinstance(text, bytes) else None
        if meta is not None and meta.key_hash:
            self.key_issued(code, "", 0.0)
            self._node.broadcast("invited", {"code": code})
        return meta

    def key_issued(self, code: str, key_hash: str, age: float) -> None:
        """An invite with this code holds the key of this hash; an empty one: there is none any more."""
        try:
            code = normalize_code(code)
        except Refused:
            return
        now = self._relay.engine.now
        since = now.mono - age
        self._relay.codes.consume(code, now)
        self._invites.discard(code)
        self._invites.purge(now.mono)
        if key_hash:
            self._invites.put(code, (key_hash, since), since + CODE_LIFETIME)
            self._relay.codes.register(code, Moment(since, now.wall), PairingMeta(key_hash=key_hash))

    def state(self) -> dict[str, object]:
        """What others have to know."""
        now = self._relay.engine.now.mono
        self._invites.purge(now)
        known = self._invites.items()
        invites = [{"code": code, "key_hash": key, "age": now - since} for code, (key, since) in known]
        return {"invites": invites} if invites else {}

    def apply_state(self, rows: list[JsonObject]) -> None:
        """What another node knows, as far as it is still so."""
        for row in rows:
            self._compare(row.text("code"), row.text("key_hash"), row.number("age") or 0.0)

    def resync(self) -> None:
        """The same of what we know."""
        now = self._relay.engine.now.mono
        for code, (key_hash, since) in self._invites.items():
            self._compare(code, key_hash, now - since)

    def _compare(self, code: str, key_hash: str, age: float) -> None:
        self._node.redis.send("GET", self._key(code), take=partial(self._compared, code, key_hash, age))

    def _compared(self, code: str, key_hash: str, age: float, answer: Reply) -> None:
        if not isinstance(answer, Failure):  # else we missed something again
            there = isinstance(answer, bytes) and JsonObject.parse_or_empty(answer).text("key_hash") == key_hash
            self.key_issued(code, key_hash if there else "", age)

    def _key(self, code: str) -> str:
        return self._node.key("code", code)


def _described(meta: PairingMeta) -> dict[str, object]:
    """As a request would say it."""
    grants = meta.grants
    return {
        "ttl_seconds": meta.ttl_seconds,
        "grants": None if grants is None else {name: False if span is None else span for name, span in grants.items()},
        "transport_hint": meta.transport_hint,
        "endpoints": meta.endpoints,
        "carries_key": meta.carries_key,
        "own_key": meta.own_key,
        "key_hash": meta.key_hash,
    }


def _read(text: bytes) -> PairingMeta:
    members = JsonObject.parse_or_empty(text)
    return evolve(parse_meta(members, with_endpoints=True), key_hash=members.text("key_hash"))
