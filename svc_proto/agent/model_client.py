"""Client for one model call: `POST {base_url}/chat/completions`, with retries before the answer begins."""

from collections.abc import Mapping
from math import ceil

from attrs import evolve, frozen

from svc_proto.agent.completion_assembler import CompletionAssembler, Delta, ModelResponseError
from svc_proto.agent.context_window import BYTES_PER_TOKEN
from svc_proto.agent.interface import AgentHost, ModelCallFinished, ModelEndpoint, TextDelta, TurnNotice
from svc_proto.agent.model_refusal import ModelRefusal, Problem, parse_refusal
from svc_proto.agent.repetition_watch import RepeatedText, RepetitionWatch
from svc_proto.agent.request_encoder import encode_request
from svc_proto.agent.request_shaper import RequestShaper
from svc_proto.basics.excerpt import safe_excerpt
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.commands import Level
from svc_proto.engine.completion_reader import CompletionReader, completion_response, decompress
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.http_client import HttpResult, bearer_header, fetch
from svc_proto.engine.lenient_reader import LenientReader
from svc_proto.engine.retry_delay import parse_retry_delay
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import lenient_json_value
from svc_proto.schema.model_profile import ModelProfile
from svc_proto.service_clients.failure_text import model_server_name
from svc_proto.service_clients.model_address import endpoint_url

__all__ = ["DEFAULT_MODEL_LIMITS", "ModelCallFailure", "ModelCallLimits", "call_model"]

JSON = (b"content-type", b"application/json")
RETRIED = (408, 409, 425, 429)  # statuses that are retried, like every 5xx
MAX_LESSONS = 12  # refusals of one call that lead to another form of the request
MAX_TOLD_PAUSE = 7 * 86_400.0  # s; a longer one is no usable time
MIN_TOLD_PAUSE = 2.0  # s; readers get a line about a longer pause
UNSUPPORTED_OPTION = "unsupported_option"  # code of a refusal of an option that the client has set


@frozen(kw_only=True)
class ModelCallLimits:
    """Limits of a model call. Times in seconds."""

    connect: float = 15.0
    answer: float = 300.0  # until the response head: a local model may have to be loaded first
    silence: float = 300.0  # between two events
    whole: float = 3_600.0  # for one answer, whether or not the connection is active
    trailer: float = 8.0  # for usage and end, after the answer itself
    attempts: int = 4
    first_pause: float = 1.0  # doubles after each attempt
    longest_pause: float = 60.0  # a longer Retry-After ends the attempts


DEFAULT_MODEL_LIMITS = ModelCallLimits()


@frozen(kw_only=True)
class ModelCallFailure:
    """Reason for a missing or incomplete answer. `text` is for people."""

    text: str
    code: str = "upstream_error"
    reason: str = ""  # for the log, without the server's text; empty: as `text`
    pause: float | None = None  # s until the next attempt, as requested by the server
    retryable: bool = False  # another attempt may succeed
    refusal: ModelRefusal | None = None  # findings of the server's report
    status: int | None = None  # HTTP status of the refusal


def call_model(
    engine: Engine,
    route: ModelEndpoint,
    request: Mapping[str, object],
    host: AgentHost,
    limits: ModelCallLimits,
    *,
    before_text: str = "",
    shaper: RequestShaper | None = None,
) -> Flow[CompletionAssembler | ModelCallFailure | RepeatedText]:
    """Call the model, emit the deltas of its answer to the host, and return the assembled answer.

    Return a `ModelCallFailure` if that fails, or a `RepeatedText` for an answer that is stopped.

    `before_text` is emitted before the first text of the answer, not before reasoning. An answer that is stopped since
    it repeats itself has no token counts of the server: `ModelCallFinished` with an estimate is emitted for it.

    The request has the form that `shaper` gives it. After a refusal from which the shaper learns, the request is
    repeated in another form. Other failures are retried within `limits` if they are marked as retryable.
    """
    if not is_printable_ascii(route.api_key):
        return ModelCallFailure(text="the model's API key has characters that no header can carry")
    shaper = RequestShaper(ModelProfile()) if shaper is None else shaper
    model_request = {"model": route.model, "stream": True, "stream_options": {"include_usage": True}, **request}
    pause = limits.first_pause
    attempt, lessons = 1, 0
    while True:
        sent, notice = shaper.shape(model_request)
        _notify(host, notice)
        answer = yield from _attempt(engine, route, sent, host, limits, before_text)
        if isinstance(answer, CompletionAssembler):
            shaper.confirm(answer.input_tokens)
            return answer
        if isinstance(answer, RepeatedText):
            host.emit(ModelCallFinished(shaper.estimate, ceil(answer.length / BYTES_PER_TOKEN)))
            return answer
        learned = None if answer.refusal is None or lessons >= MAX_LESSONS else shaper.learn(answer.refusal, sent)
        if learned is not None:
            lessons += 1
            engine.log(Level.WARNING, "model request repeated in another form", why=learned.value, model=route.model)
            continue
        delay = answer.pause if answer.pause is not None else pause * (1.0 - engine.entropy(1)[0] / 512)
        if not answer.retryable or attempt >= limits.attempts or delay > limits.longest_pause:
            shaper.forget()
            where = {"url": route.base_url.partition("?")[0], "model": route.model}
            why = answer.reason or answer.text
            engine.log(Level.WARNING, "model failed", **where, status=answer.status, code=answer.code, why=why)
            return _with_delay(_with_option(answer, request), limits)
        engine.log(Level.WARNING, "model request retried", attempt=attempt, seconds=delay)
        if delay >= MIN_TOLD_PAUSE:
            _notify(host, f"[{answer.reason or answer.text}; the next attempt is in {delay:.0f} s]")
        yield from sleep(engine, delay)
        attempt += 1
        pause *= 2


def _notify(host: AgentHost, notice: str) -> None:
    if notice:
        host.emit(TurnNotice(f"{notice}\n"))


def _with_option(failure: ModelCallFailure, request: Mapping[str, object]) -> ModelCallFailure:
    """Return the failure, with the code `unsupported_option` if the server refuses a member of `request` by name."""
    refusal = failure.refusal
    if refusal is None or refusal.member not in request or Problem.OPTION not in refusal.problems:
        return failure
    return evolve(failure, code=UNSUPPORTED_OPTION)


def _with_delay(failure: ModelCallFailure, limits: ModelCallLimits) -> ModelCallFailure:
    """Return the failure; its text names a delay that the server requested and that is longer than the call waits.

    A delay over `MAX_TOLD_PAUSE` is not named.
    """
    if failure.pause is None or not limits.longest_pause < failure.pause <= MAX_TOLD_PAUSE:
        return failure
    return evolve(failure, text=f"{failure.text} (try again in {failure.pause:.0f} s)")


def _attempt(
    engine: Engine,
    route: ModelEndpoint,
    model_request: Mapping[str, object],
    host: AgentHost,
    limits: ModelCallLimits,
    before_text: str,
) -> Flow[CompletionAssembler | ModelCallFailure | RepeatedText]:
    begun = engine.now.mono
    opened = yield from fetch(
        engine,
        "POST",
        endpoint_url(route.base_url),
        headers=(JSON, *bearer_header(route.api_key)),
        body=encode_request(model_request),
        into=completion_response(),
        connect_within=limits.connect,
        within=limits.answer,
    )
    if isinstance(opened, Failure):
        return _no_connection(opened, route, again=engine.now.mono - begun < limits.answer)
    if isinstance(opened, HttpResult):
        return _refusal(opened, route, model_request, engine.now.wall)
    progress = _AttemptProgress(host, before_text, LenientReader(engine, "model"))
    try:
        failure = yield from _read_answer(engine, opened, progress, limits)
        progress.close()
        if failure is None:
            opened.disconnect()
    except ModelResponseError as problem:
        begun_text = progress.assembly.begun
        text = f"the model's server failed: {safe_excerpt(str(problem), route.api_key)}"
        refusal = None if begun_text else parse_refusal(None, problem.report, model_request)
        return ModelCallFailure(
            text=text, reason="the model's server failed", retryable=not begun_text, refusal=refusal
        )
    finally:
        opened.abandon()
    return progress.assembly if failure is None else failure


class _AttemptProgress:
    """Progress of one attempt: the assembled answer, and its events for the host."""

    def __init__(self, host: AgentHost, before_text: str, json_reader: LenientReader) -> None:
        self.host = host
        self._before_text = before_text
        self.assembly = CompletionAssembler(json_reader.read)
        self.repetition = RepetitionWatch(self.assembly)

    def feed(self, data: str, event: str = "message") -> None:
        """Assemble the data of one event and emit the deltas to the host. Raises `ModelResponseError`."""
        for delta in self.assembly.feed(data, event):
            if self._before_text:
                self._emit_before(delta)
            self.host.emit(delta)

    def close(self) -> None:
        """Emit the text that the assembler has held back, at the end of the answer."""
        for delta in self.assembly.close():
            self._emit_before(delta)
            self.host.emit(delta)

    def _emit_before(self, delta: Delta) -> None:
        if self._before_text and isinstance(delta, TextDelta):
            self.host.emit(TextDelta(self._before_text))
            self._before_text = ""


def _read_answer(
    engine: Engine, reader: CompletionReader, progress: _AttemptProgress, limits: ModelCallLimits
) -> Flow[ModelCallFailure | RepeatedText | None]:
    """Read an answer to its end or its size limit and return None; else the failure, or the end of a repeated text.

    A finish reason alone does not end the reading: `[DONE]`, the end of the stream or a silence behind it does.
    """
    assembly, latest = progress.assembly, engine.now.mono + limits.whole
    while not assembly.is_finished:
        if engine.now.mono >= latest:
            return ModelCallFailure(
                text=f"the model's answer was not over after {limits.whole:g} s", code="upstream_timeout"
            )
        batch = yield from reader.read(within=limits.trailer if assembly.is_ending else limits.silence)
        if isinstance(batch, tuple):
            for event in batch:
                progress.feed(event.data, event.event)
                if assembly.done or assembly.full:
                    break
            if progress.host.reader_behind:
                yield from progress.host.wait_drained()
            stopped = progress.repetition.check()
            if stopped is not None:
                return stopped
            continue
        if assembly.finish:
            break  # the answer is complete, only the usage may be missing
        if batch is None and not reader.is_stream:
            return (yield from _whole(reader.whole, progress))
        return _broken_off(batch, assembly, reader, limits)
    return None


def _broken_off(
    failure: Failure | None, assembly: CompletionAssembler, reader: CompletionReader, limits: ModelCallLimits
) -> ModelCallFailure:
    if failure is not None and failure.kind is FailureKind.TIMED_OUT:
        return ModelCallFailure(text=f"the model's server was silent for {limits.silence:g} s", code="upstream_timeout")
    if failure is not None and failure.kind is FailureKind.INVALID:
        why = (
            f"the model's answer broke off: {failure.detail}"
            if reader.is_stream
            else "the model's server sent too much"
        )
        return ModelCallFailure(text=why)
    return ModelCallFailure(text="the model's answer broke off: the connection ended", retryable=not assembly.begun)


def _whole(body: str, progress: _AttemptProgress) -> Flow[ModelCallFailure | RepeatedText | None]:
    """Handle a success that is no event stream: an error, or a completion in one piece, or chunks one on each line.

    Returns None if there is an answer, else why there is none, or the end of a repeated text. Raises
    `ModelResponseError` for an error that the server reports.
    """
    text = body.removeprefix("\ufeff").strip()
    if text.startswith("["):  # an array around the object
        text = text[1:].removesuffix("]").strip()
    if not text.startswith("{"):
        return ModelCallFailure(text="the model's server sent neither an event stream nor JSON; is the base URL right?")
    assembly = progress.assembly
    is_one = lenient_json_value(text) is not None
    for line in [text] if is_one else filter(str.strip, text.splitlines()):  # else chunks without `data:`
        progress.feed(line)
    if not (assembly.done or (assembly.begun and assembly.finish)):
        return ModelCallFailure(text="the model's server sent JSON without an answer; is the base URL right?")
    if progress.host.reader_behind:
        yield from progress.host.wait_drained()
    return progress.repetition.check()


def _refusal(answer: HttpResult, route: ModelEndpoint, request: Mapping[str, object], wall: float) -> ModelCallFailure:
    status = answer.status
    body = decompress(answer.headers, answer.body).decode("utf-8", "replace")
    refusal = parse_refusal(status, body, request)
    said = safe_excerpt(refusal.text, route.api_key)
    match status:
        case 401 | 403:
            what = "the model's server does not accept the key (SVC_MODEL_API_KEY)"
        case 404:
            what = "the model's server knows no such model or path (SVC_MODEL, SVC_MODEL_BASE_URL)"
        case 429:
            what = "the model's server is asked too often, or its quota is used up"
        case _ if 300 <= status < 400:
            what = "the model's server redirects, which is not followed since a key would go along"
        case _:
            what = "the model's server refused the request" if status < 500 else "the model's server failed"
    if Problem.CONTEXT in refusal.problems:
        what = "the conversation is longer than the model's context"
    return ModelCallFailure(
        text=f"{what}: {status}{f', {said}' if said else ''}",
        retryable=status in RETRIED or status >= 500,
        pause=parse_retry_delay(answer.headers, body, wall),
        refusal=refusal if status >= 400 else None,
        status=status,
        reason=what,
    )


def _no_connection(failure: Failure, route: ModelEndpoint, *, again: bool) -> ModelCallFailure:
    server = model_server_name(route.base_url, route.source)
    match failure.kind:
        case FailureKind.TIMED_OUT:
            text, reason = f"{server} did not answer in time", "the model's server did not answer in time"
            return ModelCallFailure(text=text, reason=reason, code="upstream_timeout", retryable=again)
        case FailureKind.TLS:
            text, reason = f"{server} has no certificate that can be trusted", "the certificate cannot be trusted"
            return ModelCallFailure(text=text, reason=reason)
        case FailureKind.INVALID:
            return ModelCallFailure(text=f"the model's server cannot be used: {safe_excerpt(failure.detail)}")
        case FailureKind.TOO_LARGE:
            return ModelCallFailure(text="the model's server sent too much")
        case _:
            text, reason = f"{server} cannot be reached", "the model's server cannot be reached"
            return ModelCallFailure(text=text, reason=reason, retryable=True)
