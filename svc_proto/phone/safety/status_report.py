"""Members of `bridge.status` that the gates add to the backend's report (wire bridge 1.3)."""

from collections.abc import Mapping

from svc_proto.basics.moment import Moment
from svc_proto.phone.safety.master_toggle import MasterToggle
from svc_proto.phone.safety.permissions import SystemPermissions
from svc_proto.schema.json_object import JsonObject

__all__ = ["UNKNOWN_APP", "with_gate_status"]

UNKNOWN_APP = "unknown"  # wire bridge 1.3: the app in front cannot be determined without the accessibility service


def with_gate_status(
    base: Mapping[str, object],
    now: Moment,
    *,
    sideload: bool,
    master: MasterToggle,
    consents: SystemPermissions,
    unattended: bool,
    blocked: int,
    verbs: int,
) -> dict[str, object]:
    """Return a copy of a backend's status `base` with the members that the gates add.

    On a store build Device Control is reported as unsupported and off. `master_enabled` is false while the
    accessibility service is unbound, although the toggle does not change; the app in front is unknown then.
    """
    accessible = sideload and consents.accessibility
    status = JsonObject(base)
    bridge = {
        **status.get_object("bridge"),
        "device_control_supported": sideload,
        "master_enabled": accessible and master.is_armed,
        "accessibility_granted": accessible,
        "screen_capture_granted": sideload and consents.screen_capture,
        "overlay_granted": sideload and consents.overlay,
    }
    if consents.notification_listener is not None:  # reported on all builds
        bridge["notification_listener_granted"] = consents.notification_listener
    status["bridge"] = bridge
    status["safety"] = {
        "blocklist_count": blocked if sideload else 0,
        "destructive_verbs_count": verbs if sideload else 0,
        "auto_disable_minutes": master.idle_minutes if sideload else 0,
        "auto_disable_at_ms": master.auto_disable_at_ms(now),
    }
    status["unattended"] = {
        "credential_lock_detected": False,
        **status.get_object("unattended"),
        "supported": sideload,
        "enabled": sideload and unattended,
    }
    status["accessibility_enabled"] = accessible
    if not accessible:
        if "current_app" in status:
            status["current_app"] = UNKNOWN_APP
        device = status.get_object("device")
        if "current_app" in device:
            status["device"] = {**device, "current_app": UNKNOWN_APP}
    return status
