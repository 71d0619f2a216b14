"""Problems of the servers of a host, their addresses, the proxy, the certificates and the model, as health checks.

Each finder returns a text for the operator, or None if there is no problem.
"""

from collections.abc import Callable
from urllib.parse import urlsplit

from svc_proto.cli.health_facts import ERROR, NOTE, WARNING, CheckRegistry, HostFacts, ServerFacts

__all__ = ["CHECKS"]

CERTIFICATE_SOON = 14.0  # days
CONTAINER_NETWORK = "172.16.0.0/12"  # of Docker and Podman, if nothing else is configured
PROXIES = "see docs/howto/proxies.md"
MIN_CONTEXT = 16_384  # tokens, below which the model is shown few tools
OK_STATUSES = (200, 404)  # of a list of models: some servers have none
CHECKS = CheckRegistry()


# --- servers ----------------------------------------------------------------------------------------------------------


def _find_down(role: str) -> Callable[[HostFacts], str | None]:
    """Return the finder of a server that the settings start and that does not run.

    A port that another program has taken is not reported. Servers other than the relay count only while another one
    runs.
    """

    def find(facts: HostFacts) -> str | None:
        server = facts.server(role)
        if server is None or server.runs or not server.wanted or server.taken:
            return None
        others = any(each.runs for each in facts.servers)
        return f"the {role} does not run" if role == "relay" or others else None

    return find


CHECKS.add(ERROR, "relay_down", "Relay", "run/relay.json", "start the servers: svc up")(_find_down("relay"))
CHECKS.add(ERROR, "api_down", "API", "run/api.json", "start the servers: svc up")(_find_down("api"))
CHECKS.add(NOTE, "dashboard_down", "Dashboard", "run/dashboard.json", "svc up starts it as well")(
    _find_down("dashboard")
)


@CHECKS.add(ERROR, "server_silent", "Answers", "GET /health", "svc logs shows why; svc down && svc up")
def _find_silent(facts: HostFacts) -> str | None:
    """Return a text on the servers that run and do not answer a health request with 200; None if there is none."""
    silent = [each.role for each in facts.servers if each.runs and not each.answers]
    return f"running, and without an answer: {', '.join(silent)}" if silent else None


@CHECKS.add(ERROR, "port_taken", "Ports", "configured ports", "stop it, or set RELAY_PORT or API_SERVER_PORT")
def _find_taken(facts: HostFacts) -> str | None:
    """Return a text on ports of configured servers on which another program listens; None if there is none."""
    taken = [f"port {each.port} of the {each.role}" for each in facts.servers if each.taken and each.wanted]
    return f"another program, or a server of another home, has {', '.join(taken)}" if taken else None


@CHECKS.add(WARNING, "version_differs", "Version", "run/*.json", "svc down && svc up")
def _find_other_version(facts: HostFacts) -> str | None:
    """Return a text on running servers of another version than the installed one; None if there is none."""
    old = [f"{each.role} {each.version}" for each in facts.servers if each.runs and each.version != facts.version]
    return f"{', '.join(old)} run, and {facts.version} is installed" if old else None


# --- addresses --------------------------------------------------------------------------------------------------------


@CHECKS.add(ERROR, "no_address", "Address", "network interfaces", "connect this host to a network")
def _find_no_address(facts: HostFacts) -> str | None:
    """Return a text if a relay for the network has no address for a phone and no known outside route, else None."""
    relay = _public_relay(facts)
    if relay is None or facts.addresses is None or facts.addresses.best(relay.host) is not None:
        return None
    return "no interface has an address for a phone"


@CHECKS.add(
    WARNING,
    "poor_address",
    "Address",
    "network interfaces",
    "set SVC_PUBLIC_URL, or name an address: svc pair --host ADDRESS",
)
def _find_poor_address(facts: HostFacts) -> str | None:
    """Return a text if the best address of a relay for the network belongs to a VPN, a container or a single link.

    Return None otherwise, also for a relay with a route from outside.
    """
    relay = _public_relay(facts)
    best = None if relay is None or facts.addresses is None else facts.addresses.best_row(relay.host)
    if best is None:
        return None
    if facts.is_container and _is_inside_container(best.address):
        return f"this is a container: other hosts do not reach {best.address}"
    return f"{best.address} is the only address, of a {best.kind.name.lower()} interface" if best.is_indirect else None


def _public_relay(facts: HostFacts) -> ServerFacts | None:
    """Return the relay if it listens for the network, and no public address or mesh is known to lead to it."""
    return None if facts.has_outside_route else facts.public_server("relay")


def _is_inside_container(address: str) -> bool:
    """Report whether an address is in the range that container engines give to their own networks."""
    from ipaddress import ip_address, ip_network  # noqa: PLC0415, RUF100 - few hosts are containers

    found = ip_address(address)
    return found.version == 4 and found in ip_network(CONTAINER_NETWORK)


@CHECKS.add(ERROR, "relay_local_only", "Relay address", "RELAY_HOST", "RELAY_HOST=0.0.0.0, or a proxy")
def _find_relay_here_alone(facts: HostFacts) -> str | None:
    """Return a text if the relay listens for this host alone and is known to have no outside route, else None."""
    relay = facts.server("relay")
    if relay is None or not relay.runs or facts.has_outside_route is not False or not relay.is_local_only:
        return None
    return f"the relay listens on {relay.host} alone: no phone reaches it"


@CHECKS.add(WARNING, "api_local_only", "API address", "API_SERVER_HOST", "API_SERVER_HOST=0.0.0.0, or a proxy")
def _find_api_here_alone(facts: HostFacts) -> str | None:
    """Return a text if the API listens for this host alone beside a relay for the network, else None.

    With a route from outside, or if that is unknown, return None as well.
    """
    api = facts.server("api")
    if api is None or not api.runs or facts.has_outside_route is not False or not facts.public_server("relay"):
        return None
    return f"the API listens on {api.host} alone: phones cannot chat" if api.is_local_only else None


@CHECKS.add(
    ERROR,
    "route_dead",
    "Routes",
    "each route of an invite, from this host",
    "another host can try: nc -vz ADDRESS PORT; a firewall may be in the way",
)
def _find_dead_route(facts: HostFacts) -> str | None:
    """Return a text on invite routes that do not answer; None if there is none.

    A public one is left to the checks of the public address, if these ran.
    """
    dead = [
        f"{route.role} {route.url}: {route.problem}"
        for route in facts.routes
        if route.problem and not (route.role == "public" and facts.public)
    ]
    return "; ".join(dead) or None


# --- proxy and certificate --------------------------------------------------------------------------------------------


def _find_public(*subjects: str, other: bool = False) -> Callable[[HostFacts], str | None]:
    """Return a finder of problems of the public address with these subjects.

    With `other`, return the finder of those with a subject that has no finder of its own.
    """
    known = ("encryption", "local routes", "WebSocket", "forwarded headers")

    def find(facts: HostFacts) -> str | None:
        found = [
            f"{each.subject}: {each.text}"
            for each in facts.public
            if each.verdict != "ok" and (each.subject not in known if other else each.subject in subjects)
        ]
        return "; ".join(found) or None

    return find


CHECKS.add(ERROR, "public_unreachable", "Public address", "requests to it", PROXIES)(_find_public(other=True))
CHECKS.add(ERROR, "public_plain", "Encryption", "public address", f"put a proxy with TLS in front, {PROXIES}")(
    _find_public("encryption")
)
CHECKS.add(ERROR, "public_open", "Local routes", "public address", f"RELAY_LOCAL_TRUST=secret, {PROXIES}")(
    _find_public("local routes")
)
CHECKS.add(ERROR, "public_websocket", "WebSocket", "a pairing over it", f"pass Upgrade on, {PROXIES}")(
    _find_public("WebSocket")
)
CHECKS.add(
    ERROR,
    "proxy_not_trusted",
    "Forwarded headers",
    "a pairing over the public address",
    f"RELAY_TRUST_PROXY_HEADERS=1, {PROXIES}",
)(_find_public("forwarded headers"))


@CHECKS.add(ERROR, "certificate_unusable", "Certificate", "certificate files", "name files that belong together")
def _find_bad_certificate(facts: HostFacts) -> str | None:
    """Return a text on certificates that cannot be used; None if there is none."""
    return "; ".join(f"{each.path}: {each.problem}" for each in facts.certificates if each.problem) or None


@CHECKS.add(ERROR, "certificate_expired", "Certificate", "certificate files", "renew it; SIGHUP loads it")
def _find_expired(facts: HostFacts) -> str | None:
    """Return a text on expired certificates; None if there is none."""
    over = [each for each in facts.certificates if not each.problem and each.days_left <= 0]
    return "; ".join(f"{each.path} expired {-each.days_left:.0f} days ago" for each in over) or None


@CHECKS.add(WARNING, "certificate_expires", "Certificate", "certificate files", "renew it; SIGHUP loads it")
def _find_expires(facts: HostFacts) -> str | None:
    """Return a text on valid certificates that expire within `CERTIFICATE_SOON` days; None if there is none."""
    soon = [each for each in facts.certificates if not each.problem and 0 < each.days_left < CERTIFICATE_SOON]
    return "; ".join(f"{each.path} expires in {each.days_left:.0f} days" for each in soon) or None


@CHECKS.add(WARNING, "certificate_name", "Certificate", "its names, and the routes", "issue one with these names")
def _find_wrong_name(facts: HostFacts) -> str | None:
    """Return a text on certificates that are not for the name of a route; None if there is none."""
    hosts = [urlsplit(route.url).hostname or "" for route in facts.routes]
    wrong = [
        f"{each.path} is not for {host}"
        for each in facts.certificates
        for host in hosts
        if each.names and not each.problem and not _is_ip(host) and not _is_named(host, each.names)
    ]
    return "; ".join(dict.fromkeys(wrong)) or None


def _is_named(host: str, names: tuple[str, ...]) -> bool:
    """Report whether a certificate with these names is for a host; `*.` stands for one label (RFC 9525 section 6.3)."""
    return any(name.lower() in (host, f"*.{host.partition('.')[2]}") for name in names)


def _is_ip(text: str) -> bool:
    from ipaddress import ip_address  # noqa: PLC0415, RUF100 - few hosts have certificates

    try:
        ip_address(text)
    except ValueError:
        return False
    return True


# --- model ------------------------------------------------------------------------------------------------------------


def _model_answers(facts: HostFacts) -> bool:
    return bool(facts.model.base_url) and not facts.model.problem


@CHECKS.add(ERROR, "model_url_missing", "Model", "SVC_MODEL", "add SVC_MODEL_BASE_URL, or run svc model")
def _find_model_without_url(facts: HostFacts) -> str | None:
    """Return a text if a model name is configured without an endpoint, else None."""
    model = facts.model
    return f"the model {model.name} has no address" if model.name and not model.base_url else None


@CHECKS.add(ERROR, "model_unreachable", "Model", "GET /models", "start the model's server, or run svc model")
def _find_model_silent(facts: HostFacts) -> str | None:
    """Return a text if the model's endpoint does not answer, else None."""
    model = facts.model
    if not (model.base_url and model.problem):
        return None
    from svc_proto.service_clients.failure_text import model_server_name  # noqa: PLC0415, RUF100 - for a problem only

    return f"{model_server_name(model.base_url, model.source)} cannot be reached: {model.problem}"


@CHECKS.add(ERROR, "model_key_refused", "Model", "GET /models", "set SVC_MODEL_API_KEY")
def _find_model_refuses(facts: HostFacts) -> str | None:
    """Return a text if the model's endpoint refuses the key, else None."""
    refused = _model_answers(facts) and facts.model.status in (401, 403)
    return f"{facts.model.base_url} answers {facts.model.status}" if refused else None


@CHECKS.add(WARNING, "model_odd_answer", "Model", "GET /models", "does the address end in /v1?")
def _find_model_odd(facts: HostFacts) -> str | None:
    """Return a text if the endpoint's list of models has an unexpected status, else None."""
    status = facts.model.status
    odd = _model_answers(facts) and status not in (*OK_STATUSES, 401, 403)
    return f"{facts.model.base_url}/models answers {status}" if odd else None


@CHECKS.add(ERROR, "model_name_missing", "Model", "SVC_MODEL", "choose one: svc model")
def _find_model_without_name(facts: HostFacts) -> str | None:
    """Return a text if an endpoint is configured without a model name, unless its server lists exactly one model."""
    model = facts.model
    if not model.base_url or model.name or (_model_answers(facts) and len(model.listed) == 1):
        return None
    return f"{model.base_url} has no model name"


@CHECKS.add(ERROR, "model_name_unknown", "Model", "list of models", "choose one: svc model")
def _find_model_unknown(facts: HostFacts) -> str | None:
    """Return a text if the model's server has a list without the model, else None."""
    model = facts.model
    if not _model_answers(facts) or not model.name or not model.listed:
        return None
    known = model.name in model.listed or f"{model.name}:latest" in model.listed
    return None if known else f"{model.name} is not among {', '.join(model.listed[:5])}"


@CHECKS.add(WARNING, "model_without_tools", "Model", "a request with a tool", "choose a model with tools: svc model")
def _find_model_without_tools(facts: HostFacts) -> str | None:
    """Return a text if the model does not call tools, else None."""
    return f"{facts.model.name} does not call tools" if facts.model.has_tools is False else None


@CHECKS.add(
    WARNING,
    "model_context_small",
    "Model context",
    "the server's context size",
    "raise it (Ollama: OLLAMA_CONTEXT_LENGTH=16384), and SVC_MODEL_CONTEXT with it",
)
def _find_small_context(facts: HostFacts) -> str | None:
    """Return a text if the model's context is smaller than `MIN_CONTEXT` tokens, else None."""
    model = facts.model
    context = model.configured_context or model.context
    if not model.base_url or context is None or context >= MIN_CONTEXT:
        return None
    return f"{context} tokens: below {MIN_CONTEXT} the model is shown few tools"


@CHECKS.add(ERROR, "model_context_false", "Model context", "SVC_MODEL_CONTEXT", "set SVC_MODEL_CONTEXT to the server's")
def _find_false_context(facts: HostFacts) -> str | None:
    """Return a text if the configured context is larger than the server's, else None."""
    model = facts.model
    if model.context is None or model.configured_context is None or model.configured_context <= model.context:
        return None
    return f"configured are {model.configured_context} tokens, and the server has {model.context}"


@CHECKS.add(
    NOTE,
    "model_differs",
    "Model's server",
    "what the agent has learned",
    "nothing: the agent sends what the server takes. It learns anew each day, or after a test in the dashboard",
)
def _find_learned(facts: HostFacts) -> str | None:
    """Return a text on the properties of the model's server that the agent has learned; None if there is none."""
    return f"{facts.model.name}: {'; '.join(facts.model.learned)}" if facts.model.learned else None


@CHECKS.add(NOTE, "model_missing", "Model", "settings", "connect one: svc model --url http://127.0.0.1:11434/v1")
def _find_no_model(facts: HostFacts) -> str | None:
    """Return a text if neither a model nor its endpoint is configured, else None."""
    return None if facts.model.base_url or facts.model.name else "the built-in agent answers"
