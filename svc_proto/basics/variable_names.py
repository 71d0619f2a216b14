"""Names of the variables with a prefix of this project that it reads, and the nearest one to an unknown name.

A misspelled variable would be ignored without a sign: `RELAY_HSOT=127.0.0.1` leaves a relay open to the network.
"""

from collections.abc import Iterable

from svc_proto.basics.dotenv import OWN_PREFIXES

__all__ = ["VARIABLE_NAMES", "find_unknown_variables", "unknown_variable_text"]

FAMILIES = {
    "API_SERVER_": """
        CORS_ORIGINS ENABLED HOST KEY LOG_LEVEL MAX_CONCURRENT_RUNS MODEL_NAME NODE_URL PORT ROOT_PATH
        SSL_CERT SSL_KEY
    """,
    "RELAY_": """
        ALLOW_INSECURE_API_BEARER HERMES_CONFIG HIDE_TYPED_TEXT HOST LOCAL_TRUST LOG_LEVEL
        MAX_SESSION_TTL_SECONDS MEDIA_ALLOWED_ROOTS MEDIA_LRU_CAP MEDIA_MAX_SIZE_MB MEDIA_TTL_SECONDS
        PAIRING_CODE PORT PROFILE_DISCOVERY_ENABLED PROVIDER_OPTIONS_CACHE_SECONDS REALTIME_VOICE_CONFIG
        REALTIME_VOICE_ENABLED REALTIME_VOICE_MODEL REALTIME_VOICE_PROVIDER REALTIME_VOICE_RUN_DIR
        REALTIME_VOICE_SAMPLE_RATE REALTIME_VOICE_VOICE ROOT_PATH SESSIONS_FILE SESSION_POLICY SSL_CERT
        SSL_KEY TERMINAL_SHELL TERMINAL_TMUX TRUSTED_PROXIES TRUST_PROXY_HEADERS
        VOICE_BACKGROUND_DETACHED_MAX_MS VOICE_BACKGROUND_RUN_MAX_MS VOICE_LONG_TOOL_HINTS
        VOICE_OUTPUT_AUTO_SPEECH_TAGS VOICE_OUTPUT_CODEC VOICE_OUTPUT_CONFIG VOICE_OUTPUT_ENABLED
        VOICE_OUTPUT_FALLBACK_ENABLED VOICE_OUTPUT_LANGUAGE VOICE_OUTPUT_MODEL VOICE_OUTPUT_OPTIMIZE_LATENCY
        VOICE_OUTPUT_PROVIDER VOICE_OUTPUT_RUN_DIR VOICE_OUTPUT_SAMPLE_RATE VOICE_OUTPUT_TEXT_NORMALIZATION
        VOICE_OUTPUT_VOICE VOICE_RESUME_TTL_MS WEBAPI_PIN WEBAPI_URL WORKER WORKERS WORKER_INSIDE
    """,
    "SVC_": """
        API_URL APPROVAL_TIMEOUT_SECONDS BRAND CLUSTER_URL CONFIG DASHBOARD_HOST DASHBOARD_LOG_LEVEL
        DASHBOARD_LOCAL_ACCESS DASHBOARD_NAMES DASHBOARD_PASSWORD DASHBOARD_PORT DASHBOARD_ROOT_PATH DASHBOARD_SSL_CERT
        DASHBOARD_SSL_KEY DATABASE_URL DEBUG HOME LOG_FORMAT MAX_ITERATIONS MAX_TOKENS MEDIA_URL
        METRICS_TOKEN MODEL MODEL_API_KEY MODEL_BASE_URL MODEL_CONTEXT NODE_URL PAIR_SCOPE PAIR_TTL PUBLIC_URL
        RELAY_CODE RELAY_HOME RELAY_PAIR_QR RELAY_PORT RELAY_TOKEN RELAY_URL RUNTIME TERMINAL_ENV TOOLS
        TUI_COMMAND TUI_RESUME WHISPER_MODEL WORKSPACE
    """,
    "HERMES_RELAY_": """
        CODE HOME PAIR_QR PORT TOKEN URL
    """,
}
VARIABLE_NAMES = frozenset(prefix + word for prefix, words in FAMILIES.items() for word in words.split())
SIMILARITY = 0.7  # of two names, from 0 to 1; a name that is less similar to all others has no nearest one
MAX_NAME = 80  # characters of a name that is compared
MAX_UNKNOWN = 20  # names that are reported


def find_unknown_variables(names: Iterable[str]) -> dict[str, str]:
    """Return the names that have a prefix of this project but are not read, each with the nearest name, or "".

    At most `MAX_UNKNOWN` names are returned, sorted. A prefix is recognized in any case: names of variables are
    case-sensitive, so `relay_host` is not read.
    """
    own = tuple(prefix.lower() for prefix in OWN_PREFIXES)
    strange = {name for name in names if name not in VARIABLE_NAMES and name.lower().startswith(own)}
    if not strange:
        return {}
    return {name: _nearest(name.upper()) for name in sorted(strange)[:MAX_UNKNOWN]}


def unknown_variable_text(name: str, nearest: str) -> str:
    """Return the text of the warning about an unknown variable."""
    return f"{name} is no variable that is known here" + (f": is {nearest} meant?" if nearest else "")


def _nearest(name: str) -> str:
    from difflib import SequenceMatcher  # few environments have such a name

    if len(name) > MAX_NAME:
        return ""
    words = set(name.split("_"))
    ranked = [
        (
            SequenceMatcher(None, name, known).ratio(),
            len(words & set(known.split("_"))),
            known,
        )
        for known in sorted(VARIABLE_NAMES)
    ]
    ratio, _, known = max(ranked, key=lambda row: (row[0] + 0.1 * row[1], row[2]))
    return known if ratio >= SIMILARITY else ""
