"""The API server: chat sessions, streamed turns, runs, and their management.

Public names for embedders: docs/reference/public-names.md.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.api.chat.records import ChatPage as ChatPage
    from svc_proto.api.chat.records import ChatSession as ChatSession
    from svc_proto.api.chat.records import Content as Content
    from svc_proto.api.chat.records import Message as Message
    from svc_proto.api.chat.records import SearchHit as SearchHit
    from svc_proto.api.chat.records import Usage as Usage
    from svc_proto.api.chat.store_requests import AddMessages as AddMessages
    from svc_proto.api.chat.store_requests import BeginTurn as BeginTurn
    from svc_proto.api.chat.store_requests import CreateChat as CreateChat
    from svc_proto.api.chat.store_requests import DeleteChat as DeleteChat
    from svc_proto.api.chat.store_requests import ForkChat as ForkChat
    from svc_proto.api.chat.store_requests import GetChat as GetChat
    from svc_proto.api.chat.store_requests import ListChats as ListChats
    from svc_proto.api.chat.store_requests import ListMessages as ListMessages
    from svc_proto.api.chat.store_requests import ListTitles as ListTitles
    from svc_proto.api.chat.store_requests import SearchMessages as SearchMessages
    from svc_proto.api.chat.store_requests import UpdateChat as UpdateChat
    from svc_proto.api.config import ApiConfig as ApiConfig
    from svc_proto.api.config import parse_api_config as parse_api_config
    from svc_proto.api.service import Api as Api
    from svc_proto.settings import ConfigError as ConfigError
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.api.service": "Api",
            "svc_proto.api.config": "ApiConfig parse_api_config",
            "svc_proto.settings": "ConfigError",
            "svc_proto.api.chat.store_requests": (
                "AddMessages BeginTurn CreateChat DeleteChat ForkChat GetChat ListChats ListMessages ListTitles "
                "SearchMessages UpdateChat"
            ),
            "svc_proto.api.chat.records": "ChatPage ChatSession Content Message SearchHit Usage",
        },
    )
