"""Fields of the core's attrs classes: those that `repr` hides, secrets among them, and those that are not compared."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parent.parent
NAMED = re.compile(r"(token|key|secret|password|bearer)$")
# Fields that are named like a secret and contain none: a path, a flag, a hash, a name, or displayed text.
SHOWN = """
    ActivityEntry.thumbnail_token ApiConfig.ssl_key ApprovalRequest.pattern_key Brand.qr_key HostSetting.is_secret
    S3Bucket.key
    AuthorizationConsent.form_token AuthorizationConsent.secret DashboardConfig.ssl_key MediaMarker.token
    NewInvite.own_key PairingMeta.carries_key PairingMeta.own_key RelayConfig.allow_insecure_api_bearer
    RelayConfig.ssl_key PairedSession.knows_key _AddressUsage.key _SessionScope.key
"""
# Fields with another name that are or contain a secret, or are too long for `repr`.
HIDDEN = """
    AgentSettings.servers ApiConfig.host_environment
    AppendInput.data AudioDelta.data EmitAudio.data HttpParameters.headers DesktopInvite.code
    ProviderKeys._file ProviderKeys.environment Transcribe.sound NewInvite.code NewInvite.pairing_url
    NewInvite.qr_payload ConfigProfile.data UpdateSession.members ShellRequest.session SpeechFile.data
    StdioParameters.argv StdioParameters.env Turn.operator TurnRequest.operator VoiceConfig.variables
    RecordingFile.data StoredPicture.data VoiceSessionLifecycle._ring
"""
# Fields in which equal values may differ.
LEFT_OUT = """
    CommandOutcome.text Envelope.size ModelEndpoint.source PhoneResponse.text Principal.until Principal.withheld
    Send.low_priority
"""


@pytest.fixture(scope="module")
def fields() -> dict[str, attrs.Attribute[object]]:
    """Return the attrs fields of the core's classes, by `Class.field`."""
    found: dict[str, attrs.Attribute[object]] = {}
    for path in sorted((ROOT / "svc_proto").rglob("*.py")):
        module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
        for name, kind in vars(module).items():
            if isinstance(kind, type) and attrs.has(kind) and kind.__module__ == module.__name__:
                found |= {f"{name}.{each.name}": each for each in attrs.fields(kind)}
    return found


def test_secret_fields_are_not_in_repr(fields: dict[str, attrs.Attribute[object]]) -> None:
    secret = {name for name in fields if NAMED.search(name)} - {*SHOWN.split()}
    assert {name for name, each in fields.items() if not each.repr} == secret | {*HIDDEN.split()}


def test_compared_fields(fields: dict[str, attrs.Attribute[object]]) -> None:
    assert {name for name, each in fields.items() if not each.eq} == {*LEFT_OUT.split()}
