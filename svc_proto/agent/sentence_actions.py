"""Actions of plain sentences: the tools that run, and the text of the answer.

Acts go through the toolbox, as a model's calls do: with its approvals, events and stored rows.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice
from urllib.parse import quote

from attrs import evolve

from svc_proto.agent.sentence_pages import SettingPages
from svc_proto.agent.sentence_steps import ToolRunner
from svc_proto.agent.sentences import Sentence, SentenceIntent
from svc_proto.agent.tools.phone_touches import NOTHING
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject

__all__ = ["PLAIN_TOOLS", "SentenceActions", "ToolRunner"]

MAX_NAMES = 8  # names in a question which one is meant
MAX_SIMILAR = 3  # names of apps that resemble an unknown one
SIMILARITY = 0.7  # of two such names, from 0 to 1
MAX_NAME_WORDS = 4  # of a contact at the start of a text
MAX_SCROLLS = 20  # of a sentence that goes to the end of a page
MAX_CONTACTS = 20  # of one search
COLONS = (":", "\uff1a")
SEPARATORS = " ,:;\uff0c\uff1a\uff1b"
_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"[\u4e00-\u9fff]|[^\s\u4e00-\u9fff]+")
NUMBER = re.compile(r"\+?[0-9][0-9 ()./-]{1,24}")

PLAIN_TOOLS: Mapping[SentenceIntent, tuple[str, Mapping[str, object]]] = {
    SentenceIntent.BACK: ("phone_press_key", {"key": "back"}),
    SentenceIntent.HOME: ("phone_press_key", {"key": "home"}),
    SentenceIntent.RECENTS: ("phone_press_key", {"key": "recents"}),
    SentenceIntent.NOTIFICATIONS: ("phone_press_key", {"key": "notifications"}),
    SentenceIntent.QUICK_SETTINGS: ("phone_press_key", {"key": "quick_settings"}),
    SentenceIntent.LOCK: ("phone_press_key", {"key": "lock_screen"}),
    SentenceIntent.ENTER: ("phone_press_key", {"key": "enter"}),
    SentenceIntent.MEDIA_PLAY: ("phone_media", {"action": "play"}),
    SentenceIntent.MEDIA_PAUSE: ("phone_media", {"action": "pause"}),
    SentenceIntent.MEDIA_NEXT: ("phone_media", {"action": "next"}),
    SentenceIntent.MEDIA_PREVIOUS: ("phone_media", {"action": "previous"}),
    SentenceIntent.VOLUME_UP: ("phone_media", {"action": "volume_up"}),
    SentenceIntent.VOLUME_DOWN: ("phone_media", {"action": "volume_down"}),
}
"""Acts without slots."""

SLOT_TOOLS: Mapping[SentenceIntent, tuple[str, str]] = {
    SentenceIntent.SWIPE: ("phone_swipe", "direction"),
    SentenceIntent.TYPE: ("phone_type", "text"),
    SentenceIntent.CLIPBOARD_WRITE: ("phone_clipboard_write", "text"),
}
"""Acts with one slot, which is an argument of the same name."""

SHOWN_TOOLS: Mapping[SentenceIntent, str] = {
    SentenceIntent.SCREENSHOT: "phone_screenshot",
    SentenceIntent.READ_SCREEN: "phone_screen",
    SentenceIntent.FIND_TEXT: "phone_find_nodes",
    SentenceIntent.CURRENT_APP: "phone_current_app",
    SentenceIntent.LIST_APPS: "phone_get_apps",
    SentenceIntent.LOCATION: "phone_location",
    SentenceIntent.PING: "phone_ping",
    SentenceIntent.CLIPBOARD_READ: "phone_clipboard_read",
}
"""Tools whose result is the answer."""

APP_KINDS: Mapping[str, tuple[str, ...]] = {
    "mail": ("com.google.android.gm", "com.android.email", "com.samsung.android.email.provider", "com.fsck.k9"),
    "messages": ("com.google.android.apps.messaging", "com.android.messaging", "com.samsung.android.messaging"),
    "browser": ("com.android.chrome", "org.mozilla.firefox", "com.sec.android.app.sbrowser", "com.android.browser"),
    "settings": ("com.android.settings",),
    "maps": ("com.google.android.apps.maps", "net.osmand.plus", "app.organicmaps"),
    "camera": (
        "com.google.android.GoogleCamera",
        "com.android.camera2",
        "com.android.camera",
        "com.sec.android.app.camera",
    ),
    "music": ("com.google.android.apps.youtube.music", "com.spotify.music", "com.android.music"),
    "phone": ("com.google.android.dialer", "com.android.dialer", "com.samsung.android.dialer"),
    "calendar": ("com.google.android.calendar", "com.android.calendar", "com.samsung.android.calendar"),
    "clock": ("com.google.android.deskclock", "com.android.deskclock", "com.sec.android.app.clockpackage"),
    "notes": ("com.google.android.keep", "com.samsung.android.app.notes"),
    "photos": ("com.google.android.apps.photos", "com.sec.android.gallery3d", "com.android.gallery3d"),
    "contacts": ("com.google.android.contacts", "com.android.contacts", "com.samsung.android.app.contacts"),
    "files": ("com.google.android.apps.nbu.files", "com.google.android.documentsui", "com.android.documentsui"),
    "calculator": ("com.google.android.calculator", "com.android.calculator2"),
    "store": ("com.android.vending", "org.fdroid.fdroid"),
    "weather": ("com.google.android.apps.weather",),
}
"""Packages of common apps, for phones whose labels are in another language than the sentence."""


class SentenceActions(SettingPages):
    """Executor of the actions of sentences, most of them on the paired phone."""

    def run(self, sentence: Sentence, call: ToolRunner, show: Callable[[str, str], str]) -> Flow[str]:
        """Run the action of a sentence and return the answer. `show` renders the result of a tool for people."""
        intent, slots = sentence.intent, sentence.slots
        own = "" if sentence.is_certain else slots.get("text") or slots.get("query", "")
        try:
            if own and not (yield from self._is_confirmed(call, self._reply(sentence, "confirm", text=own))):
                return self._reply(sentence, "not_confirmed")
            if intent in SHOWN_TOOLS:
                name, arguments = SHOWN_TOOLS[intent], {"text": slots["query"]} if "query" in slots else {}
                return show(name, (yield from call(name, arguments)))
            if intent in PLAIN_TOOLS:
                return (yield from self._act(sentence, call, *PLAIN_TOOLS[intent]))
            if intent in SLOT_TOOLS:
                name, slot = SLOT_TOOLS[intent]
                return (yield from self._act(sentence, call, name, {slot: slots[slot]}))
            return (yield from _FLOWS[intent](self, sentence, call))
        except ToolError as error:
            return self._reply(sentence, "failed", reason=error.message)

    def _open_app(self, sentence: Sentence, call: ToolRunner, reply: str = "opened") -> Flow[str]:
        name, short = sentence.slots["app"], sentence.slots.get("short", "")
        rows = yield from self._rows("GET", "/get_apps", {}, "apps")
        apps = {row.text("package"): row.text("label") or row.text("package") for row in rows}
        found = self._matching_apps(name, apps)
        if not found and short:
            name, found = short, self._matching_apps(short, apps)
        if len(found) != 1:
            near = found or _similar(name, apps)
            key = "which_app" if found else "near_app" if near else "no_app"
            return self._reply(sentence, key, name=name, found=_listed(apps[each] for each in near))
        done = self._reply(sentence, reply, name=apps[found[0]])
        return (yield from self._act(sentence, call, "phone_open_app", {"package": found[0]}, done))

    def _matching_apps(self, name: str, apps: Mapping[str, str]) -> list[str]:
        """Return the packages that a name means: by label or package, else by kind, else by a part of the label."""
        plain = name.casefold()
        kinds = self.parser.kinds_of(name)
        synonyms = {word for kind in kinds for word in self.parser.words(kind)}
        known = {package for kind in kinds for package in APP_KINDS.get(kind, ())}
        labels = {package: label.casefold() for package, label in apps.items()}
        return (
            [package for package, label in labels.items() if plain in (label, package)]
            or [package for package, label in labels.items() if package in known or label in synonyms]
            or [package for package, label in labels.items() if plain in label.split()]
            or [package for package, label in labels.items() if len(plain) > 1 and _is_part(plain, label)]
        )

    def _tap(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        """Tap the text of the screen that equals the words of a sentence, else the only one that contains them.

        If several contain them, return the question which one is meant. If none does, return similar sentences.
        """
        nodes = yield from self._rows("GET", "/screen", {}, "nodes")
        shown = [text for node in nodes for text in (node.text("text"), node.text("contentDescription")) if text]
        wanted = [sentence.slots[key] for key in ("long", "text", "short") if key in sentence.slots]
        whole = [text for text in wanted if _plain(text) in map(_plain, shown)]
        part = [text for text in wanted if any(_is_part(_plain(text), _plain(each)) for each in shown)]
        text = next(iter([*whole, *part]), "")
        if not text:
            problem = self._reply(sentence, "no_text", name=sentence.slots.get("short", sentence.slots["text"]))
            return "\n- ".join((problem, *self.parser.nearest(sentence.text)[1]))
        found = dict.fromkeys(each for each in shown if _is_part(_plain(text), _plain(each)))
        if not whole and len(found) > 1:
            return self._reply(sentence, "which_text", name=text, found=_listed(found))
        given = {"text": text if whole else next(iter(found))}
        return (yield from self._act(sentence, call, "phone_tap_text", given))

    def _call(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        number, _, problem = yield from self._contact(sentence, call, sentence.slots["name"])
        if problem:
            return problem
        return (yield from self._act(sentence, call, "phone_call", {"number": number}))

    def _send_text(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        """Send a text message, after a question with its recipient and its text unless the edges of both are certain.

        A slot `rest` has the name and the message. If there are these slots as well, it is split only if the phone has
        no contact of that name.
        """
        slots = sentence.slots
        name, message, is_certain = slots.get("name", ""), slots.get("message", ""), sentence.is_certain
        if not name or ("rest" in slots and not (yield from self._contacts(name))):
            name, behind = yield from self._split(slots.get("rest", ""))
            text = behind.lstrip(SEPARATORS)
            message, is_certain = self.parser.message(sentence.language, text) or ("", False)
            if behind.startswith(COLONS):
                message, is_certain = text, True
        if not message:
            return self._reply(sentence, "no_message", name=name or "Ada")
        number, name, problem = yield from self._contact(sentence, call, name)
        if problem:
            return problem
        question = self._reply(sentence, "confirm_message", name=name, text=message)
        if not is_certain and not (yield from self._is_confirmed(call, question)):
            return self._reply(sentence, "not_confirmed")
        return (yield from self._act(sentence, call, "phone_send_sms", {"to": number, "body": message}))

    def _split(self, rest: str) -> Flow[tuple[str, str]]:
        """Return the name that begins a text, and the words behind it.

        The name is what a colon follows, else the longest start that is a number or a contact, else the first word. It
        has at most `MAX_NAME_WORDS` words. Each Chinese character counts as a word.
        """
        ends = [word.end() for word in _PIECE.finditer(rest)][:MAX_NAME_WORDS]
        colon = [end for end in ends if rest[:end].endswith(COLONS)]
        name = ""
        for end in (*colon, *reversed(ends)):
            name = rest[:end].strip(SEPARATORS)
            if NUMBER.fullmatch(name) or (yield from self._contacts(name)):
                break
        return name, rest[rest.find(name) + len(name) :].lstrip()

    def _find_contact(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        name = sentence.slots["name"]
        rows = (yield from self._contacts(name)) or (yield from self._near_contacts(name))
        if not rows:
            return self._reply(sentence, "no_contact", name=name)
        return "\n".join(
            f"{row.text('name')}: {_listed(phone.text('number') for phone in row.objects('phones'))}" for row in rows
        )

    def _contact(self, sentence: Sentence, call: ToolRunner, name: str) -> Flow[tuple[str, str, str]]:
        """Return the first number of the contact of this name, the contact's name, and "".

        A contact that has exactly this name comes before those that have all its words. If there is none, the only
        contact with one of its words is taken if it has the last one, as in "brother Theo", and if the owner confirms
        that. A number is returned as it is. Else return the answer that explains why there is no number.
        """
        if NUMBER.fullmatch(name):
            return name, name, ""
        rows, key = _exact((yield from self._contacts(name)), name), "which_contact"
        is_meant = len(rows) == 1
        if not rows:
            rows = yield from self._near_contacts(name)
            key = "near_contact" if rows else "no_contact"
            if len(rows) == 1 and _words_of(_PIECE.findall(name)[-1]) <= _words_of(rows[0].text("name")):
                question = self._reply(sentence, "confirm_contact", name=name, found=rows[0].text("name"))
                is_meant = yield from self._is_confirmed(call, question)
        if is_meant:
            return rows[0].objects("phones")[0].text("number"), rows[0].text("name"), ""
        return "", name, self._reply(sentence, key, name=name, found=_listed(row.text("name") for row in rows))

    def _near_contacts(self, name: str) -> Flow[list[JsonObject]]:
        """Return the contacts with a number whose names have one of the words of a name."""
        found = dict[str, JsonObject]()
        for word in dict.fromkeys(_PIECE.findall(name)[:MAX_NAME_WORDS]):
            found |= {row.text("name"): row for row in (yield from self._contacts(word))}
        return list(found.values())

    def _contacts(self, name: str) -> Flow[list[JsonObject]]:
        """Return the contacts with a number whose names have all words of a name."""
        given = {"query": name, "limit": MAX_CONTACTS}
        rows = yield from self._rows("POST", "/search_contacts", given, "contacts")
        words = _words_of(name)
        return [row for row in rows if row.objects("phones") and words <= _words_of(row.text("name"))]

    def _remember(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        given = {"action": "add", "target": "memory", "content": sentence.slots["text"]}
        return (yield from self._act(sentence, call, "memory", given))

    def _timer(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        seconds = int(sentence.slots["seconds"])
        units = ((seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s"))
        length = " ".join(f"{count} {unit}" for count, unit in units if count)
        return self._ask_clock(sentence, call, "TIMER", {"LENGTH": seconds}, length)

    def _alarm(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        time = sentence.slots["time"]
        hour, _, minute = time.partition(":")
        return self._ask_clock(sentence, call, "ALARM", {"HOUR": int(hour), "MINUTES": int(minute)}, time)

    def _ask_clock(
        self, sentence: Sentence, call: ToolRunner, kind: str, extras: Mapping[str, int], time: str
    ) -> Flow[str]:
        """Send an intent to the clock app, and return the answer, which does not claim that the clock was set."""
        named = {f"android.intent.extra.alarm.{name}": value for name, value in extras.items()}
        given = {"action": f"android.intent.action.SET_{kind}", "extras": named}
        done = self._reply(sentence, "asked_clock", time=time)
        return (yield from self._act(sentence, call, "phone_send_intent", given, done))

    def _photo(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        camera = evolve(sentence, slots={"app": self.parser.label(sentence.language, "camera")})
        return (yield from self._open_app(camera, call, "photo"))

    def _open_url(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        address = sentence.slots["url"]
        given = {"action": "android.intent.action.VIEW", "data": address}
        done = self._reply(sentence, "page_shown", name=address)
        return (yield from self._act(sentence, call, "phone_send_intent", given, done))

    def _web_search(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        query = sentence.slots["query"]
        given = {"action": "android.intent.action.WEB_SEARCH", "extras": {"query": query}}
        done = self._reply(sentence, "asked_search", query=query)
        return (yield from self._act(sentence, call, "phone_send_intent", given, done))

    def _navigate(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        """Send an intent that searches a place in the maps app (RFC 5870, with Android's parameter `q`)."""
        place = sentence.slots["destination"]
        given = {"action": "android.intent.action.VIEW", "data": f"geo:0,0?q={quote(place)}"}
        done = self._reply(sentence, "asked_maps", name=place)
        return (yield from self._act(sentence, call, "phone_send_intent", given, done))

    def _scroll(self, sentence: Sentence, call: ToolRunner) -> Flow[str]:
        """Scroll once, or with the slot `extent` until nothing moves or a call fails, at most `MAX_SCROLLS` times."""
        given = {"direction": sentence.slots["direction"]}
        if "extent" not in sentence.slots:
            return (yield from self._act(sentence, call, "phone_scroll", given))
        for count in range(MAX_SCROLLS):
            result = yield from call("phone_scroll", given)
            if problem := self._problem(sentence, result):
                return problem
            if NOTHING in result:
                return self._reply(sentence, "scrolled_end", count=str(count))
        return self._reply(sentence, "scrolled_on", count=str(MAX_SCROLLS))

    def _battery(self, sentence: Sentence, _call: ToolRunner) -> Flow[str]:
        status = yield from self._phone.phone_status({})
        percent = status.get_object("device").integer("battery_percent")
        if percent is None or percent < 0:
            return self._reply(sentence, "no_battery")
        return self._reply(sentence, "battery", percent=str(percent))

    def _now(self, sentence: Sentence, _call: ToolRunner) -> Flow[str]:
        """Answer with the server's time or date in UTC: a phone does not report its time zone."""
        yield from ()
        now = datetime.fromtimestamp(int(self._phone.engine.now.wall), UTC)
        if sentence.intent is SentenceIntent.TIME:
            return self._reply(sentence, "time", time=f"{now:%H:%M}")
        day = self._reply(sentence, f"day_{now.weekday()}")
        return self._reply(sentence, "date", day=day, date=f"{now:%Y-%m-%d}")


def _exact(rows: list[JsonObject], name: str) -> list[JsonObject]:
    """Return the contacts that have exactly this name; without one, all of them."""
    return [row for row in rows if row.text("name").casefold() == name.casefold()] or rows


def _words_of(name: str) -> set[str]:
    """Return the words of a name in lower case; of one word in a script without case, such as Chinese, its letters."""
    words = _WORD.findall(name.casefold())
    return set(words if name.isascii() or len(words) > 1 or _has_case(name) else name)


def _has_case(text: str) -> bool:
    """Report whether a text has letters of a script with upper and lower case, which Chinese has not."""
    return text.lower() != text.upper()


def _similar(name: str, apps: Mapping[str, str]) -> list[str]:
    """Return the packages of at most `MAX_SIMILAR` apps whose labels resemble a name."""
    by_label = {label.casefold(): package for package, label in apps.items()}
    return [by_label[label] for label in get_close_matches(name.casefold(), by_label, MAX_SIMILAR, SIMILARITY)]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_part(name: str, label: str) -> bool:
    """Report whether a label has a name at the start of a word; unless both are ASCII, anywhere."""
    start = r"\b" if name[:1].isascii() and label.isascii() else ""
    return re.search(start + re.escape(name), label) is not None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(islice(names, MAX_NAMES))


_FLOWS: Mapping[SentenceIntent, Callable[[SentenceActions, Sentence, ToolRunner], Flow[str]]] = {
    SentenceIntent.OPEN_APP: SentenceActions._open_app,
    SentenceIntent.TAP: SentenceActions._tap,
    SentenceIntent.CALL: SentenceActions._call,
    SentenceIntent.SEND_TEXT: SentenceActions._send_text,
    SentenceIntent.FIND_CONTACT: SentenceActions._find_contact,
    SentenceIntent.REMEMBER: SentenceActions._remember,
    SentenceIntent.TIMER: SentenceActions._timer,
    SentenceIntent.TOGGLE: SentenceActions.set_switch,
    SentenceIntent.CHECK_SETTING: SentenceActions.set_switch,
    SentenceIntent.SET_LEVEL: SentenceActions.set_level,
    SentenceIntent.ALARM: SentenceActions._alarm,
    SentenceIntent.PHOTO: SentenceActions._photo,
    SentenceIntent.OPEN_URL: SentenceActions._open_url,
    SentenceIntent.WEB_SEARCH: SentenceActions._web_search,
    SentenceIntent.NAVIGATE: SentenceActions._navigate,
    SentenceIntent.SCROLL: SentenceActions._scroll,
    SentenceIntent.BATTERY: SentenceActions._battery,
    SentenceIntent.TIME: SentenceActions._now,
    SentenceIntent.DATE: SentenceActions._now,
}
