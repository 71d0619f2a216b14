from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve

from svc_proto.agent.message_shapes import IMAGE_NOT_TAKEN
from svc_proto.agent.request_shaper import NO_IMAGES
from svc_proto.agent.tool_images import ABOUT, MAX_PICTURES, NOT_TAKEN, TOO_OLD, ToolImages
from svc_proto.agent.tool_selection import SMALL_CONTEXT
from svc_proto.agent.tools.tool import ToolImage, ToolResult
from tests.agent.harness import ROUTE
from tests.agent.test_mcp_server import READING, Kept
from tests.support.servers.mcp_program import McpProgram
from tests.support.servers.model_server import calls, plain, refusal

PNG = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(1)).decode()
URL = f"data:image/png;base64,{PNG}"


class Camera(McpProgram):
    def tools_call(self, name: str, arguments: Mapping[str, Any], **params: object) -> Mapping[str, Any] | None:
        return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}


def behind_results(request: Any) -> list[Any]:
    """Return the contents of the user's messages behind the second message of a request."""
    rows = request["messages"]
    return [row["content"] for place, row in enumerate(rows) if row["role"] == "user" and place > 1]


def test_image_results_are_sent_to_the_model() -> None:
    world = Kept(Camera, model=[calls(("mcp_shop_read", {}), ("mcp_shop_read", {"a": 1})), plain("A cat.")], **READING)
    assert world.once(evolve(ROUTE, context=SMALL_CONTEXT)) == "A cat."
    row = [{"type": "text", "text": f"{ABOUT}\nmcp_shop_read:"}, {"type": "image_url", "image_url": {"url": URL}}]
    assert behind_results(world.model.seen[1]) == [row, row]
    assert [one["role"] for one in world.model.seen[1]["messages"][-4:]] == ["tool", "tool", "user", "user"]
    assert PNG not in str(world.host.rows)  # the stored row only names the image


@pytest.mark.parametrize("status", [400, 415, 422])
def test_model_without_images_gets_a_text(status: int) -> None:
    model = [calls(("mcp_shop_read", {})), refusal(status, "images are not supported"), plain("I cannot see it.")]
    world = Kept(Camera, model=model, **READING)
    assert world.once() == "I cannot see it."
    assert behind_results(world.model.seen[2]) == [f"{ABOUT}\nmcp_shop_read:\n{IMAGE_NOT_TAKEN}"]
    assert world.host.reasoning == f"{NO_IMAGES}\n"


def test_request_refused_without_images_fails() -> None:
    model = [calls(("mcp_shop_read", {})), refusal(400, "no"), refusal(400, "no")]
    world = Kept(Camera, model=model, **READING)
    assert world.once() == ""
    assert len(world.model.seen) == 3


def test_known_model_without_images_gets_text_at_once() -> None:
    (row,) = ToolImages(takes=False).rows([("look", ToolResult("x", (ToolImage("image/png", PNG),)))])
    assert row["content"] == NOT_TAKEN.format(name="look")


def test_older_images_are_dropped() -> None:
    pictures, half = ToolImages(takes=True), ToolImage("image/png", "A" * (MAX_PICTURES // 2))
    quarter = ToolImage("image/png", "A" * (MAX_PICTURES // 4))
    first, other = pictures.rows([("one", ToolResult("", (quarter, quarter))), ("two", ToolResult("", (half,)))])
    assert (first["content"], isinstance(other["content"], list)) == (TOO_OLD.format(name="one"), True)
    rest = ToolImage("image/png", "A" * (MAX_PICTURES // 2 - 2 * len("data:image/png;base64,")))
    (third,) = pictures.rows([("three", ToolResult("", (rest,))), ("none", ToolResult(""))])
    assert isinstance(other["content"], list)
    assert isinstance(third["content"], list)
