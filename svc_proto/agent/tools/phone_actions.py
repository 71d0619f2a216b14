"""Acts of an agent on a phone: looks, typing, keys, apps and waits (wire bridge 3.4, 3.5)."""

from svc_proto.agent.tools.phone_result import body_of
from svc_proto.agent.tools.phone_screen import TEXT_LIMIT, PhoneScreen, ScreenRow, find_again
from svc_proto.agent.tools.phone_screen_text import describe_row, enter_key, quote
from svc_proto.agent.tools.phone_touches import TouchActions, device_of, members_of, rows_with
from svc_proto.agent.tools.tool import Arguments
from svc_proto.basics import strict_json
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow, sleep
from svc_proto.schema.json_object import JsonObject

__all__ = ["PhoneActions"]

WAIT_DEFAULT = 5_000  # ms for a text to come or go
WAIT_PAUSE = 0.3  # s between two looks of a wait
MAX_NAMES = 60  # apps that are listed where none has the wanted name
FOUND_LIMIT = 20  # rows that `phone_find_nodes` returns by default
NO_ENTER = (
    "this phone takes no Enter, and no keyboard with such a key is shown",
    "Press the app's own button, or choose a suggestion on the screen.",
)


class PhoneActions(TouchActions):
    """Acts on the phones behind one link, touches included."""

    # --- reading --------------------------------------------------------------------------------------------------

    def screen(self, arguments: Arguments) -> Flow[str]:
        """Read the phone's screen, and return it as text with a number for references."""
        device = device_of(arguments)
        found = yield from self.looks.read(device)
        return self.looks.show(device, found, bounds=arguments.get("include_bounds") is True)

    def find_nodes(self, arguments: Arguments) -> Flow[str]:
        """Return, as text, the rows of the screen that match the given text, class and clickable state.

        At most `limit` rows are returned, by default 20.
        """
        device = device_of(arguments)
        screen = yield from self.looks.read(device)
        text, class_name = str(arguments.get("text", "")).lower(), str(arguments.get("class_name", ""))
        clickable = arguments.get("clickable")
        rows = [
            row
            for row in screen.rows
            if any(text in each.lower() for each in row.texts or ("",))
            and (not class_name or class_name.rpartition(".")[2] == row.node.class_name)
            and (clickable is None or row.node.clickable is clickable)
        ]
        return self.looks.show(device, screen, rows=rows[: JsonObject.of(arguments).integer("limit") or FOUND_LIMIT])

    def describe_node(self, arguments: Arguments) -> Flow[str]:
        """Return the row of a referenced node as text, and the phone's own description of it as JSON."""
        device = device_of(arguments)
        screen = yield from self.looks.read(device)
        row = self.resolve(device, arguments, screen)
        body = {**members_of(device), "nodeId": row.node.node_id}
        answer = yield from self.link.call("POST", "/describe_node", body)
        found = body_of(answer)
        kept = {name: value for name, value in found.items() if value is not None and value != "" and name != "nodeId"}
        return f"{describe_row(row)}\n{strict_json.dumps(kept)}"

    # --- text and keys --------------------------------------------------------------------------------------------

    def type_text(self, arguments: Arguments) -> Flow[str]:
        """Put text into a field (replace, append or clear), and return a report of what the field then holds.

        With `enter`, Enter is pressed afterwards. Raises `ToolError` if that fails, such as for a field that is
        missing or disabled, or cannot be focused or appended to.
        """
        device, mode = device_of(arguments), str(arguments.get("mode", "replace"))
        text = str(arguments.get("text", ""))
        if mode == "append" and not text:
            raise ToolError("the argument text is missing")
        before = yield from self.read_before(device)
        if before is None:
            before = yield from self.looks.read(device)  # raises the reason
        row, now = yield from self._field(device, arguments, before)
        if not row.node.enabled:
            raise ToolError(f"{describe_row(row)} is disabled. Nothing was typed.")
        if mode == "append":
            if row.node.hides_text or len(row.node.text) >= TEXT_LIMIT:
                raise ToolError(
                    "this field cannot be read whole, so appending would lose what it holds. Nothing was typed."
                )
            text = row.node.content + text
        empties = mode == "clear" or not text.strip()
        told = f"{'emptied' if empties else 'typed into'} {row.node.number} {row.node.kind}{_name_of(row)}"
        if empties:
            yield from self._empty(device)
        else:
            yield from self.call("/type", device, {"text": text})
        after, settled = yield from self.looks.settle(device, now)
        told = f"{told}; {_holds(find_again(row, now, after), '' if empties else text)}"
        added = str(arguments.get("text", ""))
        if mode == "append" and added.strip() and row.node.content.endswith(added):
            told = f"{told}. It held this text before, so it now holds it twice"
        if arguments.get("enter") is not True:
            return self.report(device, told, before, after, settled=settled)
        yield from self._enter(device, after)
        return (yield from self.finish(device, f"{told}; then Enter", after))

    def press_key(self, arguments: Arguments) -> Flow[str]:
        """Press a key and return the report.

        Volume keys use the media route. Paste and delete type a field's text anew, if the screen can be read.

        Enter is the phone's key, or else that of the on-screen keyboard.
        """
        device, key = device_of(arguments), str(arguments["key"])
        before = yield from self.read_before(device)
        told = f"pressed {key}"
        if key in ("volume_up", "volume_down"):
            answer = yield from self.call("/media", device, {"action": key})
            level = answer.get("level")
            return told if level is None else f"{told}; the volume is {level}"
        if key == "enter":
            yield from self._enter(device, before)
        elif key in ("paste", "delete") and before is not None:
            told = f"{told}; {(yield from self._edit(device, key, before))}"
        else:
            yield from self.call("/press_key", device, {"key": key})
        return (yield from self.finish(device, told, before, opens=key in ("home", "recents")))

    # --- the rest -------------------------------------------------------------------------------------------------

    def open_app(self, arguments: Arguments) -> Flow[str]:
        """Open an app by its package, or by the name that it has on the phone, and return the report."""
        device, wanted = device_of(arguments), str(arguments["package"])
        before = yield from self.read_before(device)
        package = wanted if "." in wanted else (yield from self._package_of(device, wanted))
        yield from self.call("/open_app", device, {"package": package})
        return (yield from self.finish(device, f"opened {package}", before, opens=True))

    def return_to_app(self, path: str, arguments: Arguments) -> Flow[str]:
        """Bring the chat app to the front, and return the report."""
        device = device_of(arguments)
        before = yield from self.read_before(device)
        yield from self.call(path, device, {})
        return (yield from self.finish(device, "brought the chat app to the front", before, opens=True))

    def wait(self, arguments: Arguments) -> Flow[str]:
        """Wait for a time, or until a text is shown or gone; return a report.

        Raises `ToolError` if the text is not shown, or not gone, in time.
        """
        device, wanted = device_of(arguments), arguments.get("text")
        given = JsonObject.of(arguments).integer("ms")
        ms = WAIT_DEFAULT if given is None else given
        seconds = ms / 1000
        if wanted is None:
            answer = yield from self.call("/wait", device, {"ms": ms})
            return strict_json.dumps(answer)
        text, gone = str(wanted), arguments.get("gone") is True
        engine = self.link.engine
        begun = engine.now.mono
        while True:
            screen = yield from self.looks.read(device)
            passed = engine.now.mono - begun
            if bool(rows_with(screen, text, exact=False)) is not gone:
                state = "gone" if gone else "shown"
                return f"{quote(text)} is {state} after {passed:.1f} s\n{self.looks.show(device, screen)}"
            if passed >= seconds:
                state = "still shown" if gone else "not shown"
                raise ToolError(f"{quote(text)} is {state} after {passed:.1f} s", self.looks.show(device, screen))
            yield from sleep(engine, min(WAIT_PAUSE, seconds - passed))

    def get_apps(self, arguments: Arguments) -> Flow[str]:
        """Return the phone's apps, one line for each."""
        rows = yield from self._apps(device_of(arguments))
        return "\n".join(f"{package} {quote(label)}" for package, label in rows) or "(no apps)"

    # --- helpers --------------------------------------------------------------------------------------------------

    def _field(self, device: str, arguments: Arguments, before: PhoneScreen) -> Flow[tuple[ScreenRow, PhoneScreen]]:
        """Return the field to type into, and the last screen that was read. Raises `ToolError`.

        Without `nodeId` that is the field with the focus, else the first one. With it, a field without the focus is
        tapped first, unless it is the only one.
        """
        fields = [row for row in before.rows if row.node.editable]
        if arguments.get("nodeId") is None:
            if not fields:
                raise ToolError("there is no text field on the screen", self.looks.show(device, before))
            return next((row for row in fields if row.node.focused), fields[0]), before
        row = self.resolve(device, arguments, before)
        if not row.node.editable:
            raise ToolError(f"{describe_row(row)} is no text field. Nothing was typed.")
        if row.node.focused or (len(fields) == 1 and not any(each.node.focused for each in fields)):
            return row, before
        row, before = yield from self.touch_row(device, row, before, "/tap", {})
        now, _ = yield from self.looks.settle(device, before)
        found = find_again(row, before, now)
        if found is None or not found.node.focused:
            raise ToolError(
                f"{describe_row(row)} could not be focused. Nothing was typed.", self.looks.show(device, now)
            )
        return found, now

    def _empty(self, device: str) -> Flow[None]:
        """Empty the focused field; if the phone refuses an empty text, type a blank."""
        answer = yield from self.link.call("POST", "/type", {**members_of(device), "text": "", "clear": True})
        if answer.status == 400 and "text" in JsonObject.of(answer.body).text("error"):
            yield from self.call("/type", device, {"text": " "})
        else:
            body_of(answer)

    def _enter(self, device: str, now: PhoneScreen | None) -> Flow[None]:
        """Press the phone's Enter key; if the phone refuses it, tap that of the keyboard on the screen `now`.

        Raises `ToolError` if there is none, or if the phone fails.
        """
        answer = yield from self.link.call("POST", "/press_key", {**members_of(device), "key": "enter"})
        if answer.status != 400:
            body_of(answer)
            return
        keys = [] if now is None else [row for row in now.rows if now.is_keyboard(row.node.window)]
        key = enter_key(keys)
        if key is None:
            raise ToolError(*NO_ENTER)
        yield from self.call("/tap", device, {"nodeId": key.target.node_id})

    def _edit(self, device: str, key: str, before: PhoneScreen) -> Flow[str]:
        """Paste the clipboard at the end of a field, or delete its last character, by typing its whole text anew.

        The field is the one with the focus, else the first one.

        Return a sentence about what the field holds, or about why nothing was done. Raises `ToolError` if the field
        cannot be read whole, or if the phone refuses.
        """
        if not any(row.node.editable for row in before.rows):
            return "there is no text field on the screen, so nothing was done"
        row, _ = yield from self._field(device, {}, before)
        if row.node.hides_text or len(row.node.text) >= TEXT_LIMIT:
            raise ToolError("this field cannot be read whole, so it cannot be edited in part. Nothing was done.")
        if key == "paste":
            answer = yield from self.link.call("GET", "/clipboard", members_of(device))
            pasted = body_of(answer).text("text")
            if not pasted:
                return "the clipboard is empty"
            text = row.node.content + pasted
        else:
            text = row.node.content[:-1]
        if text.strip():
            yield from self.call("/type", device, {"text": text})
        else:
            yield from self._empty(device)
        after, _ = yield from self.looks.settle(device, before)
        return _holds(find_again(row, before, after), text)

    def _apps(self, device: str) -> Flow[list[tuple[str, str]]]:
        answer = yield from self.link.call("GET", "/get_apps", members_of(device))
        rows = body_of(answer).objects("apps")
        return [(row.text("package"), row.text("label")) for row in rows]

    def _package_of(self, device: str, name: str) -> Flow[str]:
        """Return the package of the only app with this name; the name itself if the phone lists no apps at all.

        Raises `ToolError` that lists the apps if none or several have the name.
        """
        rows = yield from self._apps(device)
        found = [package for package, label in rows if label.strip().lower() == name.strip().lower()]
        if len(found) > 1:
            raise ToolError(f"{len(found)} apps have this name: {', '.join(found)}. Nothing was opened.")
        if rows and not found:
            names = ", ".join(quote(label) for _, label in rows[:MAX_NAMES])
            raise ToolError(f"no app has the name {quote(name)}. Nothing was opened. The apps: {names}")
        return found[0] if found else name


def _name_of(row: ScreenRow) -> str:
    name = row.node.hint or row.node.description
    return f" {quote(name)}" if name else ""


def _holds(row: ScreenRow | None, wanted: str) -> str:
    """Return a sentence for the model: which text a field has, with a warning if that is not `wanted`.

    Of a hidden text only the length is stated, and of a field that is gone, nothing but that.
    """
    if row is None:
        return "the field is gone, so what it holds is unknown"
    if row.node.hides_text:
        return f"it holds {len(row.node.content)} hidden characters"
    held = row.node.content
    if held == wanted[:TEXT_LIMIT]:
        return f"it holds {quote(held, row.node)}"
    state = 'it is empty: it holds ""' if not held else f"it holds {quote(held, row.node)}"
    return f"{state}, which is not what was typed. Look before you type again"
