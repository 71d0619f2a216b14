"""The requests that the API makes of the store. Each is one transaction; `Done` means that it outlives a crash."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from svc_proto.api.chat.records import ChatPage, ChatSession, Message, SearchHit, StoredResponse
from svc_proto.commands import StoreRequest

__all__ = [
    "AddMessages",
    "BeginTurn",
    "CreateChat",
    "DeleteChat",
    "DeleteResponse",
    "FindResponse",
    "ForkChat",
    "GetChat",
    "SaveResponse",
    "ListChats",
    "ListMessages",
    "ListTitles",
    "SearchMessages",
    "UpdateChat",
]

NoneType = type(None)


@frozen(kw_only=True)
class CreateChat(StoreRequest[bool]):
    """Insert a session; False, and nothing changed, if its id is taken."""

    answer = bool

    session: ChatSession


@frozen(kw_only=True)
class GetChat(StoreRequest[ChatSession | None]):
    """One session, or None."""

    answer = (ChatSession, NoneType)

    id: str


@frozen(kw_only=True)
class ListChats(StoreRequest[ChatPage]):
    """Sessions: last active first, ties by start then by id, both descending."""

    answer = ChatPage

    limit: int
    offset: int = 0
    source: str | None = None  # only those of this source
    include_children: bool = False
    include_archived: bool = False


@frozen(kw_only=True)
class UpdateChat(StoreRequest[ChatSession | None]):
    """Set fields of a session, named as in `ChatSession`; the row afterwards, or None if there is none.

    Only `title`, `model`, `pinned`, `archived`, `ended_at` and `end_reason` can be set, else it fails as `INVALID`; the
    last two only while `end_reason` is unset: the first reason stays. `updated_at` becomes `now`.
    """

    answer = (ChatSession, NoneType)

    id: str
    changes: Mapping[str, object]
    now: float


@frozen(kw_only=True)
class DeleteChat(StoreRequest[bool]):
    """Delete a session, its messages, and its children that are `is_child`; forks lose their parent. False: no such."""

    answer = bool

    id: str


@frozen(kw_only=True)
class ForkChat(StoreRequest[ChatSession | bool]):
    """Copy all messages of `source` into a new `session`, and end the source with reason `branched` unless it ended.

    Copies get new ids, `<new session id>:<position>` from 1 on, so that a fork needs no entropy. Whatever `session`
    says of them, its parent is the source, and its counters and preview are the source's. The new row; True if there
    is no such source; False if the new id is taken.
    """

    answer = (ChatSession, bool)

    source: str
    session: ChatSession
    now: float


@frozen(kw_only=True)
class AddMessages(StoreRequest[bool]):
    """Append messages to one session in the order given and keep its counters in step; False if it is gone.

    A message whose id is there already is replaced, in its old place, and counted once. `last_active` and `updated_at`
    become the latest `timestamp`, if that is later. Ids need to be unique within their session only.

    With a `fence` that is less than one that was there before it fails as `DENIED`, and nothing has changed.
    """

    answer = bool

    session_id: str
    messages: tuple[Message, ...]
    fence: int | None = None  # by what right a node writes, see `svc_proto.cluster.leases`; None: there are no others


@frozen(kw_only=True)
class BeginTurn(StoreRequest[tuple[Message, ...] | None]):
    """Append what a client says, as `AddMessages` does, and give the newest `history` rows that were there before.

    They come oldest first. `create` is inserted first unless its id is taken. None: there is no such session. A
    `fence` may make it fail as there.
    """

    answer = (tuple, NoneType)

    session_id: str
    messages: tuple[Message, ...]
    history: int
    create: ChatSession | None = None
    fence: int | None = None  # as there


@frozen(kw_only=True)
class ListMessages(StoreRequest[tuple[Message, ...] | None]):
    """Messages of a session, oldest first by insertion; None if there is no such session.

    `offset` counts from the oldest, or with `latest` from the newest: the window still comes oldest first.
    """

    answer = (tuple, NoneType)

    session_id: str
    limit: int | None = None
    offset: int = 0
    latest: bool = False


@frozen(kw_only=True)
class ListTitles(StoreRequest[tuple[str, ...]]):
    """All titles that are `base` or begin with `base` and a space and `#`, to find the next free number."""

    answer = tuple

    base: str


@frozen(kw_only=True)
class SearchMessages(StoreRequest[tuple[SearchHit, ...]]):
    """Messages of any session that hold every word of `query`, best first where the engine ranks, else newest first.

    Case and accents do not matter. A word also finds the longer words that begin with it. Nothing in a query has a
    special meaning; of a long one the first 1,000 characters and 32 words count. Blank: no hits.
    """

    answer = tuple

    query: str
    limit: int
    offset: int = 0


@frozen(kw_only=True)
class SaveResponse(StoreRequest[bool]):
    """Keep what can be gone on with, of a `kind` (`response`, `conversation`), in place of one of the same name.

    Of each kind the `most` that were used last stay, as far as their texts have `size` characters together.
    """

    answer = bool

    kind: str
    name: str
    session_id: str
    text: str
    now: float
    most: int
    size: int


@frozen(kw_only=True)
class FindResponse(StoreRequest[StoredResponse | None]):
    """What was kept by that name, which counts as used now; or None."""

    answer = (StoredResponse, NoneType)

    kind: str
    name: str
    now: float


@frozen(kw_only=True)
class DeleteResponse(StoreRequest[bool]):
    """Forget a response; False if there is none."""

    answer = bool

    name: str
