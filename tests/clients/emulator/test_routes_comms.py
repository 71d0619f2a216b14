import pytest

from clients.phone.emulator.environment import Fix, Radio
from clients.phone.emulator.routes_comms import sms_parts
from clients.phone.emulator.sample_apps import DIALER, MAIL, MAPS, MESSAGES
from svc_proto.phone.backend import DelayedReply
from svc_proto.phone.outgoing_actions import SMS_SCHEMA
from tests.clients.emulator.driver import EmulatorDriver, check


def test_location_is_the_most_accurate_fix(driver: EmulatorDriver) -> None:
    place = {"latitude": 52.0116, "longitude": 4.3571, "altitude": 3.2, "accuracy": 12.5, "provider": "gps"}
    assert driver.get("/location") == {**place, "timestamp": int(driver.now.wall * 1000), "staleness_ms": 0}


def test_an_old_location_has_a_warning(driver: EmulatorDriver) -> None:
    wall = driver.now.wall - 599.0
    driver.device.fixes = (Fix(latitude=1.0, longitude=2.0, accuracy=5.0, wall=wall),)
    result = driver.get("/location")
    assert (result["timestamp"], result["staleness_ms"]) == (int(wall * 1000), 600_000)
    assert "warning" in result
    assert "altitude" not in result


def test_location_refused(driver: EmulatorDriver) -> None:
    driver.device.fixes = (Fix(latitude=1.0, longitude=2.0, accuracy=0.0),)
    driver.refused("GET /location")
    driver.device.location_on = False
    driver.refused("GET /location")
    driver.device.permissions.location = False
    assert "error_code" not in driver.refused("GET /location")


def test_search_contacts(driver: EmulatorDriver) -> None:
    assert driver.post("/search_contacts", query="ADA") == {
        "count": 1,
        "query": "ADA",
        "contacts": [
            {
                "id": 41,
                "name": "Ada Lovelace",
                "phones": [
                    {"number": "+15550100", "type": "mobile", "label": "Mobile"},
                    {"number": "+15550105", "type": "work", "label": "Work"},
                    {"number": "+15550103", "type": "fax_work", "label": "Fax"},
                    {"number": "+15550101", "type": "custom", "label": "Watch"},
                ],
            }
        ],
    }
    assert driver.post("/search_contacts", query="o")["count"] == 4
    assert driver.post("/search_contacts", query="o", limit="1")["count"] == 1
    assert driver.post("/search_contacts", query="o", limit=0)["count"] == 1
    assert driver.post("/search_contacts", query="zz") == {"count": 0, "query": "zz", "contacts": []}
    driver.refused("/search_contacts", query=" ")
    driver.device.permissions.contacts = False
    refused = driver.refused("/search_contacts", query="Ada")
    permission = "android.permission.READ_CONTACTS"
    assert (refused["error_code"], refused["code"]) == ("permission_denied", "permission_denied")
    assert (refused["required_permission"], refused["permission"]) == (permission, permission)


def test_call(driver: EmulatorDriver) -> None:
    assert driver.post("/call", number="+1 (555) 0100") == {"number": "+1 (555) 0100", "mode": "auto_dial"}
    assert driver.get("/current_app") == {"package": DIALER}
    assert driver.backend.outbox[-1].kind == "call"
    driver.post("/tap_text", text="End call")
    for bad in ("1", "call me", "", None):
        driver.refused("/call", number=bad)
    driver.device.permissions.call = False
    result = driver.post("/call", number=112)
    assert (result["number"], result["mode"]) == ("112", "dialer_opened")
    assert isinstance(result["note"], str)
    assert "112" in driver.texts()
    driver.post("/tap_text", text="Call")
    assert [item.kind for item in driver.backend.outbox] == ["call", "dialer", "call"]
    EmulatorDriver([]).refused("/call", number="112")


def test_send_sms(driver: EmulatorDriver) -> None:
    result = driver.post("/send_sms", to="+15550100", body="hi")
    assert isinstance(result.pop("summary"), str)
    assert result == {"status": "sent", "android_result": "RESULT_OK", "parts": 1, "to": "+15550100", "length": 2}
    (item,) = driver.backend.outbox
    assert (item.kind, item.details) == ("sms", {"to": "+15550100", "body": "hi", "parts": 1})
    assert driver.post("/send_sms", to="+15550100", body="x" * 200)["parts"] == 2


def test_send_sms_fails_as_phones_do(driver: EmulatorDriver) -> None:
    refused = driver.refused("/send_sms", to="1")
    assert (refused["status"], refused["expected_schema"]) == ("failed", SMS_SCHEMA)
    refused = driver.refused("/send_sms", to="Ada", body="hi")
    assert (refused["status"], refused["reason"]) == ("failed", "invalid_recipient")
    driver.device.radio = Radio.NO_SERVICE
    refused = driver.refused("/send_sms", to="12", body="hi")
    assert (refused["status"], refused["android_result"]) == ("failed", "RESULT_ERROR_NO_SERVICE")
    assert refused["parts"] == 1
    driver.device.radio = Radio.NO_ANSWER
    outcome = driver.perform("POST", "/send_sms", {"to": "12", "body": "hi"})
    check(outcome)
    assert isinstance(outcome, DelayedReply)
    assert (outcome.seconds, outcome.reply.status) == (15.0, 400)
    result = outcome.reply.result
    assert (result["status"], result["reason"]) == ("timeout", "carrier_ack_timeout")
    assert (result["android_result"], result["parts"]) == ("timeout", 1)
    driver.device.permissions.sms = False
    refused = driver.refused("/send_sms", to="12", body="hi")
    assert (refused["status"], refused["reason"]) == ("blocked", "permission_denied")
    assert refused["error_code"] == "permission_denied"
    assert refused["required_permission"] == "android.permission.SEND_SMS"
    assert not driver.backend.outbox


@pytest.mark.parametrize(
    ("text", "parts"),
    [("x" * 160, 1), ("x" * 161, 2), ("€" * 80, 1), ("€" * 81, 2), ("я" * 70, 1), ("я" * 71, 2), ("x" * 307, 3)],
)
def test_sms_parts(text: str, parts: int) -> None:
    assert sms_parts(text) == parts


def test_share_media_opens_the_share_sheet(driver: EmulatorDriver) -> None:
    result = driver.post("/share_media", media="tok", file_name="a.PNG", text="Look", title="Share with")
    assert isinstance(result.pop("summary"), str)
    told = {"ok": True, "status": "share_opened", "mode": "user_confirmed_share"}
    assert result == {**told, "attachments": 1, "content_types": ["image/png"]}
    assert driver.texts()[0] == "Share with"
    (item,) = driver.backend.outbox
    assert item.kind == "share"
    assert item.details == {"media": ["tok"], "text": "Look", "package": "", "title": "Share with"}
    driver.post("/tap", nodeId=driver.node_id(text="Mail"))
    assert driver.get("/current_app") == {"package": MAIL}


def test_share_text_into_an_app(driver: EmulatorDriver) -> None:
    result = driver.post("/share_media", text="first", body="second", package=MAIL)
    assert (result["package"], result["attachments"], result["content_types"]) == (MAIL, 0, [])
    assert "first" in driver.texts()
    assert driver.post("/share_media", path="/a.png", package=MAPS)["package"] == MAPS
    refused = driver.refused("/share_media", text="x", package="com.example.none")
    assert (refused["status"], refused["reason"]) == ("failed", "activity_not_found")


def test_send_mms(driver: EmulatorDriver) -> None:
    result = driver.post("/send_mms", to="+15550100", text="Look", attachments=[{"media": "a"}, {"media": "b"}])
    assert isinstance(result.pop("summary"), str)
    told = {"ok": True, "status": "compose_opened", "mode": "user_confirmed_mms_handoff", "package": MESSAGES}
    assert result == {**told, "attachments": 2, "content_types": ["application/octet-stream"] * 2, "to": "+15550100"}
    assert {"+15550100", "Look"} <= set(driver.texts())
    (item,) = driver.backend.outbox
    assert (item.kind, item.details["to"], item.details["media"]) == ("mms", "+15550100", ["a", "b"])
    driver.post("/tap_text", text="Send")
    assert driver.backend.outbox[-1].details["fields"] == {"to": "+15550100", "message": "Look"}
    assert EmulatorDriver([]).refused("/send_mms", to="12", text="x")["reason"] == "activity_not_found"
