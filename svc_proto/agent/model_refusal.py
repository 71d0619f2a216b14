"""Parser of the error reports of model servers: which parts of a request were refused.

A report is JSON, a text, or HTML. Its text is searched for known words in several languages, so a finding may be wrong.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum

from attrs import frozen

from svc_proto.agent import refusal_words as words
from svc_proto.schema.json_object import JsonObject, as_array, as_object, as_text, error_text, lenient_json_value

__all__ = ["OUTPUT_MEMBERS", "ModelRefusal", "Problem", "parse_refusal"]

OUTPUT_MEMBERS = ("max_tokens", "max_completion_tokens")
MAX_REPORT = 64 * 1024  # characters of a report that are searched
MAX_TEXTS = 200  # texts of a report that are searched
MAX_DEPTH = 12  # levels of a report that are searched
# Statuses with which no server means a part of the request.
OTHER_STATUSES = (401, 402, 407, 408, 425, 429)
MIN_CONTEXT = 256  # tokens; a smaller number in a report is no size of a context


class Problem(Enum):
    """Part or property of a request that a server refuses."""

    CONTEXT = "context"  # the request is longer than the model's context
    OUTPUT_LIMIT = "output limit"  # `max_tokens` is larger than the model's limit
    TOOL_COUNT = "tool count"
    TOOL_IDS = "tool ids"  # the form of the ids of calls
    REASONING_MISSING = "reasoning missing"
    EXTRA_MEMBERS = "extra members"  # members of messages that are unknown to the server
    ROLE_ORDER = "role order"  # users and assistants must alternate
    SYSTEM_ROLE = "system role"
    IMAGES = "images"
    TOOLS = "tools"
    PARALLEL_TOOL_CALLS = "parallel_tool_calls"
    STREAM_OPTIONS = "stream_options"
    STREAM = "stream"
    MAX_TOKENS = "max_tokens"  # the server wants `max_completion_tokens`
    MAX_COMPLETION_TOKENS = "max_completion_tokens"  # the reverse
    OPTION = "option"  # another member; `ModelRefusal.member` is its name


@frozen(kw_only=True)
class ModelRefusal:
    """Parsed refusal of a request. `problems` are the refused parts that its report may mean, the likeliest first."""

    status: int | None
    text: str = ""  # the server's words, for people
    problems: tuple[Problem, ...] = ()
    member: str = ""  # the member of the request that the server names
    limit: int | None = None  # of tokens or tools, if the server names it
    size: int | None = None  # tokens of the request, if the server names it
    words: str = ""  # all words of the report


_CONTEXT_NAMES = ("n_ctx", "max_model_len", "context_length")
_SIZE_NAMES = ("n_prompt_tokens", "prompt_tokens")
_PLAIN_WORDS = ("model", "messages", "stream", "tools")
_HTML_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_HTML_TAG = re.compile(r"<[^>]*>")


def parse_refusal(status: int | None, report: str | object, request: Mapping[str, object]) -> ModelRefusal:
    """Parse an error report of a model's server: find the parts of the request that it refuses, and limits it names.

    `status` is None for an error within a stream. `report` is the text of a body or a parsed value. A status in
    `OTHER_STATUSES` has other causes, so its report is only read for its text.
    """
    value = report
    text = as_text(report)
    if text is not None:
        value = lenient_json_value(text[:MAX_REPORT], text[:MAX_REPORT])
    said = _error_text(value)
    report_words = " ".join(dict.fromkeys(_texts(value, MAX_DEPTH)))[:MAX_REPORT]
    if status in OTHER_STATUSES:
        return ModelRefusal(status=status, text=said, words=report_words)
    read = _Report(words=report_words, member=_named_member(value, request), status=status, request=request)
    problems = tuple(dict.fromkeys(problem for problem, applies in _RULES if applies(read)))
    limit = size = None
    if Problem.CONTEXT in problems:
        limit = _named_number(value, *_CONTEXT_NAMES) or _first_number(words.CONTEXT_LIMITS, report_words)
        size = _named_number(value, *_SIZE_NAMES) or _first_number(words.CONTEXT_SIZES, report_words, limit)
        limit = limit if limit is not None and limit >= MIN_CONTEXT else None
    elif Problem.TOOL_COUNT in problems:
        limit = _first_number(words.TOOL_COUNTS, report_words)
    elif Problem.OUTPUT_LIMIT in problems:
        limit = _first_number(words.CONTEXT_LIMITS, report_words, _asked_tokens(request))
    return ModelRefusal(
        status=status, text=said, problems=problems, member=read.member, limit=limit, size=size, words=report_words
    )


# --- helpers ------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class _Report:
    """Parts of an error report of a model's server, with the request that the report is about."""

    words: str
    member: str
    status: int | None
    request: Mapping[str, object]

    def has(self, pattern: re.Pattern[str]) -> bool:
        return pattern.search(self.words) is not None

    def names(self, member: str) -> bool:
        """Report whether the request has this member and the report names it."""
        return member in self.request and (member == self.member or member in self.words)

    @property
    def is_unknown(self) -> bool:
        """Report whether the error is about an unknown or unaccepted part of the request, not about a missing one."""
        return self.has(words.UNKNOWN) and not self.has(words.MISSING)

    @property
    def may_mean_tools(self) -> bool:
        """Report whether the server may refuse the tools of the request.

        An error in a stream or of status 500 and above must also report something as unknown or missing.
        """
        is_internal = self.status is None or self.status >= 500
        refuses = self.has(words.UNKNOWN) or self.has(words.MISSING)
        return "tools" in self.request and self.has(words.TOOLS) and (refuses or not is_internal)


# The problems in the order of their likelihood, with their signs.
_RULES: tuple[tuple[Problem, Callable[[_Report], bool]], ...] = (
    (Problem.MAX_TOKENS, lambda report: "max_completion_tokens" in report.words and report.names("max_tokens")),
    (
        Problem.OUTPUT_LIMIT,
        lambda report: (
            report.has(words.OUTPUT_TOO_LARGE)
            and any(name in report.request for name in OUTPUT_MEMBERS)
            and not any(word in report.words.lower() for word in ("context", "`inputs`"))
        ),
    ),
    (Problem.TOOL_IDS, lambda report: report.has(words.TOOL_IDS)),
    (Problem.TOOL_COUNT, lambda report: "tools" in report.request and report.has(words.TOOL_COUNT)),
    (Problem.CONTEXT, lambda report: report.status == 413 or report.has(words.CONTEXT)),
    (Problem.EXTRA_MEMBERS, lambda report: report.has(words.REASONING) and report.is_unknown),
    (Problem.REASONING_MISSING, lambda report: report.has(words.REASONING) and not report.is_unknown),
    (Problem.EXTRA_MEMBERS, lambda report: report.has(words.REASONING)),
    (Problem.ROLE_ORDER, lambda report: report.has(words.ROLE_ORDER)),
    (Problem.SYSTEM_ROLE, lambda report: report.has(words.SYSTEM_ROLE)),
    (Problem.PARALLEL_TOOL_CALLS, lambda report: report.names("parallel_tool_calls")),
    (Problem.STREAM_OPTIONS, lambda report: report.names("stream_options")),
    (Problem.TOOLS, lambda report: report.member in ("tools", "tool_choice")),
    (Problem.MAX_TOKENS, lambda report: report.names("max_tokens")),
    (
        Problem.MAX_COMPLETION_TOKENS,
        lambda report: report.names("max_completion_tokens") and not report.has(words.NEW_OUTPUT_NAME),
    ),
    (Problem.OPTION, lambda report: report.member in report.request),
    (
        Problem.EXTRA_MEMBERS,
        lambda report: "messages" in report.member and report.is_unknown and not report.member.endswith("content"),
    ),
    (Problem.IMAGES, lambda report: report.has(words.IMAGES)),
    (Problem.TOOLS, lambda report: report.may_mean_tools),
    (Problem.STREAM, lambda report: report.request.get("stream") is True and report.has(words.STREAM)),
)


def _named_member(value: object, request: Mapping[str, object]) -> str:
    """Return the member that the error names by `param` or `loc`, else the request's member named in its text.

    Returns an empty text if there is none. A place within `messages`, or outside of the request, is returned whole.
    """
    for members in _objects(value, MAX_DEPTH):
        param = members.text("param")
        if param:
            root = re.split(r"[.\[]", param)[0]
            return root if root in request and root != "messages" else param
        loc = members.array_or_none("loc")
        if loc:
            path = [str(part) for part in loc if part not in ("body", "query")]
            if path:
                return path[0] if path[0] in request and path[0] != "messages" else ".".join(path)
    text = " ".join(_texts(value, MAX_DEPTH))
    return next((name for name in request if name not in _PLAIN_WORDS and _is_named(name, text)), "")


def _is_named(name: str, text: str) -> bool:
    """Report whether a text has the name of a member; a name without an underscore must be in quotes."""
    pattern = rf"(?<![\w.]){re.escape(name)}(?!\w)" if "_" in name else rf"['\"`]{re.escape(name)}['\"`]"
    return re.search(pattern, text) is not None


def _objects(value: object, depth: int) -> Iterator[JsonObject]:
    if not depth:
        return
    if as_object(value) is not None:
        members = JsonObject.of(value)
        yield members
        for each in members.values():
            yield from _objects(each, depth - 1)
    for each in (as_array(value) or ())[:MAX_TEXTS]:
        yield from _objects(each, depth - 1)


def _texts(value: object, depth: int) -> Iterator[str]:
    text = as_text(value)
    if text is not None:
        yield text
    for members in _objects(value, depth):
        for each in members.values():
            yield from filter(None, map(as_text, as_array(each) or [each]))


def _error_text(value: object) -> str:
    """Return the text of an error for people, followed by the error in its member `raw`, if any."""
    text = as_text(value)
    if text is not None:
        return _readable(text)
    said = error_text(value) or " ".join(_texts(value, MAX_DEPTH))
    raw = next((raw for members in _objects(value, MAX_DEPTH) if (raw := members.text("raw"))), "")
    inner = error_text(JsonObject.parse_or_empty(raw)) or raw
    return f"{said}: {inner}" if inner and inner not in said else said


def _readable(text: str) -> str:
    """Return a report that is no JSON as text; of HTML its title, else its text without tags."""
    text = text.strip()
    if not text.startswith("<"):
        return text
    title = _HTML_TITLE.search(text)
    return title[1].strip() if title is not None else " ".join(_HTML_TAG.sub(" ", text).split())


def _first_number(patterns: tuple[re.Pattern[str], ...], words: str, other: int | None = None) -> int | None:
    """Return the first number of at most nine digits that a pattern finds, but 0 and `other`; None without one."""
    for pattern in patterns:
        for found in pattern.finditer(words):
            number = next((group for group in found.groups() if group is not None), "")
            digits = number.replace(",", "")
            if 0 < len(digits) <= 9 and int(digits) not in (0, other):
                return int(digits)
    return None


def _named_number(value: object, *names: str) -> int | None:
    for members in _objects(value, MAX_DEPTH):
        for name in names:
            number = members.integer(name, 1, 10**9)
            if number is not None:
                return number
    return None


def _asked_tokens(request: Mapping[str, object]) -> int | None:
    members = JsonObject.of(request)
    return next((limit for name in OUTPUT_MEMBERS if (limit := members.integer(name)) is not None), None)
