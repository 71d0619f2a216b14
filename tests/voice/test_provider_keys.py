import pytest
from attrs import evolve

from svc_proto.voice.provider_keys import ProviderKeys
from svc_proto.voice_config import PROVIDER_ENDPOINTS, ProviderEndpoint
from tests.voice.harness import CONFIG, VoiceHarness
from tests.voice.providers.provider_harness import problem


def refreshed(environment: dict[str, str], dotenv: str | None) -> ProviderKeys:
    rig = VoiceHarness({} if dotenv is None else {"/h/.env": dotenv}, config=evolve(CONFIG, variables=environment))
    assert rig.spawn(rig.voice.refresh_keys()) == [None]
    return rig.voice.keys


def test_the_environment_comes_first_and_only_voice_keys_are_kept() -> None:
    keys = refreshed({"XAI_API_KEY": "env"}, "XAI_API_KEY=file\nOPENAI_API_KEY=other\nOPENAI_BASE_URL=http://x\n")
    assert keys.get("XAI_API_KEY") == "env"
    assert keys.get("GROK_API_KEY", "OPENAI_API_KEY") == "other"
    assert keys.get("OPENAI_BASE_URL") == "http://x"
    assert keys.get("GROK_API_KEY") is None
    assert keys.present_variables("OPENAI_API_KEY", "GROK_API_KEY", "XAI_API_KEY") == ["OPENAI_API_KEY", "XAI_API_KEY"]
    keys = refreshed({}, "API_SERVER_KEY=secret\nXAI_API_KEY=very secret\n")
    assert keys.get("API_SERVER_KEY") is None
    assert "secret" not in repr(keys)
    assert refreshed({}, None).present_variables("XAI_API_KEY") == []


def test_a_line_that_cannot_be_read_is_logged_with_its_number() -> None:
    """The keys that were read before do not outlive their file."""
    rig = VoiceHarness({}, config=CONFIG)
    for text, present in (("XAI_API_KEY=a", ["XAI_API_KEY"]), ("XAI_API_KEY=a\nB='", [])):
        rig.disk.put("/h/.env", text.encode())
        assert rig.spawn(rig.voice.refresh_keys()) == [None]
        assert rig.voice.keys.present_variables("XAI_API_KEY") == present
    (told,) = [record.fields for record in rig.logs if record.event == ".env not read"]
    assert str(told["problem"]).startswith("line 2: ")


def test_the_fingerprint_changes_with_the_keys_alone() -> None:
    first = refreshed({"XAI_API_KEY": "a"}, None).fingerprint()
    assert first == refreshed({}, "XAI_API_KEY=a").fingerprint()
    assert first == refreshed({"XAI_API_KEY": "a"}, "OPENAI_BASE_URL=http://x").fingerprint()
    assert first != refreshed({"XAI_API_KEY": "b"}, None).fingerprint()
    assert first != refreshed({"GROK_API_KEY": "a"}, None).fingerprint()


@pytest.mark.parametrize("endpoint", PROVIDER_ENDPOINTS, ids=lambda endpoint: f"{endpoint.name} {endpoint.url}")
def test_key_is_found_under_all_its_names(endpoint: ProviderEndpoint) -> None:
    for place in range(len(endpoint.keys)):
        access = ProviderKeys({name: f"of-{name}" for name in endpoint.keys[place:]}).credentials_for(endpoint)
        assert (access.endpoint, access.url, access.key) == (endpoint.name, endpoint.url, f"of-{endpoint.keys[place]}")
        assert access.key not in repr(access)
    assert (
        ProviderKeys({endpoint.suggested_variable: "key", endpoint.url_variable: "http://x/v1/"})
        .credentials_for(endpoint)
        .url
        == "http://x/v1"
    )
    variable = f"{endpoint.name.upper()}_API_KEY"
    missing = problem(lambda: ProviderKeys({}).credentials_for(endpoint))
    assert (missing.variable, str(missing)) == (variable, f"{variable} not set")
    odd = problem(lambda: ProviderKeys({variable: "two words"}).credentials_for(endpoint))
    assert str(odd) == f"the key of {endpoint.name} has characters that no header can carry"
