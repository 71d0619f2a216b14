"""Requests for the pictures of chats in SQL, and the copying and deletion of pictures with sessions and messages."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, literal, select

from runtimes.store.chat_tables import CHAT_PICTURES, CHAT_SESSIONS
from svc_proto.agent.interface import StoredPicture
from svc_proto.api.chat.store_requests import FindPicture, SavePicture

__all__ = ["PICTURE_HANDLERS", "copy_pictures", "delete_named_pictures"]

_P = CHAT_PICTURES.c


def copy_pictures(connection: Connection, source: str, target: str) -> None:
    """Copy all pictures of a session to another one."""
    columns = [column.name for column in CHAT_PICTURES.c]
    copied = [literal(target) if name == "session_id" else CHAT_PICTURES.c[name] for name in columns]
    rows = select(*copied).where(_P.session_id == source)
    connection.execute(insert(CHAT_PICTURES).from_select(columns, rows))


def delete_named_pictures(connection: Connection, session_id: str, texts: Sequence[str]) -> None:
    """Delete the pictures of a session whose tokens one of these texts contains."""
    tokens = connection.execute(select(_P.token).where(_P.session_id == session_id)).scalars().all()
    named = [token for token in tokens if any(token in text for text in texts)] if tokens else []
    if named:
        connection.execute(delete(CHAT_PICTURES).where(_P.session_id == session_id, _P.token.in_(named)))


def _save(connection: Connection, request: SavePicture) -> bool:
    session_id, picture = request.session_id, request.picture
    locked = select(CHAT_SESSIONS.c.id).where(CHAT_SESSIONS.c.id == session_id).with_for_update()
    if connection.execute(locked).one_or_none() is None:
        return False
    connection.execute(delete(CHAT_PICTURES).where(_P.session_id == session_id, _P.token == picture.token))
    values = {"kind": picture.kind, "size": len(picture.data), "stored_at": request.now, "data": picture.data}
    connection.execute(insert(CHAT_PICTURES).values(session_id=session_id, token=picture.token, **values))
    rows = connection.execute(
        select(_P.session_id, _P.token, _P.size).order_by(_P.stored_at.desc(), _P.token != picture.token, _P.token)
    ).all()
    counts, size = Counter[str](), 0
    for row in rows:
        counts[row.session_id] += 1
        size += row.size
        if counts[row.session_id] > request.most or size > request.size:
            size -= row.size
            connection.execute(delete(CHAT_PICTURES).where(_P.session_id == row.session_id, _P.token == row.token))
    return True


def _find(connection: Connection, request: FindPicture) -> StoredPicture | None:
    mine = (_P.session_id == request.session_id, _P.token == request.token)
    row = connection.execute(select(_P.kind, _P.data).where(*mine)).one_or_none()
    return None if row is None else StoredPicture(token=request.token, kind=row.kind, data=row.data)


PICTURE_HANDLERS: Mapping[type, Callable[[Connection, Any], object]] = {SavePicture: _save, FindPicture: _find}
