"""Problems of a host, found in its observations: the finders that the registry of health checks uses.

Each finder returns a text for the operator, or None if there is no problem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from svc_proto.cli.health_facts import HostFacts, ServerFacts
from svc_proto.service_clients.bind_addresses import LOCAL_HOSTS, WILDCARD_ADDRESSES

__all__ = [
    "find_down",
    "find_silent",
    "find_taken",
    "find_other_version",
    "find_no_address",
    "find_poor_address",
    "find_relay_here_alone",
    "find_api_here_alone",
    "find_dead_route",
    "find_public",
    "find_bad_certificate",
    "find_expired",
    "find_expires",
    "find_model_silent",
    "find_model_refuses",
    "find_model_odd",
    "find_model_unknown",
    "find_model_without_name",
    "find_model_without_url",
    "find_model_without_tools",
    "find_small_context",
    "find_false_context",
    "find_no_model",
    "find_full",
    "find_nearly_full",
    "find_not_writable",
    "find_readable_by_others",
    "find_database",
    "find_clock_back",
    "find_clock_off",
    "find_no_backup",
    "find_old_backup",
    "find_no_key",
    "find_weak_key",
    "find_weak_password",
    "find_other_brand",
    "find_listed",
    "find_wrong_name",
]

DAY = 86_400.0  # s
MIN_FREE = 50 * 1024 * 1024  # bytes: below, writes of the store fail soon
LOW_FREE = 500 * 1024 * 1024  # bytes
CERTIFICATE_SOON = 14.0  # days
CLOCK_SKEW = 300.0  # s
BACKUP_AGE = 30 * DAY
MIN_CONTEXT = 16_384  # tokens, below which the model is shown few tools
MIN_KEY = 16  # characters
MIN_KINDS = 8  # different characters of a key that is not easily guessed
CONTAINER_NETWORK = "172.16.0.0/12"  # of Docker and Podman, if nothing else is configured
OK_STATUSES = (200, 404)  # of a list of models: some servers have none


# --- servers ------------------------------------------------------------------------------------------------------


def find_down(role: str) -> Callable[[HostFacts], str | None]:
    """Return the finder of a server that the settings start and that does not run.

    A port that another program has taken is not reported. Servers other than the relay count only while another one
    runs.
    """

    def find(facts: HostFacts) -> str | None:
        server = _server(facts, role)
        if server is None or server.runs or not server.wanted or server.taken:
            return None
        others = any(each.runs for each in facts.servers)
        return f"the {role} does not run" if role == "relay" or others else None

    return find


def find_silent(facts: HostFacts) -> str | None:
    """Return a text on the servers that run and do not answer a health request with 200; None if there is none."""
    silent = [each.role for each in facts.servers if each.runs and not each.answers]
    return f"running, and without an answer: {', '.join(silent)}" if silent else None


def find_taken(facts: HostFacts) -> str | None:
    """Return a text on ports of configured servers on which another program listens; None if there is none."""
    taken = [f"port {each.port} of the {each.role}" for each in facts.servers if each.taken and each.wanted]
    return f"another program, or a server of another home, has {', '.join(taken)}" if taken else None


def find_other_version(facts: HostFacts) -> str | None:
    """Return a text on running servers of another version than the installed one; None if there is none."""
    old = [f"{each.role} {each.version}" for each in facts.servers if each.runs and each.version != facts.version]
    return f"{', '.join(old)} run, and {facts.version} is installed" if old else None


def _server(facts: HostFacts, role: str) -> ServerFacts | None:
    return next((each for each in facts.servers if each.role == role), None)


def _listens_here_alone(server: ServerFacts | None) -> bool:
    return server is not None and server.host.lower() in LOCAL_HOSTS and server.host not in WILDCARD_ADDRESSES


def _is_public(server: ServerFacts | None) -> bool:
    return server is not None and server.runs and not _listens_here_alone(server)


# --- addresses ----------------------------------------------------------------------------------------------------


def find_no_address(facts: HostFacts) -> str | None:
    """Return a text if a relay for the network has no address for a phone and no known outside route, else None."""
    relay = _public_relay(facts)
    if relay is None or facts.addresses is None or facts.addresses.best(relay.host) is not None:
        return None
    return "no interface has an address for a phone"


def find_poor_address(facts: HostFacts) -> str | None:
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
    relay = _server(facts, "relay")
    return relay if _is_public(relay) and not facts.has_outside_route else None


def _is_inside_container(address: str) -> bool:
    """Report whether an address is in the range that container engines give to their own networks."""
    from ipaddress import ip_address, ip_network  # noqa: PLC0415, RUF100 - few hosts are containers

    found = ip_address(address)
    return found.version == 4 and found in ip_network(CONTAINER_NETWORK)


def find_relay_here_alone(facts: HostFacts) -> str | None:
    """Return a text if the relay listens for this host alone and is known to have no outside route, else None."""
    relay = _server(facts, "relay")
    if relay is None or not relay.runs or facts.has_outside_route is not False or not _listens_here_alone(relay):
        return None
    return f"the relay listens on {relay.host} alone: no phone reaches it"


def find_api_here_alone(facts: HostFacts) -> str | None:
    """Return a text if the API listens for this host alone beside a relay for the network, else None.

    With a route from outside, or if that is unknown, return None as well.
    """
    api = _server(facts, "api")
    if api is None or not api.runs or facts.has_outside_route is not False or not _is_public(_server(facts, "relay")):
        return None
    return f"the API listens on {api.host} alone: phones cannot chat" if _listens_here_alone(api) else None


def find_dead_route(facts: HostFacts) -> str | None:
    """Return a text on invite routes that do not answer; None if there is none.

    A public one is left to the checks of the public address, if these ran.
    """
    dead = [
        f"{route.role} {route.url}: {route.problem}"
        for route in facts.routes
        if route.problem and not (route.role == "public" and facts.public)
    ]
    return "; ".join(dead) or None


# --- proxy and certificate ----------------------------------------------------------------------------------------


def find_public(*subjects: str, other: bool = False) -> Callable[[HostFacts], str | None]:
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


def find_bad_certificate(facts: HostFacts) -> str | None:
    """Return a text on certificates that cannot be used; None if there is none."""
    return "; ".join(f"{each.path}: {each.problem}" for each in facts.certificates if each.problem) or None


def find_expired(facts: HostFacts) -> str | None:
    """Return a text on expired certificates; None if there is none."""
    over = [each for each in facts.certificates if not each.problem and each.days_left <= 0]
    return "; ".join(f"{each.path} expired {-each.days_left:.0f} days ago" for each in over) or None


def find_expires(facts: HostFacts) -> str | None:
    """Return a text on valid certificates that expire within `CERTIFICATE_SOON` days; None if there is none."""
    soon = [each for each in facts.certificates if not each.problem and 0 < each.days_left < CERTIFICATE_SOON]
    return "; ".join(f"{each.path} expires in {each.days_left:.0f} days" for each in soon) or None


# --- model --------------------------------------------------------------------------------------------------------


def find_model_silent(facts: HostFacts) -> str | None:
    """Return a text if the model's endpoint does not answer, else None."""
    model = facts.model
    if not (model.base_url and model.problem):
        return None
    from svc_proto.service_clients.failure_text import model_server_name  # noqa: PLC0415, RUF100 - for a problem only

    return f"{model_server_name(model.base_url, model.source)} cannot be reached: {model.problem}"


def _model_answers(facts: HostFacts) -> bool:
    return bool(facts.model.base_url) and not facts.model.problem


def find_model_refuses(facts: HostFacts) -> str | None:
    """Return a text if the model's endpoint refuses the key, else None."""
    refused = _model_answers(facts) and facts.model.status in (401, 403)
    return f"{facts.model.base_url} answers {facts.model.status}" if refused else None


def find_model_odd(facts: HostFacts) -> str | None:
    """Return a text if the endpoint's list of models has an unexpected status, else None."""
    status = facts.model.status
    odd = _model_answers(facts) and status not in (*OK_STATUSES, 401, 403)
    return f"{facts.model.base_url}/models answers {status}" if odd else None


def find_model_unknown(facts: HostFacts) -> str | None:
    """Return a text if the model's server has a list without the model, else None."""
    model = facts.model
    if not _model_answers(facts) or not model.name or not model.listed:
        return None
    known = model.name in model.listed or f"{model.name}:latest" in model.listed
    return None if known else f"{model.name} is not among {', '.join(model.listed[:5])}"


def find_model_without_name(facts: HostFacts) -> str | None:
    """Return a text if an endpoint is configured without a model name, unless its server lists exactly one model."""
    model = facts.model
    if not model.base_url or model.name or (_model_answers(facts) and len(model.listed) == 1):
        return None
    return f"{model.base_url} has no model name"


def find_model_without_url(facts: HostFacts) -> str | None:
    """Return a text if a model name is configured without an endpoint, else None."""
    model = facts.model
    return f"the model {model.name} has no address" if model.name and not model.base_url else None


def find_model_without_tools(facts: HostFacts) -> str | None:
    """Return a text if the model does not call tools, else None."""
    return f"{facts.model.name} does not call tools" if facts.model.has_tools is False else None


def find_small_context(facts: HostFacts) -> str | None:
    """Return a text if the model's context is smaller than `MIN_CONTEXT` tokens, else None."""
    model = facts.model
    context = model.configured_context or model.context
    if not model.base_url or context is None or context >= MIN_CONTEXT:
        return None
    return f"{context} tokens: below {MIN_CONTEXT} the model is shown few tools"


def find_false_context(facts: HostFacts) -> str | None:
    """Return a text if the configured context is larger than the server's, else None."""
    model = facts.model
    if model.context is None or model.configured_context is None or model.configured_context <= model.context:
        return None
    return f"configured are {model.configured_context} tokens, and the server has {model.context}"


def find_learned(facts: HostFacts) -> str | None:
    """Return a text on the properties of the model's server that the agent has learned; None if there is none."""
    return f"{facts.model.name}: {'; '.join(facts.model.learned)}" if facts.model.learned else None


def find_no_model(facts: HostFacts) -> str | None:
    """Return a text if neither a model nor its endpoint is configured, else None."""
    return None if facts.model.base_url or facts.model.name else "the built-in agent answers"


# --- state --------------------------------------------------------------------------------------------------------


def find_full(facts: HostFacts) -> str | None:
    """Return a text if the disk of the service home has less than `MIN_FREE` bytes free, else None."""
    return _free(facts) if facts.disk_free is not None and facts.disk_free < MIN_FREE else None


def find_nearly_full(facts: HostFacts) -> str | None:
    """Return a text if the disk of the home has from `MIN_FREE` to less than `LOW_FREE` bytes free, else None."""
    return _free(facts) if facts.disk_free is not None and MIN_FREE <= facts.disk_free < LOW_FREE else None


def _free(facts: HostFacts) -> str:
    return f"{(facts.disk_free or 0) / 1024 / 1024:.0f} MiB are free at {facts.home}"


def find_not_writable(facts: HostFacts) -> str | None:
    """Return a text if the service home cannot be written, else None."""
    return f"{facts.home}: {facts.home_problem}" if facts.home_problem else None


def find_readable_by_others(facts: HostFacts) -> str | None:
    """Return a text on files of the home that other users can read; None if there is none."""
    return f"other users can read {', '.join(facts.open_files)}" if facts.open_files else None


def find_database(facts: HostFacts) -> str | None:
    """Return a text if the database has a problem: it is damaged, locked or not reachable, for example; else None."""
    return f"{facts.database}: {facts.database_problem}" if facts.database_problem else None


def find_clock_back(facts: HostFacts) -> str | None:
    """Return a text if a file of the home is dated `CLOCK_SKEW` or more in the future, else None."""
    newest = facts.newest_file_at
    if newest is None or newest - facts.now < CLOCK_SKEW:
        return None
    return f"a file of the home was written {(newest - facts.now) / 60:.0f} minutes in the future"


def find_clock_off(facts: HostFacts) -> str | None:
    """Return a text if the clock differs by `CLOCK_SKEW` or more from that of another server, else None."""
    other = facts.foreign_clock
    if other is None or abs(other - facts.now) < CLOCK_SKEW:
        return None
    return f"{abs(other - facts.now) / 60:.0f} minutes off {facts.clock_source}"


def find_no_backup(facts: HostFacts) -> str | None:
    """Return a text if the home is older than `BACKUP_AGE` and has no backup, else None."""
    if facts.backup_at is not None or facts.home_since is None or facts.now - facts.home_since < BACKUP_AGE:
        return None
    return f"no backup was made, and the home is {(facts.now - facts.home_since) / DAY:.0f} days old"


def find_old_backup(facts: HostFacts) -> str | None:
    """Return a text if the last backup is older than `BACKUP_AGE`, else None."""
    at = facts.backup_at
    return f"the last one is {(facts.now - at) / DAY:.0f} days old" if at and facts.now - at > BACKUP_AGE else None


# --- credentials and settings -------------------------------------------------------------------------------------


def find_no_key(facts: HostFacts) -> str | None:
    """Return a text if an API on the network has no key, else None."""
    return (
        "the API is open to the network without a key"
        if facts.key == "" and _is_public(_server(facts, "api"))
        else None
    )


def find_weak_key(facts: HostFacts) -> str | None:
    """Return a text if the API's key is short or has few different characters, else None."""
    key = facts.key
    if not key or (len(key) >= MIN_KEY and len(set(key)) >= MIN_KINDS):
        return None
    return f"{len(key)} characters, {len(set(key))} of them different"


def find_weak_password(facts: HostFacts) -> str | None:
    """Return a text if a dashboard on the network has a password that is easily guessed, else None."""
    board, word = _server(facts, "dashboard"), facts.dashboard_password
    if word is None or not _is_public(board) or (len(word) >= MIN_KINDS and len(set(word)) > 3):
        return None
    return "the dashboard is open to the network with a password that is easily guessed"


def find_other_brand(facts: HostFacts) -> str | None:
    """Return a text if the running relay has another brand than the settings, else None."""
    relay = _server(facts, "relay")
    if relay is None or not relay.runs or relay.brand == facts.brand:
        return None
    return f"the relay runs with {relay.brand}, and the settings have {facts.brand}"


def find_listed(of: Callable[[HostFacts], Sequence[str]]) -> Callable[[HostFacts], str | None]:
    """Return a finder that reports all texts which `of` reads from the observations."""
    return lambda facts: "; ".join(of(facts)) or None


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


def find_wrong_name(facts: HostFacts) -> str | None:
    """Return a text on certificates that are not for the name of a route; None if there is none."""
    hosts = [urlsplit(route.url).hostname or "" for route in facts.routes]
    wrong = [
        f"{each.path} is not for {host}"
        for each in facts.certificates
        for host in hosts
        if each.names and not each.problem and not _is_ip(host) and not _is_named(host, each.names)
    ]
    return "; ".join(dict.fromkeys(wrong)) or None
