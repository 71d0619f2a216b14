"""Requests of the API to the store. Each is one transaction; after `Done` the change survives a crash."""

from collections.abc import Mapping

from attrs import field

from svc_proto.agent.interface import StoredPicture
from svc_proto.api.chat.records import ChatPage, ChatSession, Message, SearchHit, StoredResponse
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.commands import StoreRequest

__all__ = [
    "AddMessages",
    "BeginTurn",
    "CreateChat",
    "DeleteChat",
    "DeleteResponse",
    "FindPicture",
    "FindResponse",
    "ForkChat",
    "GetChat",
    "SavePicture",
    "SaveResponse",
    "ListChats",
    "ListMessages",
    "ListTitles",
    "SearchMessages",
    "TruncateMessages",
    "UpdateChat",
]

NoneType = type(None)


@fast_frozen(kw_only=True)
class CreateChat(StoreRequest[bool]):
    """Insert a session; False, without a change, if its id exists."""

    answer = bool

    session: ChatSession


@fast_frozen(kw_only=True)
class GetChat(StoreRequest[ChatSession | None]):
    """Get one session; None if it does not exist."""

    answer = (ChatSession, NoneType)

    id: str


@fast_frozen(kw_only=True)
class ListChats(StoreRequest[ChatPage]):
    """List sessions: last active first, ties by start then by id, both descending."""

    answer = ChatPage

    limit: int
    offset: int = 0
    source: str | None = None  # only those of this source
    include_children: bool = False
    include_archived: bool = False
    only_archived: bool = False
    min_messages: int = 0  # sessions with fewer messages are left out


@fast_frozen(kw_only=True)
class UpdateChat(StoreRequest[ChatSession | None]):
    """Set fields of a session, named as in `ChatSession`; the row afterwards, or None if it does not exist.

    Only `title`, `model`, `pinned`, `archived`, `ended_at` and `end_reason` can be set, else it fails as `INVALID`; the
    last two only while `end_reason` is unset: the first reason stays. `updated_at` becomes `now`.
    """

    answer = (ChatSession, NoneType)

    id: str
    changes: Mapping[str, object]
    now: float


@fast_frozen(kw_only=True)
class DeleteChat(StoreRequest[bool]):
    """Delete a session with its messages, and its `is_child` children in the same way; False if there is none.

    Forks of a deleted session stay, without a parent.
    """

    answer = bool

    id: str


@fast_frozen(kw_only=True)
class ForkChat(StoreRequest[ChatSession | bool]):
    """Copy all messages of `source` into a new `session`, and end the source with reason `branched` unless it ended.

    Copies get new ids, `<new session id>:<position>` from 1 on, so that a fork needs no entropy. Parent, counters and
    preview of `session` are replaced: its parent is the source, and the others are the source's. `last_active` is the
    later one of both. Pictures are copied too. The answer is the new row; True if there is no such source; False if the
    new id exists.
    """

    answer = (ChatSession, bool)

    source: str
    session: ChatSession
    now: float


@fast_frozen(kw_only=True)
class AddMessages(StoreRequest[bool]):
    """Append messages to one session in the order given and update its counters; False if it does not exist.

    A message with an existing id replaces the old one in its place and is counted once. `last_active` and `updated_at`
    become the latest `timestamp`, if that is later. Ids need to be unique within their session only.

    With a `fence` below the highest earlier one the request fails as `DENIED`, without a change.
    """

    answer = bool

    session_id: str
    messages: tuple[Message, ...]
    fence: int | None = None  # fencing token of the writing node, see `svc_proto.cluster.leases`; None: a single node


@fast_frozen(kw_only=True)
class TruncateMessages(StoreRequest[bool]):
    """Delete all messages of a session but the oldest `keep`, and correct its counters and preview.

    Pictures whose tokens the deleted messages name are deleted too. False if there is no such session.
    """

    answer = bool

    session_id: str
    keep: int
    now: float


@fast_frozen(kw_only=True)
class BeginTurn(StoreRequest[tuple[Message, ...] | None]):
    """Append a client's messages, as `AddMessages` does, and return the newest `history` rows before them.

    Rows come oldest first. `create` is inserted first unless its id exists. None: there is no such session. A `fence`
    may make the request fail, as for `AddMessages`.
    """

    answer = (tuple, NoneType)

    session_id: str
    messages: tuple[Message, ...]
    history: int
    create: ChatSession | None = None
    fence: int | None = None  # as for `AddMessages`


@fast_frozen(kw_only=True)
class ListMessages(StoreRequest[tuple[Message, ...] | None]):
    """List messages of a session, oldest first by insertion; None if there is no such session.

    `offset` counts from the oldest, or with `latest` from the newest: the window still comes oldest first.
    """

    answer = (tuple, NoneType)

    session_id: str
    limit: int | None = None
    offset: int = 0
    latest: bool = False


@fast_frozen(kw_only=True)
class ListTitles(StoreRequest[tuple[str, ...]]):
    """List all titles that are `base` or begin with `base` and ` #`, to find the next free number."""

    answer = tuple

    base: str


@fast_frozen(kw_only=True)
class SearchMessages(StoreRequest[tuple[SearchHit, ...]]):
    """Search messages of all sessions for every word of `query`, best first where the engine ranks, else newest first.

    Case and accents do not matter. A word also finds the longer words that begin with it; without an index of words in
    the database, also those that contain it. Nothing in a query has a special meaning; of a long one the first 1,000
    characters and 32 words count. Blank: no hits.
    """

    answer = tuple

    query: str
    limit: int
    offset: int = 0


@fast_frozen(kw_only=True)
class SavePicture(StoreRequest[bool]):
    """Store a picture of a session; False if there is no such session. One with the same token is replaced.

    Of each session the `most` newest pictures stay. A picture that does not fit into `size` bytes together with the
    newer ones of all sessions is deleted.
    A picture is deleted with its session, and when `TruncateMessages` deletes a message that names its token; a fork
    gets copies.
    """

    answer = bool

    session_id: str
    picture: StoredPicture
    now: float
    most: int
    size: int


@fast_frozen(kw_only=True)
class FindPicture(StoreRequest[StoredPicture | None]):
    """Find a picture of a session by its token, or None."""

    answer = (StoredPicture, NoneType)

    session_id: str
    token: str = field(repr=False)


@fast_frozen(kw_only=True)
class SaveResponse(StoreRequest[bool]):
    """Store a response or a conversation by `kind` (`response`, `conversation`); one of the same name is replaced.

    Of each kind the entries used last stay: at most `most`, and at most `size` characters of text together.
    """

    answer = bool

    kind: str
    name: str
    session_id: str
    text: str
    now: float
    most: int
    size: int


@fast_frozen(kw_only=True)
class FindResponse(StoreRequest[StoredResponse | None]):
    """Find an entry by kind and name, or None; count the access as a use."""

    answer = (StoredResponse, NoneType)

    kind: str
    name: str
    now: float


@fast_frozen(kw_only=True)
class DeleteResponse(StoreRequest[bool]):
    """Delete a response; False if there is none."""

    answer = bool

    name: str
