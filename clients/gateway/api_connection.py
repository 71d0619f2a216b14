"""API client of the gateway, and its failures as JSON-RPC errors (wire terminal 2.4)."""

from attrs import field, frozen

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.schema.gateway_rpc import UPSTREAM
from svc_proto.schema.json_rpc import RpcError
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.authority import authority_headers
from svc_proto.service_clients.local_api import local_api_key
from svc_proto.service_clients.service_client import ServiceCallError, ServiceFault
from svc_proto.version import VERSION

__all__ = ["GatewayApiSettings", "new_api_client", "rpc_error"]

CALL_TIMEOUT = 30.0  # s for a call
MAX_MESSAGE_CHARS = 400  # shown characters of a server's message


@frozen(kw_only=True)
class GatewayApiSettings:
    """Settings of the gateway: the API server with its key and pin, and the device for which requests are made."""

    url: str = "http://localhost:8642"
    key: str = field(default="", repr=False)
    files: tuple[str, str] | None = None  # configuration file and home, where the API of this host stores its key
    principal: str = ""  # the device whose requests the gateway makes, and what it does not hold
    withheld: tuple[str, ...] = ()
    version: str = VERSION  # that the terminal's client sees; the program adds the commit
    pin: str | None = None  # pin of its certificate; None: the system's trust decides


def new_api_client(engine: Engine, settings: GatewayApiSettings) -> ApiClient:
    """Build the API client; with `files`, it reads a replaced key from the files of this host's API."""
    files = settings.files

    def find(known: str) -> Flow[str]:
        config_path, home = files or ("", "")
        return local_api_key(engine, config_path, home, known)

    name, find_key = "the API server", None if files is None else find
    extra = authority_headers(settings.principal, settings.withheld)
    return ApiClient(name, settings.url, settings.key, CALL_TIMEOUT, find_token=find_key, extra=extra)


def rpc_error(error: ServiceCallError) -> RpcError:
    """Convert a failed call of the API server into a JSON-RPC error with a text for the user."""
    name = error.peer.name
    match error.fault:
        case ServiceFault.UNREACHABLE | ServiceFault.CONNECTION_LOST:
            text = f"{name} at {error.peer.url} cannot be reached: {error.why}"
        case ServiceFault.UNAUTHORIZED | ServiceFault.FORBIDDEN:
            text = f"{name} does not accept the key: set API_SERVER_KEY"
        case ServiceFault.NOT_FOUND:
            text = f"{name} at {error.peer.url} has no gateway for chats"
        case _:
            text = f"{name} answers {error.status}: {error.server_message[:MAX_MESSAGE_CHARS] or 'no reason given'}"
    return RpcError(UPSTREAM, text)
