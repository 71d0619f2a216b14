"""Framework of a service: core, channels, exchanges, WebSockets, flows and client requests.

docs/reference/public-names.md lists the names that embedders may use.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.boundary import Core as Core
    from svc_proto.engine.admission import AdmissionControl as AdmissionControl
    from svc_proto.engine.body_streams import BodyStream as BodyStream
    from svc_proto.engine.body_streams import FilePart as FilePart
    from svc_proto.engine.body_streams import ResponseWriter as ResponseWriter
    from svc_proto.engine.body_streams import send_file_part as send_file_part
    from svc_proto.engine.channel import Channel as Channel
    from svc_proto.engine.child_process import ChildHandler as ChildHandler
    from svc_proto.engine.child_process import ChildProcess as ChildProcess
    from svc_proto.engine.child_process import CommandResult as CommandResult
    from svc_proto.engine.child_process import run_command as run_command
    from svc_proto.engine.child_process import spawn as spawn
    from svc_proto.engine.core import Engine as Engine
    from svc_proto.engine.core import Service as Service
    from svc_proto.engine.files import ensure_secret as ensure_secret
    from svc_proto.engine.files import read_file as read_file
    from svc_proto.engine.files import read_yaml as read_yaml
    from svc_proto.engine.flow import Flow as Flow
    from svc_proto.engine.flow import Task as Task
    from svc_proto.engine.flow import run_operation as run_operation
    from svc_proto.engine.flow import sleep as sleep
    from svc_proto.engine.flow import wait as wait
    from svc_proto.engine.http_client import HttpResult as HttpResult
    from svc_proto.engine.http_client import bearer_header as bearer_header
    from svc_proto.engine.http_client import buffered as buffered
    from svc_proto.engine.http_client import fetch as fetch
    from svc_proto.engine.http_client import websocket_upgrade as websocket_upgrade
    from svc_proto.engine.message import ANONYMOUS as ANONYMOUS
    from svc_proto.engine.message import Request as Request
    from svc_proto.engine.message import Response as Response
    from svc_proto.engine.message import StreamedResponse as StreamedResponse
    from svc_proto.engine.message import empty_response as empty_response
    from svc_proto.engine.message import json_response as json_response
    from svc_proto.engine.message import parse_json as parse_json
    from svc_proto.engine.request_origin import TrustedProxies as TrustedProxies
    from svc_proto.engine.request_origin import is_from_this_host as is_from_this_host
    from svc_proto.engine.request_origin import is_local as is_local
    from svc_proto.engine.response_readers import BodyReader as BodyReader
    from svc_proto.engine.response_readers import EventReader as EventReader
    from svc_proto.engine.response_readers import event_stream as event_stream
    from svc_proto.engine.response_readers import streamed as streamed
    from svc_proto.engine.router import BODY_LIMIT as BODY_LIMIT
    from svc_proto.engine.router import Handler as Handler
    from svc_proto.engine.router import Route as Route
    from svc_proto.engine.router import RouteKind as RouteKind
    from svc_proto.engine.router import RouteMatch as RouteMatch
    from svc_proto.engine.router import Router as Router
    from svc_proto.engine.server_channel import HttpApp as HttpApp
    from svc_proto.engine.server_channel import ServerChannel as ServerChannel
    from svc_proto.engine.websocket import WebSocketConnection as WebSocketConnection
    from svc_proto.engine.websocket import WebSocketHandler as WebSocketHandler
    from svc_proto.store_requests import CheckStore as CheckStore
    from svc_proto.store_requests import DeleteSession as DeleteSession
    from svc_proto.store_requests import LoadSessions as LoadSessions
    from svc_proto.store_requests import SaveSession as SaveSession
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.boundary": "Core",
            "svc_proto.engine.core": "Engine Service",
            "svc_proto.engine.channel": "Channel",
            "svc_proto.engine.admission": "AdmissionControl",
            "svc_proto.engine.server_channel": "HttpApp ServerChannel",
            "svc_proto.engine.router": "BODY_LIMIT Handler RouteKind RouteMatch Route Router",
            "svc_proto.engine.message": (
                "ANONYMOUS Request Response StreamedResponse empty_response json_response parse_json"
            ),
            "svc_proto.engine.body_streams": "BodyStream FilePart ResponseWriter send_file_part",
            "svc_proto.engine.websocket": "WebSocketConnection WebSocketHandler",
            "svc_proto.engine.flow": "Flow Task run_operation sleep wait",
            "svc_proto.engine.http_client": "HttpResult bearer_header fetch websocket_upgrade buffered",
            "svc_proto.engine.response_readers": "BodyReader EventReader event_stream streamed",
            "svc_proto.engine.child_process": "ChildProcess ChildHandler CommandResult run_command spawn",
            "svc_proto.engine.files": "ensure_secret read_file read_yaml",
            "svc_proto.engine.request_origin": "TrustedProxies is_from_this_host is_local",
            "svc_proto.store_requests": "DeleteSession LoadSessions CheckStore SaveSession",
        },
    )
