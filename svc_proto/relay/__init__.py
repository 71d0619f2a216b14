"""The relay as one core: its state, its auth policy, its routes and its WebSocket channels.

The names that embedders may use: docs/reference/public-names.md.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.relay.service import Relay as Relay
    from svc_proto.relay_config import ConfigError as ConfigError
    from svc_proto.relay_config import RelayConfig as RelayConfig
    from svc_proto.relay_config import SessionPolicy as SessionPolicy
    from svc_proto.relay_config import parse_relay_config as parse_relay_config
    from svc_proto.store_requests import CheckStore as CheckStore
    from svc_proto.store_requests import DeleteSession as DeleteSession
    from svc_proto.store_requests import LoadSessions as LoadSessions
    from svc_proto.store_requests import SaveSession as SaveSession
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.relay.service": "Relay",
            "svc_proto.relay_config": "ConfigError RelayConfig SessionPolicy parse_relay_config",
            "svc_proto.store_requests": "DeleteSession LoadSessions CheckStore SaveSession",
        },
    )
