"""Pairing codes of a clustered relay: Redis keys, each consumed by one node.

An invite may hold a pairing API key, which is valid before its code is shown to a client (`PairingApiKeys`). So a node
broadcasts when it registers or consumes the code of such an invite, and each node stores these codes and accepts their
keys. The metadata in Redis is signed, so that only a node can create a code.
"""

from functools import partial
from typing import Protocol

from attrs import evolve

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.cluster.node import Node, cluster_unavailable_error
from svc_proto.cluster.redis_client import Reply
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.machines.pairing_codes import (
    CODE_LIFETIME,
    MAX_CODES,
    PairingCodes,
    PairingMeta,
    normalize_code,
    parse_meta,
)
from svc_proto.schema.json_object import JsonObject

__all__ = ["ClusterCodes"]


class CodesPort(Protocol):
    """Members of the relay that the pairing codes of a cluster use."""

    engine: Engine
    codes: PairingCodes


class ClusterCodes:
    """Pairing codes in Redis. Codes whose invites hold a pairing API key are in `Relay.codes` as well."""

    def __init__(self, relay: CodesPort, node: Node) -> None:
        self._relay = relay
        self._node = node
        # Hash of the key and its time, by code.
        self._invites: ExpiringMap[str, tuple[str, float]] = ExpiringMap(MAX_CODES)

    def register(self, code: str, meta: PairingMeta) -> Flow[None]:
        """Register a code in place of an equal one. Raise `Refused` 400 for an invalid code, 503 if Redis fails.

        If the invite holds a pairing API key, the key's hash is sent to the other nodes before the code is in Redis.
        """
        code = normalize_code(code)
        text = strict_json.dumps({name: value for name, value in _described(meta).items() if value is not None})
        if meta.key_hash or code in self._invites:
            self.key_issued(code, meta.key_hash, 0.0)
            self._node.broadcast("invited", {"code": code, "key_hash": meta.key_hash})
        key = self._key(code)
        value = self._node.sign(key, text)
        if isinstance((yield from self._node.redis.execute("SET", key, value, "EX", int(CODE_LIFETIME))), Failure):
            raise cluster_unavailable_error("a pairing code")

    def consume(self, code: str) -> Flow[PairingMeta | None]:
        """Consume a code and return its metadata; None if it is invalid, unknown or used. Raise `Refused` 503.

        Only one caller gets the metadata. A lost reply leaves the code consumed.
        """
        try:
            code = normalize_code(code)
        except Refused:
            return None
        value = yield from self._node.redis.execute("GETDEL", self._key(code))
        if isinstance(value, Failure):
            raise cluster_unavailable_error("a code")
        meta = self._read(code, value)
        if meta is not None and meta.key_hash:
            self.key_issued(code, "", 0.0)
            self._node.broadcast("invited", {"code": code})
        return meta

    def key_issued(self, code: str, key_hash: str, age: float) -> None:
        """Store the API key's hash of the invite with this code, issued `age` s ago; an empty hash removes the code.

        An invalid code is ignored.
        """
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
        """Return the live invites with pairing API keys as `{"invites": [...]}`, for other nodes; `{}` without any."""
        now = self._relay.engine.now.mono
        self._invites.purge(now)
        known = self._invites.items()
        invites = [{"code": code, "key_hash": key, "age": now - since} for code, (key, since) in known]
        return {"invites": invites} if invites else {}

    def apply_state(self, rows: list[JsonObject]) -> None:
        """Query Redis for another node's invites with pairing API keys; add those it confirms, and remove the others.

        Without an answer of Redis nothing changes.
        """
        for row in rows:
            self._compare(row.text("code"), row.text("key_hash"), row.number("age") or 0.0)

    def resync(self) -> None:
        """Query Redis for this node's codes with pairing API keys; remove those that are missing or changed there."""
        now = self._relay.engine.now.mono
        for code, (key_hash, since) in self._invites.items():
            self._compare(code, key_hash, now - since)

    def _compare(self, code: str, key_hash: str, age: float) -> None:
        self._node.redis.send("GET", self._key(code), take=partial(self._compared, code, key_hash, age))

    def _compared(self, code: str, key_hash: str, age: float, answer: Reply) -> None:
        if not isinstance(answer, Failure):  # else a message was missed again
            meta = self._read(code, answer)
            there = meta is not None and meta.key_hash == key_hash
            self.key_issued(code, key_hash if there else "", age)

    def _read(self, code: str, value: Reply) -> PairingMeta | None:
        """Return the metadata in the code's value of Redis; None if there is no value, or if no node has signed it."""
        key = self._key(code)
        text = self._node.verify(key, value) if isinstance(value, bytes) else None
        if text is None:
            return None
        members = JsonObject.parse_or_empty(text)
        return evolve(parse_meta(members, with_endpoints=True), key_hash=members.text("key_hash"))

    def _key(self, code: str) -> str:
        return self._node.key("code", code)


def _described(meta: PairingMeta) -> dict[str, object]:
    """Return the metadata as an object for `ClusterCodes._read`: members of a pairing request, and `key_hash`."""
    grants = meta.grants
    return {
        "ttl_seconds": meta.ttl_seconds,
        "grants": None if grants is None else {name: False if span is None else span for name, span in grants.items()},
        "transport_hint": meta.transport_hint,
        "endpoints": meta.endpoints,
        "carries_key": meta.carries_key,
        "own_key": meta.own_key,
        "key_hash": meta.key_hash,
        **({"keep_earlier": True} if meta.keep_earlier else {}),
        "audience": meta.audience,
    }
