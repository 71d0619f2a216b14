from svc_proto.basics.dotenv import merge_env_file, select_own_settings


def test_select_own_variables() -> None:
    own = {
        "API_SERVER_KEY": "a b",
        "API_SERVER_HOST": "::1",
        "SVC_BRAND": "hermes",
        "RELAY_PORT": "1",
        "HERMES_RELAY_PORT": "2",
    }
    others = {"HERMES_HOME": "/x", "SVC_HOME": "/x", "PATH": "/x", "OPENAI_API_KEY": "x"}
    assert select_own_settings(own | others) == own


def test_the_environment_overrides_the_file() -> None:
    env = {"RELAY_PORT": "2", "RELAY_HOST": " ", "PATH": "/bin"}
    found = merge_env_file(env, {"RELAY_PORT": "1", "RELAY_HOST": "::1"})
    assert found == {"RELAY_PORT": "2", "RELAY_HOST": "::1", "PATH": "/bin"}
