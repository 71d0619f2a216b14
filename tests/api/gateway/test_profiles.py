import pytest

from svc_proto.commands import WriteConfig
from svc_proto.schema.json_rpc import INVALID_PARAMS
from tests.api.gateway.test_settings import configured
from tests.api.gateway_client import open_gateway
from tests.api.harness import CONFIG, HOME
from tests.api.scripted_agent import TurnHarness

FILE = "model: {default: small, base_url: 'http://127.0.0.1:9/v1'}\nagent: {system_prompt: Be kind.}\n"
SKILL = "---\nname: tea\ndescription: Makes tea\n---\nBoil.\n"


@pytest.mark.parametrize(
    ("text", "model", "provider", "soul"), [(FILE, "small", "custom", "Be kind."), ("", "svc-agent", "builtin", "")]
)
def test_the_one_profile(text: str, model: str, provider: str, soul: str) -> None:
    phone = open_gateway(TurnHarness(files={CONFIG: text, f"{HOME}/skills/tea/SKILL.md": SKILL}))
    (row,) = phone.call("profiles.list", include_sessions=False)["profiles"]
    assert (row["name"], row["model"], row["provider"], row["skill_count"]) == ("default", model, provider, 1)
    found = phone.call("profiles.describe", name="default")
    assert found["model"] == {"provider": provider, "default": model}
    assert (found["name"], found["soul"], found["skills"]) == ("default", soul, [{"name": "tea", "enabled": True}])
    assert {"phone", "memory"} <= {toolset["name"] for toolset in found["toolsets"]}
    assert phone.call("profiles.get_asset", name="default", asset="avatar") == {"found": False}
    assert phone.refusal("profiles.describe", name="work")[0] == 4002


def test_the_picture_of_the_profile() -> None:
    book = TurnHarness()
    phone = open_gateway(book)
    wanted = {"name": "default", "asset": "avatar"}
    for data in ("", "PHN2Zy8+"):
        assert phone.refusal("profiles.set_asset", **wanted, data=data)[0] == INVALID_PARAMS
    assert phone.call("profiles.set_asset", **wanted, data="iVBORw0KGgo=") == {"ok": True, "size": 8}
    url = "data:image/png;base64,iVBORw0KGgo="
    found = {"found": True, "mime": "image/png", "data": url, "size": 8}
    assert phone.call("profiles.get_asset", **wanted) == found
    assert phone.call("profiles.get_asset", name="default", asset="banner") == {"found": False}
    assert phone.call("profiles.list")["profiles"][0]["has_avatar"] is True
    book.refuse = (WriteConfig,)
    assert phone.refusal("profiles.set_asset", **wanted, data="iVBORw0KGgo=")[0] == 5008


def test_what_this_service_lacks_is_an_empty_list() -> None:
    phone = open_gateway(TurnHarness())
    assert phone.call("process.list") == {"processes": []}
    assert phone.refusal("process.kill", process_id="p")[0] == 4004
    assert phone.call("pet.info") == phone.call("pet.gallery") == phone.call("pet.disable") == {"enabled": False}


def test_the_model_of_the_profile_is_chosen() -> None:
    book, phone, _ = configured()
    applied = phone.call("profiles.configure", name="default", model="large", soul="Be rude.")["applied"]
    assert (applied["model"], applied["soul"], applied["skills"]) == (True, True, False)
    described = phone.call("profiles.describe", name="default")
    assert (described["model"]["default"], described["soul"]) == ("large", "Be rude.")
    assert b"default: large" in book.files[CONFIG]
    assert not any(phone.call("profiles.configure", name="default", description="x")["applied"].values())
    for model in ("unknown", "fast"):
        assert phone.refusal("profiles.configure", name="default", model=model)[0] == 4002
    assert phone.refusal("profiles.configure", name="work", model="large")[0] == 4002
