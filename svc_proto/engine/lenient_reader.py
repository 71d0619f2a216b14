"""Lenient reader of a peer's JSON, for texts that grant no access.

Deviations from JSON are counted by kind of peer and of deviation, and the first of each pair is logged.
"""

from svc_proto.basics import lenient_json
from svc_proto.commands import Level
from svc_proto.engine.core import Engine

__all__ = ["LenientReader"]


class LenientReader:
    """Reader of the texts of one kind of peer: `source` is its name in the log and the metrics."""

    def __init__(self, engine: Engine, source: str) -> None:
        self._engine = engine
        self._source = source

    def read(self, data: bytes | str, *, max_bytes: int | None = None) -> object:
        """Return the value of a JSON text, with deviations accepted. Raise `JsonError` if it cannot be read."""
        value, deviations = lenient_json.loads(data, max_bytes=max_bytes)
        for deviation in deviations:
            count = self._engine.counts.json_deviations
            key = self._source, deviation.value
            count[key] += 1
            if count[key] == 1:
                self._engine.log(Level.WARNING, "a peer deviates from JSON", source=self._source, how=deviation.value)
        return value
