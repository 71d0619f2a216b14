"""Rules for texts of errors, log events and metrics: an error's text, for example, has more than one word.

`hold_sentences` checks errors, log records and metrics that the core creates.
"""

import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from svc_proto.basics import errors, metrics
from svc_proto.basics.errors import LocalProtocolError, ProtocolError, Refused, RemoteProtocolError, ToolError
from svc_proto.basics.metrics import MetricFamily
from svc_proto.commands import Level
from svc_proto.engine.core import Engine

KNOWN = """
    agent_incomplete ambiguous_device ambiguous_prefix approval_not_active approval_not_pending as_paired
    audio_empty audio_missing bad_mode bad_public_url bad_request body_too_large busy cluster_unavailable
    config_write_failed disabled disk_full gateway_draining grant_required head_too_large host_not_allowed
    https_required internal_error invalid invalid_api_key invalid_approval_choice invalid_body invalid_client
    invalid_client_metadata invalid_content_length invalid_content_part invalid_field invalid_grant
    invalid_image_url invalid_invite invalid_json invalid_message invalid_multipart invalid_prefix
    invalid_redirect_uri invalid_request invalid_scope invalid_session_id invalid_system_message
    invalid_system_prompt invalid_target invalid_title key_in_environment key_not_found key_not_read key_not_usable
    keyless loopback_only media_store_unavailable memory_unavailable method_not_allowed metrics_unavailable
    missing_message model_not_found no_chat no_mesh no_phone no_picture no_public_url not_acceptable not_done
    not_found not_implemented not_open not_turned not_writable not_your_session not_yours origin_not_allowed
    outside_roots password_needed phone_asks_nobody phone_not_connected plain_route precondition_failed
    quota_exceeded range_not_satisfiable rate_limit_exceeded rate_limited reduce_only refused relative_path
    request_timeout response_not_possible run_not_found self_only session_closed session_db_unavailable
    session_exists session_not_found session_required store_failed store_unavailable temporarily_unavailable
    text_missing too_large too_many_commands too_many_connections too_many_sessions unauthorized unknown_device
    unknown_event unknown_message unreachable unreadable unsupported_content_type unsupported_grant_type
    unsupported_option set_in_environment
    unsupported_media_type unsupported_response_type unsupported_session_field unsupported_version upgrade_required
    version_not_supported voice_refused voice_unavailable withheld write_failed wrong_ballot wrong_password
"""  # error codes are compared by programs: a change would break clients
CODES = {"", *KNOWN.split()}
MUST = re.compile(r"\S+ must be (\S+)")
ENOUGH = ("present", "base64", "code")  # single words that are enough after "must be"
EVENTS = ("bug", "paired", "ready", "request", "socket")  # log events of one word
FAMILY = re.compile(r"svc_[a-z_]+")
TEXT = re.compile(r"[A-Z].* .*\.")


def mistake_of(error: Exception) -> str:
    """Return what is wrong with an error's code or text; empty if nothing is."""
    text = str(error)
    if isinstance(error, Refused) and error.code not in CODES:
        return f"no word that programs know: {error.code!r}"
    if " " not in text:
        return f"no sentence for people: {text!r}"
    if (only := MUST.fullmatch(text)) and only[1] not in ENOUGH:
        return f"this says too little: {text!r}"
    return ""


def mistake_of_event(event: str) -> str:
    """Return what is wrong with a log event; empty if nothing is."""
    return "" if " " in event or event in EVENTS else f"this says too little: {event!r}"


def mistake_of_family(family: MetricFamily) -> str:
    """Return what is wrong with a metric's name or help text; empty if nothing is."""
    if not FAMILY.fullmatch(family.name):
        return f"no word for programs: {family.name!r}"
    return "" if TEXT.fullmatch(family.help) else f"no sentence for people: {family.help!r}"


def hold_sentences() -> None:
    """Patch errors, logs and metrics so that a text of the core that breaks a rule raises AssertionError."""
    for kind in (ProtocolError, LocalProtocolError, RemoteProtocolError, Refused, ToolError):
        kind.__init__ = _checked_init(kind.__init__)  # type: ignore[method-assign] # of all errors
    Engine.log = _held_log(Engine.log)  # type: ignore[method-assign] # of all engines
    MetricFamily.__new__ = _held_family(MetricFamily.__new__)  # type: ignore[method-assign, assignment] # likewise


def _checked_init(made: Callable[..., None]) -> Callable[..., None]:
    @wraps(made)
    def init(self: Exception, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        if _maker(errors.__name__).startswith("svc_proto."):
            assert not (mistake := mistake_of(self)), mistake

    return init


def _held_log(log: Callable[..., None]) -> Callable[..., None]:
    @wraps(log)
    def say(self: Engine, level: Level, event: str, **fields: object) -> None:
        log(self, level, event, **fields)
        if _maker("").startswith("svc_proto."):
            assert not (mistake := mistake_of_event(event)), mistake

    return say


def _held_family(make: Callable[..., MetricFamily]) -> Callable[..., MetricFamily]:
    @wraps(make)
    def new(*args: Any, **options: Any) -> MetricFamily:
        family = make(*args, **options)
        if _maker(metrics.__name__).startswith("svc_proto."):
            assert not (mistake := mistake_of_family(family)), mistake
        return family

    return new


def _maker(by_way_of: str) -> str:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals["__name__"] == by_way_of:
        frame = frame.f_back
    return str(frame.f_globals["__name__"])
