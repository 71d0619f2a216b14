"""The sans-IO core: facts in, commands out (ARCHITECTURE.md).

docs/reference/public-names.md lists the names that embedders may use.
"""

from typing import TYPE_CHECKING

from svc_proto.basics.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from svc_proto.basics.entropy import Entropy as Entropy
    from svc_proto.basics.entropy import new_code as new_code
    from svc_proto.basics.entropy import new_uuid as new_uuid
    from svc_proto.basics.errors import LocalProtocolError as LocalProtocolError
    from svc_proto.basics.errors import ProtocolError as ProtocolError
    from svc_proto.basics.errors import Refused as Refused
    from svc_proto.basics.errors import RemoteProtocolError as RemoteProtocolError
    from svc_proto.basics.moment import Moment as Moment
    from svc_proto.boundary import Core as Core
    from svc_proto.commands import Abort as Abort
    from svc_proto.commands import AppendFile as AppendFile
    from svc_proto.commands import Cancel as Cancel
    from svc_proto.commands import CloseWrite as CloseWrite
    from svc_proto.commands import Command as Command
    from svc_proto.commands import Compute as Compute
    from svc_proto.commands import Connect as Connect
    from svc_proto.commands import Connected as Connected
    from svc_proto.commands import CreateBlob as CreateBlob
    from svc_proto.commands import DeleteBlob as DeleteBlob
    from svc_proto.commands import DiscardBlob as DiscardBlob
    from svc_proto.commands import EnsureSecret as EnsureSecret
    from svc_proto.commands import Exit as Exit
    from svc_proto.commands import FinishBlob as FinishBlob
    from svc_proto.commands import Level as Level
    from svc_proto.commands import Log as Log
    from svc_proto.commands import Notify as Notify
    from svc_proto.commands import OpenedFile as OpenedFile
    from svc_proto.commands import OpenFile as OpenFile
    from svc_proto.commands import Operation as Operation
    from svc_proto.commands import PauseReading as PauseReading
    from svc_proto.commands import Query as Query
    from svc_proto.commands import ReadConfig as ReadConfig
    from svc_proto.commands import ReadFile as ReadFile
    from svc_proto.commands import Ready as Ready
    from svc_proto.commands import ReleaseFile as ReleaseFile
    from svc_proto.commands import ReloadTls as ReloadTls
    from svc_proto.commands import ResizeTerminal as ResizeTerminal
    from svc_proto.commands import ResumeReading as ResumeReading
    from svc_proto.commands import Send as Send
    from svc_proto.commands import SendFile as SendFile
    from svc_proto.commands import Signal as Signal
    from svc_proto.commands import SignalName as SignalName
    from svc_proto.commands import Spawn as Spawn
    from svc_proto.commands import Spawned as Spawned
    from svc_proto.commands import StoreRequest as StoreRequest
    from svc_proto.commands import SweepFolder as SweepFolder
    from svc_proto.commands import TerminalSize as TerminalSize
    from svc_proto.commands import TlsReloaded as TlsReloaded
    from svc_proto.commands import WriteBlob as WriteBlob
    from svc_proto.commands import WriteConfig as WriteConfig
    from svc_proto.commands import WriteFile as WriteFile
    from svc_proto.facts import Accepted as Accepted
    from svc_proto.facts import Address as Address
    from svc_proto.facts import ChannelId as ChannelId
    from svc_proto.facts import Closed as Closed
    from svc_proto.facts import Done as Done
    from svc_proto.facts import Fact as Fact
    from svc_proto.facts import Failed as Failed
    from svc_proto.facts import Failure as Failure
    from svc_proto.facts import FailureKind as FailureKind
    from svc_proto.facts import OperationId as OperationId
    from svc_proto.facts import ReadClosed as ReadClosed
    from svc_proto.facts import Received as Received
    from svc_proto.facts import Reloading as Reloading
    from svc_proto.facts import Sent as Sent
    from svc_proto.facts import Started as Started
    from svc_proto.facts import Stopping as Stopping
    from svc_proto.version import PROTOCOL_VERSION as PROTOCOL_VERSION
    from svc_proto.version import VERSION as VERSION
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "svc_proto.boundary": "Core",
            "svc_proto.basics.moment": "Moment",
            "svc_proto.basics.entropy": "Entropy new_code new_uuid",
            "svc_proto.basics.errors": "LocalProtocolError ProtocolError Refused RemoteProtocolError",
            "svc_proto.facts": (
                "Accepted Address ChannelId Closed Done Fact Failed Failure FailureKind OperationId ReadClosed "
                "Received Reloading Sent Started Stopping"
            ),
            "svc_proto.commands": (
                "Abort AppendFile Cancel CloseWrite Command Compute Connect Connected CreateBlob DiscardBlob "
                "EnsureSecret Exit FinishBlob Level Log OpenFile OpenedFile Operation PauseReading Query "
                "ReadConfig ReadFile Ready ReleaseFile ReloadTls ResumeReading Send SendFile StoreRequest "
                "SweepFolder WriteFile DeleteBlob TerminalSize Spawned Spawn SignalName Signal ResizeTerminal "
                "Notify TlsReloaded WriteBlob WriteConfig"
            ),
            "svc_proto.version": "PROTOCOL_VERSION VERSION",
        },
    )
