"""Plain sentences for the built-in agent: their meaning, and the interface of the parser that finds it.

The parser is a library at the edge (`runtimes.sentences`); the actions are here (`svc_proto.agent.sentence_actions`).
"""

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

from attrs import field, frozen

__all__ = ["SentenceIntent", "Sentence", "SentenceParser", "PhoneSetting"]


class SentenceIntent(Enum):
    """Meanings of a sentence; the values are the keys of the sentence files."""

    OPEN_APP = "open_app"
    SCREENSHOT = "screenshot"
    READ_SCREEN = "read_screen"
    TOGGLE = "toggle"
    CHECK_SETTING = "check_setting"
    SEND_TEXT = "send_text"
    CALL = "call"
    SCROLL = "scroll"
    SWIPE = "swipe"
    BACK = "back"
    HOME = "home"
    RECENTS = "recents"
    NOTIFICATIONS = "notifications"
    QUICK_SETTINGS = "quick_settings"
    LOCK = "lock"
    ENTER = "enter"
    STOP = "stop"
    FIND_TEXT = "find_text"
    TAP = "tap"
    TYPE = "type"
    MEDIA_PLAY = "media_play"
    MEDIA_PAUSE = "media_pause"
    MEDIA_NEXT = "media_next"
    MEDIA_PREVIOUS = "media_previous"
    VOLUME_UP = "volume_up"
    VOLUME_DOWN = "volume_down"
    SET_LEVEL = "set_level"
    BATTERY = "battery"
    TIME = "time"
    DATE = "date"
    PHOTO = "photo"
    OPEN_URL = "open_url"
    WEB_SEARCH = "web_search"
    NAVIGATE = "navigate"
    ALARM = "alarm"
    CURRENT_APP = "current_app"
    LIST_APPS = "list_apps"
    LOCATION = "location"
    PING = "ping"
    CLIPBOARD_READ = "clipboard_read"
    CLIPBOARD_WRITE = "clipboard_write"
    FIND_CONTACT = "find_contact"
    REMEMBER = "remember"
    TIMER = "timer"
    HELP = "help"
    GREETING = "greeting"
    TOOLS = "tools"
    MEMORY = "memory"


class PhoneSetting(Enum):
    """Settings of a phone with a switch; the values are the keys of the sentence files."""

    WIFI = "wifi"
    BLUETOOTH = "bluetooth"
    MOBILE_DATA = "mobile_data"
    AIRPLANE = "airplane"
    LOCATION = "location"
    DO_NOT_DISTURB = "do_not_disturb"
    DARK_THEME = "dark_theme"
    BATTERY_SAVER = "battery_saver"
    NFC = "nfc"
    FLASHLIGHT = "flashlight"
    HOTSPOT = "hotspot"
    AUTO_ROTATE = "auto_rotate"


@frozen
class Sentence:
    """A parsed sentence: its intent, and its variable parts by name (slots), such as `app` or `message`."""

    intent: SentenceIntent
    language: str  # ISO 639-1
    slots: Mapping[str, str] = field(factory=dict)
    text: str = ""  # as the user wrote it
    is_certain: bool = True  # the edges of the user's own words are; else the owner confirms these words


class SentenceParser(Protocol):
    """Parser of sentences in several languages, with the texts of the answers."""

    def parse(self, text: str) -> Sentence | None:
        """Return the meaning of a sentence; None if no known sentence matches."""
        ...

    def nearest(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return the likely language of a text and the known sentences in it that resemble the text most."""
        ...

    def head(self, language: str, text: str) -> str:
        """Return the key of the answer that heads the nearest sentences, such as `one_request` for several requests."""
        ...

    def examples(self, language: str) -> tuple[str, ...]:
        """Return sentences of a language that the parser matches."""
        ...

    def reply(self, language: str, key: str, **values: str) -> str:
        """Return the text of the answer `key` in a language, with its placeholders replaced by `values`."""
        ...

    def words(self, key: str) -> tuple[str, ...]:
        """Return the words, in lower case and all languages, for a setting, a bar or a kind of app such as `mail`."""
        ...

    def label(self, language: str, key: str) -> str:
        """Return the name of a setting, a bar or a kind of app in a language."""
        ...

    def message(self, language: str, text: str) -> tuple[str, bool] | None:
        """Return a message without the conjunction that begins it, and whether its edges are certain.

        Return None if its first words may be no part of it.
        """
        ...

    def kinds_of(self, text: str) -> tuple[str, ...]:
        """Return the kinds of app that have the whole text as a name in some language."""
        ...
