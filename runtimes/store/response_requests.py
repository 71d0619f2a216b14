"""Requests for stored `/v1/responses` entries in SQL, see `svc_proto.api.cluster.response_store`."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from runtimes.store.chat_tables import CHAT_RESPONSES
from svc_proto.api.chat.records import StoredResponse
from svc_proto.api.chat.store_requests import DeleteResponse, FindResponse, SaveResponse

__all__ = ["RESPONSE_HANDLERS"]

_R = CHAT_RESPONSES.c


def _save(connection: Connection, request: SaveResponse) -> bool:
    mine = (_R.kind == request.kind, _R.name == request.name)
    values = {"session_id": request.session_id, "text": request.text, "used_at": request.now}
    if not connection.execute(update(CHAT_RESPONSES).where(*mine).values(values)).rowcount:
        connection.execute(insert(CHAT_RESPONSES).values(kind=request.kind, name=request.name, **values))
    rows = connection.execute(
        select(_R.name, func.length(_R.text))
        .where(_R.kind == request.kind)
        .order_by(_R.used_at.desc(), _R.name != request.name, _R.name.desc())
    ).all()
    size, over = 0, []
    for place, (name, length) in enumerate(rows):
        size += length
        if place >= request.most or size > request.size:
            over.append(name)
    for name in over:
        connection.execute(delete(CHAT_RESPONSES).where(_R.kind == request.kind, _R.name == name))
    return True


def _find(connection: Connection, request: FindResponse) -> StoredResponse | None:
    mine = (_R.kind == request.kind, _R.name == request.name)
    row = connection.execute(select(_R.session_id, _R.text).where(*mine)).one_or_none()
    if row is None:
        return None
    connection.execute(update(CHAT_RESPONSES).where(*mine, _R.used_at < request.now).values(used_at=request.now))
    return StoredResponse(session_id=row.session_id, text=row.text)


def _delete(connection: Connection, request: DeleteResponse) -> bool:
    mine = (_R.kind == "response", _R.name == request.name)
    return bool(connection.execute(delete(CHAT_RESPONSES).where(*mine)).rowcount)


RESPONSE_HANDLERS: Mapping[type, Callable[[Connection, Any], object]] = {
    SaveResponse: _save,
    FindResponse: _find,
    DeleteResponse: _delete,
}
