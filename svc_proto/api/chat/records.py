"""Stored records of chats: sessions and messages as values. Times are Unix seconds; ids are opaque text."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field

from svc_proto.agent.interface import Content
from svc_proto.basics.fast_frozen import fast_frozen

__all__ = ["ChatPage", "ChatSession", "Content", "StoredResponse", "Message", "SearchHit", "Usage"]


@fast_frozen(kw_only=True)
class Usage:
    """Numbers of input and output tokens, such as those of one turn, summed over its model calls."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Tokens of input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens, output_tokens=self.output_tokens + other.output_tokens
        )


@fast_frozen(kw_only=True)
class ChatSession:
    """A chat session (wire api 3.1). The store derives the counters, `preview` and `last_active` from the messages."""

    id: str
    started_at: float
    updated_at: float  # time of the last write to the session or its messages
    last_active: float  # time of the last message, or the start: the sort key of lists
    title: str | None = None
    source: str = "api_server"
    model: str | None = None
    system_prompt: str | None = None  # never leaves the server
    parent_id: str | None = None  # the session that it was forked from
    is_child: bool = False  # a run of a sub-agent or a continuation: hidden in lists by default
    ended_at: float | None = None
    end_reason: str | None = None
    pinned: bool = False
    archived: bool = False
    preview: str | None = None  # the first user message that has words: one line, 60 characters and `...` if cut
    message_count: int = 0  # all rows
    tool_call_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@fast_frozen(kw_only=True)
class Message:
    """A row of a chat session (wire api 3.7), of role user, assistant, tool or system."""

    id: str
    session_id: str
    role: str
    content: Content
    timestamp: float
    run_id: str | None = None
    tool_calls: tuple[Mapping[str, object], ...] = ()  # `{id, type: "function", function: {name, arguments}}`
    tool_call_id: str | None = None  # of a tool row: the call that it answers
    tool_name: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    usage: Usage | None = None
    extra: Mapping[str, object] = field(factory=dict)  # further members that go back to the model with the message


@fast_frozen(kw_only=True)
class ChatPage:
    """A page of the list of sessions, and the total number."""

    sessions: tuple[ChatSession, ...]
    total: int


@fast_frozen(kw_only=True)
class SearchHit:
    """A search hit. In `snippet`, `>>>` and `<<<` surround each match."""

    message: Message
    session: ChatSession
    snippet: str
    context: tuple[Message, ...] = ()  # the rows directly before and after the hit


@fast_frozen(kw_only=True)
class StoredResponse:
    """Entry of the response store: a response, with its JSON as `text`, or a conversation, whose `text` is empty."""

    session_id: str
    text: str
