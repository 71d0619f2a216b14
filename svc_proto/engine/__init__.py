"""What drives a service: the core, its channels, exchanges, sockets, flows and upstream calls.

The names that embedders may use: docs/reference/public-names.md.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.boundary import Core as Core
    from svc_proto.engine.admission import Door as Door
    from svc_proto.engine.body_streams import BodyStream as BodyStream
    from svc_proto.engine.body_streams import FilePart as FilePart
    from svc_proto.engine.body_streams import ResponseWriter as ResponseWriter
    from svc_proto.engine.body_streams import send_file as send_file
    from svc_proto.engine.channel import Channel as Channel
    from svc_proto.engine.child_process import Child as Child
    from svc_proto.engine.child_process import ChildHandler as ChildHandler
    from svc_proto.engine.child_process import Finished as Finished
    from svc_proto.engine.child_process import run_command as run_command
    from svc_proto.engine.child_process import spawn_child as spawn_child
    from svc_proto.engine.core import Engine as Engine
    from svc_proto.engine.core import Service as Service
    from svc_proto.engine.files import ensure_secret as ensure_secret
    from svc_proto.engine.files import read_file as read_file
    from svc_proto.engine.files import read_yaml as read_yaml
    from svc_proto.engine.flow import Flow as Flow
    from svc_proto.engine.flow import Task as Task
    from svc_proto.engine.flow import ask as ask
    from svc_proto.engine.flow import sleep as sleep
    from svc_proto.engine.flow import wait as wait
    from svc_proto.engine.http_client import Fetched as Fetched
    from svc_proto.engine.http_client import bearer as bearer
    from svc_proto.engine.http_client import fetch as fetch
    from svc_proto.engine.http_client import websocket as websocket
    from svc_proto.engine.http_client import whole as whole
    from svc_proto.engine.message import STRANGER as STRANGER
    from svc_proto.engine.message import Request as Request
    from svc_proto.engine.message import Response as Response
    from svc_proto.engine.message import Streamed as Streamed
    from svc_proto.engine.message import empty_response as empty_response
    from svc_proto.engine.message import json_response as json_response
    from svc_proto.engine.message import parse_json as parse_json
    from svc_proto.engine.request_origin import Proxies as Proxies
    from svc_proto.engine.request_origin import is_from_this_host as is_from_this_host
    from svc_proto.engine.request_origin import is_local as is_local
    from svc_proto.engine.response_readers import BodyReader as BodyReader
    from svc_proto.engine.response_readers import EventReader as EventReader
    from svc_proto.engine.response_readers import events as events
    from svc_proto.engine.response_readers import pieces as pieces
    from svc_proto.engine.router import BODY_LIMIT as BODY_LIMIT
    from svc_proto.engine.router import Handler as Handler
    from svc_proto.engine.router import Kind as Kind
    from svc_proto.engine.router import Match as Match
    from svc_proto.engine.router import Route as Route
    from svc_proto.engine.router import Router as Router
    from svc_proto.engine.server_channel import HttpApp as HttpApp
    from svc_proto.engine.server_channel import ServerChannel as ServerChannel
    from svc_proto.engine.websocket import Socket as Socket
    from svc_proto.engine.websocket import SocketHandler as SocketHandler
    from svc_proto.store_requests import DeleteSession as DeleteSession
    from svc_proto.store_requests import LoadSessions as LoadSessions
    from svc_proto.store_requests import Ping as Ping
    from svc_proto.store_requests import SaveSession as SaveSession
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.boundary": "Core",
            "svc_proto.engine.core": "Engine Service",
            "svc_proto.engine.channel": "Channel",
            "svc_proto.engine.admission": "Door",
            "svc_proto.engine.server_channel": "HttpApp ServerChannel",
            "svc_proto.engine.router": "BODY_LIMIT Handler Kind Match Route Router",
            "svc_proto.engine.message": ("STRANGER Request Response Streamed empty_response json_response parse_json"),
            "svc_proto.engine.body_streams": "BodyStream FilePart ResponseWriter send_file",
            "svc_proto.engine.websocket": "Socket SocketHandler",
            "svc_proto.engine.flow": "Flow Task ask sleep wait",
            "svc_proto.engine.http_client": "Fetched bearer fetch websocket whole",
            "svc_proto.engine.response_readers": "BodyReader EventReader events pieces",
            "svc_proto.engine.child_process": "Child ChildHandler Finished run_command spawn_child",
            "svc_proto.engine.files": "ensure_secret read_file read_yaml",
            "svc_proto.engine.request_origin": "Proxies is_from_this_host is_local",
            "svc_proto.store_requests": "DeleteSession LoadSessions Ping SaveSession",
        },
    )
