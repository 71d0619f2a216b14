"""The relay's types match the members of the records that the relay writes."""

from __future__ import annotations

import pytest

from svc_proto.machines.paired_session import PUBLIC_FIELDS
from svc_proto.relay.openapi import types
from svc_proto.schema.json_schema import SchemaComponents, inline_schema_of
from tests.relay.harness import RelayHarness


def members(kind: type) -> list[str]:
    properties = inline_schema_of(kind, SchemaComponents())["properties"]
    assert isinstance(properties, dict)
    return sorted(properties)


def test_the_record_of_a_session() -> None:
    assert members(types.DeviceSessionJson) == sorted([*PUBLIC_FIELDS, "is_current", "online", "rights"])


@pytest.mark.parametrize(("path", "kind"), [("/relay/info", types.InfoJson), ("/relay/security", types.SecurityJson)])
def test_reports(path: str, kind: type) -> None:
    assert members(kind) == sorted(RelayHarness().request("GET", path).json)


def test_the_record_of_a_command() -> None:
    book = RelayHarness()
    paired = book.pair()
    book.call("GET", "/ping", token=paired.token)
    paired.phone.reply(paired.phone.command())
    (record,) = book.activity()
    assert members(types.CommandJson) == sorted(record)
