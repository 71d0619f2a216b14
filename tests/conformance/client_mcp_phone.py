"""Program of `mcp_phone_suite`: the official Python client uses a phone and prints its observations.

`python client_mcp_phone.py [FOLDER] INSTRUCTIONS`; FOLDER has the package `mcp`, if it is not installed.
"""

import asyncio
import importlib
import json
import site
import sys
from typing import Any


async def run_all_steps(client_flow: dict[str, Any]) -> dict[str, object]:
    """Run all steps of the client as instructed, and return the observations."""
    http: Any = importlib.import_module("httpx2")
    mcp: Any = importlib.import_module("mcp")
    types: Any = importlib.import_module("mcp_types")
    transport: Any = importlib.import_module("mcp.client.streamable_http")
    asked, updated = asyncio.Event(), asyncio.Queue[str]()
    answer = "accept"

    async def control(what: str) -> None:
        async with http.AsyncClient() as client:
            (await client.get(client_flow["control"] + what)).raise_for_status()

    async def elicited(context: Any, params: Any) -> Any:
        asked.set()
        if answer == "cut":
            await control("/cut")
        if answer == "never":
            await asyncio.Event().wait()
        return types.ElicitResult(action="accept")

    async def heard(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            updated.put_nowait(message.params.uri)

    def listener(token: str | None) -> Any:
        return http.AsyncClient(headers={"authorization": f"Bearer {token}"} if token else {}, timeout=30.0)

    def client(way: Any, mode: str = "legacy") -> Any:
        carrier = transport.streamable_http_client(client_flow["url"], http_client=way)
        return mcp.Client(carrier, mode=mode, elicitation_callback=elicited, message_handler=heard)

    async def refused(token: str | None) -> int:
        statuses: list[int] = []

        async def note(response: Any) -> None:
            statuses.append(response.status_code)

        async with listener(token) as way:
            way.event_hooks["response"].append(note)
            try:
                async with client(way):
                    pass
            except BaseException:
                return statuses[-1]
        return 0

    seen: dict[str, object] = {"without a token": await refused(None)}
    seen["without a grant"] = await refused(client_flow["ungranted"])
    async with listener(client_flow["token"]) as way, client(way) as phone:
        names = [tool.name for tool in (await phone.list_tools()).tools]
        results = {name: await phone.call_tool(name, client_flow["calls"].get(name, {})) for name in names}
        seen["tools"] = names
        seen["failed"] = {name: str(result.content) for name, result in results.items() if result.is_error}
        seen["picture"] = results["phone_screenshot"].content[0].mime_type
        await phone.call_tool("phone_open_app", client_flow["calls"]["phone_open_app"])
        found = (await phone.call_tool("phone_current_app")).structured_content or {}
        seen["structured"] = {"package": found.get("package")}
        answer = "never"
        asked.clear()
        call = asyncio.create_task(phone.call_tool("phone_broadcast", client_flow["calls"]["phone_broadcast"]))
        await asked.wait()
        call.cancel()
        seen["cancelled"] = isinstance((await asyncio.gather(call, return_exceptions=True))[0], asyncio.CancelledError)
        answer = "cut"
        seen["resumed"] = (await phone.call_tool("phone_broadcast", client_flow["calls"]["phone_broadcast"])).is_error
        await phone.session.subscribe_resource("phone://notifications")
        await control("/notify")
        seen["updated"] = await asyncio.wait_for(updated.get(), 20.0)
    async with listener(client_flow["token"]) as way, client(way, "auto") as phone:
        seen["stateless"] = phone.session.protocol_version
        found = (await phone.call_tool("phone_current_app")).structured_content or {}
        seen["stateless, structured"] = {"package": found.get("package")}
        asked.clear()
        answer = "accept"
        seen["stateless, asked"] = (
            await phone.call_tool("phone_broadcast", client_flow["calls"]["phone_broadcast"])
        ).is_error
        async with phone.listen(resource_subscriptions=["phone://notifications", "phone://screen"]) as changes:
            await control("/notify")
            seen["listened"] = [
                changes.honored.resource_subscriptions,
                (await asyncio.wait_for(anext(changes), 20.0)).uri,
            ]
    await control("/revoke")
    return {**seen, "revoked": await refused(client_flow["token"])}


if __name__ == "__main__":
    for folder in sys.argv[1:-1]:
        site.addsitedir(folder)
        sys.path.insert(0, folder)  # before packages of the same names in this venv
    sys.stdout.write(json.dumps(asyncio.run(run_all_steps(json.loads(sys.argv[-1])))))
