"""The API server: chat sessions, turns that stream, runs, and what manages them.

The names that embedders may use: docs/reference/public-names.md.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.api.config import ApiConfig as ApiConfig
    from svc_proto.api.config import api_config as api_config
    from svc_proto.api.rows import ChatPage as ChatPage
    from svc_proto.api.rows import ChatSession as ChatSession
    from svc_proto.api.rows import Content as Content
    from svc_proto.api.rows import Message as Message
    from svc_proto.api.rows import SearchHit as SearchHit
    from svc_proto.api.rows import Usage as Usage
    from svc_proto.api.service import Api as Api
    from svc_proto.api.store import AddMessages as AddMessages
    from svc_proto.api.store import BeginTurn as BeginTurn
    from svc_proto.api.store import CreateChat as CreateChat
    from svc_proto.api.store import DeleteChat as DeleteChat
    from svc_proto.api.store import ForkChat as ForkChat
    from svc_proto.api.store import GetChat as GetChat
    from svc_proto.api.store import ListChats as ListChats
    from svc_proto.api.store import ListMessages as ListMessages
    from svc_proto.api.store import ListTitles as ListTitles
    from svc_proto.api.store import SearchMessages as SearchMessages
    from svc_proto.api.store import UpdateChat as UpdateChat
    from svc_proto.settings import ConfigError as ConfigError
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.api.service": "Api",
            "svc_proto.api.config": "ApiConfig api_config",
            "svc_proto.settings": "ConfigError",
            "svc_proto.api.store": (
                "AddMessages BeginTurn CreateChat DeleteChat ForkChat GetChat ListChats ListMessages ListTitles "
                "SearchMessages UpdateChat"
            ),
            "svc_proto.api.rows": "ChatPage ChatSession Content Message SearchHit Usage",
        },
    )
