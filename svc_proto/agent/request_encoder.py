"""Encoder of requests to a model; the agent's own tools are encoded when their list is built, not for each request.

With a phone the tools are most of a request, and they are mostly the same for each call.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from svc_proto.basics import strict_json

__all__ = ["EncodedRow", "encode_request"]


class EncodedRow(dict[str, object]):
    """A tool in the chat-completions form, with its JSON text. It is not changed once it is made."""

    __slots__ = ("text",)

    def __init__(self, members: Mapping[str, object]) -> None:
        super().__init__(members)
        self.text = strict_json.dumps(self)


def encode_request(request: Mapping[str, object]) -> bytes:
    """Return the JSON text of a request in UTF-8, whose tools are all `EncodedRow` or all of a client."""
    rest = dict(request)
    tools = cast("Sequence[Mapping[str, object]]", rest.pop("tools", ()))
    if {*map(type, tools)} != {EncodedRow}:
        return strict_json.dumps_bytes(request)
    texts = ",".join([row.text for row in cast("Sequence[EncodedRow]", tools)])
    return f'{strict_json.dumps(rest)[:-1]},"tools":[{texts}]}}'.encode()
