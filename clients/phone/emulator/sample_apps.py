"""Sample apps as data. Names, numbers and messages are invented."""

from clients.phone.emulator.actions import GoBack, Playback, ShowScreen, Submit
from clients.phone.emulator.layout import (
    App,
    Row,
    Screen,
    bar,
    button,
    check_box,
    choice,
    entry,
    icon,
    label,
    switch,
    text_field,
)

__all__ = ["BANK", "BROWSER", "DIALER", "MAIL", "MAPS", "MESSAGES", "MUSIC", "SAMPLE_APPS", "SETTINGS", "client_app"]

MAIL = "com.example.mail"
MESSAGES = "com.example.messages"
BROWSER = "com.example.browser"
SETTINGS = "com.android.settings"
MAPS = "com.example.maps"
CAMERA = "com.example.camera"
MUSIC = "com.example.music"
DIALER = "com.android.dialer"
BANK = "com.chase.sig.android"  # first entry of the default blocklist

LETTERS = (
    ("Ada", "ada@example.com", "Lunch on Friday?", "Shall we meet at noon at the harbour? Tell me by tomorrow."),
    ("Library", "desk@library.example", "Two books are due", "Please return them by the end of the week."),
    ("Bo", "bo@example.com", "Photos from the lake", "They turned out well, have a look."),
    ("Train service", "info@trains.example", "Your ticket to Delft", "Coach 4, seat 61. Departure 09:12."),
    *(
        ("Weekly digest", "digest@news.example", f"Digest number {n}", f"This is what happened in week {n}.")
        for n in range(14, 0, -1)
    ),
)
CHATS = (
    ("Ada", "+15550100", "See you at the harbour"),
    ("Bo", "+15550102", "On my way"),
    ("Cleo", "+15550104", "Happy birthday!"),
)


def _mail() -> App:
    inbox: list[Row] = []
    screens: dict[str, Screen] = {"inbox": Screen(title="Inbox")}
    for number, (name, address, subject, text) in enumerate(LETTERS):
        inbox.append(entry(name, subject, ShowScreen(f"letter {number}"), key=f"letter {number}"))
        answer = ShowScreen("compose", (("to", address), ("subject", f"Re: {subject}")))
        screens[f"letter {number}"] = Screen(
            title=subject,
            rows=(
                label(f"From: {name} <{address}>"),
                label(text),
                button("Archive", "archive", Submit("archive", "inbox")),
                button("Delete", "delete", Submit("delete", "inbox")),
            ),
            foot=(button("Reply", "reply", answer),),
        )
    compose = icon("Compose", "compose", ShowScreen("compose"))
    screens["inbox"] = Screen(title="Inbox", rows=tuple(inbox), foot=(compose,))
    screens["compose"] = Screen(
        title="New message",
        rows=(text_field("to", "To"), text_field("subject", "Subject"), text_field("body", "Write a message")),
        foot=(button("Send", "send", Submit("mail", "sent", ("to", "subject", "body"))),),
    )
    screens["sent"] = Screen(
        title="Sent", rows=(label("Message sent"), entry("Back to the inbox", None, ShowScreen("inbox")))
    )
    return App(package=MAIL, label="Mail", screens=screens)


def _messages() -> App:
    screens = {"chats": Screen(title="Messages")}
    for name, number, last in CHATS:
        screens[name] = Screen(
            title=name,
            rows=(label(number), label(last), label("", "sent"), text_field("message", "Text message")),
            foot=(button("Send", "send", Submit("text", name, ("message",))),),
        )
    screens["chats"] = Screen(
        title="Messages",
        rows=tuple(entry(name, last, ShowScreen(name), key=name) for name, _, last in CHATS),
        foot=(button("Start chat", "start", ShowScreen("compose")),),
    )
    screens["compose"] = Screen(
        title="New conversation",
        rows=(text_field("to", "Recipient"), text_field("message", "Text message")),
        foot=(button("Send", "send", Submit("text", "chats", ("to", "message"))),),
    )
    return App(package=MESSAGES, label="Messages", screens=screens)


def _settings() -> App:
    connected = Screen(title="Connected devices", rows=(switch("bluetooth", "Bluetooth"), switch("nfc", "NFC")))
    display = Screen(
        title="Display",
        rows=(
            bar("brightness", "Brightness level"),
            switch("adaptive", "Adaptive brightness"),
            switch("dark", "Dark theme"),
            choice("timeout", "Screen timeout", "30 seconds", "1 minute", "5 minutes", "30 minutes"),
        ),
    )
    sound = Screen(
        title="Sound",
        rows=(bar("media", "Media volume"), bar("ring", "Ring volume"), check_box("vibrate", "Vibrate for calls")),
    )
    network = Screen(title="Network", rows=(switch("wifi", "Wi-Fi"), switch("mobile", "Mobile data")))
    about = Screen(title="About phone", rows=(entry("Model", "Reference phone"), entry("Serial number", "SIM-0001")))
    pages = ("Storage", "Battery", "Apps", "Privacy", "Location", "Accounts", "System", "Languages")
    root = Screen(
        title="Settings",
        rows=(
            entry("Network", "Wi-Fi, mobile data", ShowScreen("network")),
            switch("airplane", "Airplane mode"),
            entry("Display", None, ShowScreen("display")),
            entry("Sound", None, ShowScreen("sound")),
            *(entry(page, None, ShowScreen("page")) for page in pages),
            entry("About phone", None, ShowScreen("about")),
            entry("Connected devices", None, ShowScreen("connected")),
        ),
    )
    page = Screen(title="Nothing to set here", rows=(label("This simulated phone keeps its defaults."),))
    pages_by_name = {"network": network, "about": about, "page": page}
    pages_by_name |= {"display": display, "sound": sound, "connected": connected}
    return App(
        package=SETTINGS,
        label="Settings",
        screens={"settings": root, **pages_by_name},
        texts={"brightness": "40", "media": "50", "ring": "70"},
        on=("wifi", "mobile", "adaptive"),
    )


SAMPLE_APPS: tuple[App, ...] = (
    _mail(),
    _messages(),
    App(
        package=BROWSER,
        label="Browser",
        screens={
            "start": Screen(
                title="New tab",
                rows=(text_field("address", "Search or type a web address"),),
                foot=(button("Go", "go", ShowScreen("page")),),
            ),
            "page": Screen(title="Page", rows=(label("about:blank", "address"), label("It works on this machine."))),
        },
    ),
    _settings(),
    App(
        package=MAPS,
        label="Maps",
        screens={
            "map": Screen(
                title="Maps",
                rows=(text_field("place", "Search here"), label("You are in Delft")),
                foot=(button("Directions", "directions", ShowScreen("route")),),
            ),
            "route": Screen(title="Route", rows=(label("Nowhere", "place"), label("12 min by bicycle"))),
        },
    ),
    App(
        package=CAMERA,
        label="Camera",
        screens={
            "viewfinder": Screen(title="Camera", foot=(icon("Shutter", "shutter", Submit("photo", "photo")),)),
            "photo": Screen(title="Photo", rows=(label("1 photo taken"), button("Again", "again", GoBack()))),
        },
    ),
    App(
        package=MUSIC,
        label="Music",
        screens={
            "player": Screen(
                title="Music",
                rows=(label("Nothing playing", "track"),),
                foot=(
                    icon("Play or pause", "toggle", Playback("toggle")),
                    icon("Next track", "next", Playback("next")),
                ),
            ),
        },
    ),
    App(
        package=DIALER,
        label="Phone",
        screens={
            "keypad": Screen(
                title="Phone",
                rows=(text_field("number", "Number"),),
                foot=(button("Call", "call", Submit("call", "call", ("number",))),),
            ),
            "call": Screen(title="Calling", foot=(button("End call", "end", GoBack()),)),
        },
    ),
    App(
        package=BANK,
        label="Bank",
        screens={
            "accounts": Screen(
                title="Accounts",
                rows=(entry("Checking", "1,234.56"), entry("Savings", "9,876.00")),
                foot=(button("Pay or transfer", "move", ShowScreen("transfer")),),
            ),
            "transfer": Screen(
                title="Transfer",
                rows=(
                    text_field("payee", "To"),
                    text_field("amount", "Amount"),
                    text_field("pin", "PIN", password=True),
                ),
                foot=(button("Transfer", "transfer", Submit("transfer", "accounts", ("payee", "amount", "pin"))),),
            ),
        },
    ),
)


def client_app(package: str) -> App:
    """Build the client's own app, which the route of `return_to_client` opens."""
    chat = Screen(
        title="Chat",
        rows=(label("Ask your agent something."), text_field("prompt", "Message")),
        foot=(button("Send", "send", Submit("prompt", "chat", ("prompt",))),),
    )
    return App(package=package, label="Relay", screens={"chat": chat})
