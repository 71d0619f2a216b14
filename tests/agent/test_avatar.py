from base64 import b64encode

import pytest

from svc_proto.agent.avatar import MAX_AVATAR, parse_avatar

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (f"data:image/gif;base64,{b64encode(PNG).decode()}", "image/png"),
        (b64encode(b"\xff\xd8\xff\xe0").decode(), "image/jpeg"),
        (b64encode(b"<svg/>").decode(), None),
        (b64encode(PNG + bytes(MAX_AVATAR - len(PNG))).decode(), "image/png"),
        (b64encode(PNG + bytes(MAX_AVATAR - len(PNG) + 1)).decode(), None),
        *((content, None) for content in ("?", "")),
    ],
)
def test_pictures(content: str, kind: str | None) -> None:
    found = parse_avatar(content)
    assert (None if found is None else found.kind) == kind
    assert found is None or parse_avatar(found.url) == found
