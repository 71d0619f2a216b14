"""Tests of the page's tab for phones: the reference phone and a paired one, with their screens, taps and keys."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from clients.phone.emulator import EmulatedPhone
from tests.browser.conftest import PageOpener, Site, box_of
from tests.browser.hostile_server import EVIL
from tests.browser.test_layout import Scripted, start
from tests.browser.test_pictures import faults
from tests.loops.environment import bearer
from tests.loops.phone_screen import PhoneScreen

pytestmark = pytest.mark.firefox


def test_the_screen_shows_touches_and_confirmations(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)  # while there is no phone
    world = site.world
    world.start_relay()
    site.open(api_url="http://127.0.0.1:9")
    page = visit(f"{site.url}#phone")
    expect(page.get_by_text("No reference phone is here")).to_be_visible()
    seen = PhoneScreen(world, name="Pixel 9")
    page.clock.fast_forward(2_000)  # the page refreshes every 2 s
    glass = page.get_by_role("group", name="Screen of the phone")
    expect(glass.get_by_role("button", name="Mail")).to_be_visible()

    headers = bearer(seen.token)
    world.http("POST", "/open_app", headers=headers, body=b'{"package": "com.example.mail"}')
    expect(glass).to_contain_text("Inbox")  # the agent moved it, and the page needs no reload
    glass.get_by_role("button", name="Compose").click()
    expect(glass.get_by_role("button", name="To", exact=True)).to_be_visible()
    assert seen.backend.gestures[-1].kind == "tap"
    subject = glass.get_by_role("button", name="Subject").element_handle()
    glass.get_by_role("button", name="To", exact=True).press("Enter")  # the keyboard works like a finger
    page.get_by_label("Text for the phone").fill("ada@example.com")
    page.get_by_role("button", name="Type").click()
    expect(glass).to_contain_text("ada@example.com")
    # a refresh does not replace a button that is about to be pressed
    assert subject.evaluate("button => button.isConnected")
    page.get_by_role("button", name="Home").click()
    expect(glass.get_by_role("button", name="Mail")).to_be_visible()
    page.evaluate("scrollTo(0, 0)")
    box = box_of(glass)
    page.mouse.move(box["x"] + 100, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 300, steps=3)
    page.mouse.up()
    world.eventually(lambda: seen.backend.gestures[-1].kind == "swipe")
    expect(glass).to_contain_text("No notifications")
    page.get_by_role("button", name="Back").click()
    expect(glass).not_to_contain_text("No notifications")  # the key has arrived: a screen opened now stays open
    world.http("POST", "/open_app", headers=headers, body=b'{"package": "com.android.settings"}')
    glass.get_by_role("button", name="Network").click()
    expect(glass.get_by_role("switch", name="Wi-Fi")).to_be_checked()

    message = json.dumps({"to": "+15550100", "body": "Late, sorry"}).encode()
    with ThreadPoolExecutor() as agent:
        for answer, status in (("Deny", 403), ("Allow", 200)):
            sent = agent.submit(world.http, "POST", "/send_sms", headers=headers, body=message)
            question = page.get_by_role("alert").filter(has_text="Send this message?")
            expect(question).to_contain_text("Late, sorry")
            question.get_by_role("button", name=answer, exact=True).click()
            assert sent.result().status == status
            expect(question).to_have_count(0)
    assert len(seen.backend.outbox) == 1

    talk = page.get_by_role("log", name="Talk with the agent")
    expect(talk).to_contain_text("Ask the agent something")
    for words, aloud, channel in (("Which app is open?", False, "chat"), ("And now?", True, "voice")):
        page.get_by_role("switch", name="Say it aloud").set_checked(aloud)
        page.get_by_label("Message from the phone").fill(words)
        page.get_by_label("Message from the phone").press("Enter")
        expect(talk.locator(".person").last).to_have_text(words)
        expect(talk.locator(".note").filter(has_text=f"{channel}: ")).to_be_visible()  # there is no agent in this world

    page.get_by_role("switch", name="Device Control").uncheck()
    world.eventually(lambda: world.http("POST", "/open_app", headers=headers, body=b'{"package": "x.y"}').status == 403)


def open_phone(site: Site, visit: PageOpener, **options: Any) -> tuple[EmulatedPhone, Page]:
    """Pair an emulated phone and open the page's tab for phones; return both."""
    visit.tolerated = ("Failed to load resource",)  # there is no reference phone
    site.world.start_relay()
    site.open()
    pixel = EmulatedPhone(name="Pixel 8")
    site.world.phone(name="Pixel 8", backend=pixel)
    return pixel, visit(f"{site.url}#phone", **options)


def test_a_paired_phone_is_seen_and_moved_by_hand(site: Site, visit: PageOpener) -> None:
    pixel, page = open_phone(site, visit)
    cards = page.locator(".cards")
    expect(cards).to_contain_text("StateOnline")
    expect(cards).to_contain_text("Device ControlOn")
    screen = page.get_by_role("region", name="Screen of Pixel 8")
    expect(page.get_by_text("No reference phone is here")).to_have_count(0)
    screen.get_by_role("button", name="Take a picture").click()
    expect(screen.get_by_text("In front: ")).to_be_visible()
    image = screen.get_by_role("img")
    size = image.evaluate("(each) => [each.naturalWidth, each.naturalHeight, each.clientWidth, each.clientHeight]")
    image.click(position={"x": size[2] // 2, "y": size[3] // 2})
    site.world.eventually(lambda: bool(pixel.gestures))
    touch = pixel.gestures[-1]
    assert touch.kind == "tap"
    for place, full, shown in zip(touch.points[0], size[:2], size[2:], strict=True):
        assert abs(place - full / 2) <= full / shown + 1
    expect(screen.get_by_role("button", name="Take a picture")).to_be_enabled()
    screen.get_by_role("button", name="Home").click()
    page.clock.fast_forward(5_000)
    expect(page.get_by_text("Tapped on", exact=False)).to_contain_text("asked by")
    expect(page.get_by_text("No phone has passed on a notification.")).to_be_visible()


def test_a_paired_phone_is_moved_by_the_keyboard(site: Site, visit: PageOpener) -> None:
    pixel, page = open_phone(site, visit, reduced_motion="reduce")
    screen = page.get_by_role("region", name="Screen of Pixel 8")
    again = screen.get_by_role("button", name="Take a picture")
    again.click()
    expect(screen.get_by_text("In front: ")).to_be_visible()
    width, height = screen.get_by_role("img").evaluate("(each) => [each.naturalWidth, each.naturalHeight]")
    page.keyboard.press("Tab")
    touched = screen.get_by_role("application", name="Touch by the keyboard")
    expect(touched).to_be_focused()
    expect(touched).to_have_accessible_description(re.compile("Enter taps"))
    expect(screen.get_by_text("Arrow keys move the pointer.")).to_be_visible()
    assert faults(page) == []
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "Shift+ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator("#announcer")).to_have_text("60 % from the left, 44 % from the top")
    place = (round(width * 0.6), round(height * 0.44))
    for key, kind in (("Enter", "tap"), ("Shift+Enter", "long_press"), ("PageDown", "swipe")):
        with page.expect_response("**/current_app"), page.expect_response(f"**/{kind}") as touch:
            page.keyboard.press(key)
        assert touch.value.ok, touch.value.text()  # and the next picture is here
        gesture = pixel.gestures[-1]
        assert gesture.kind == kind
        found, wanted = gesture.points[0], (place[0], round(height * 0.7)) if kind == "swipe" else place
        assert max(abs(one - other) for one, other in zip(found, wanted, strict=True)) <= 1
        expect(again).to_be_enabled()
    page.keyboard.press("Tab")
    expect(screen.get_by_role("button", name="Back")).to_be_focused()


def test_a_key_while_a_picture_is_taken(site: Site, visit: PageOpener) -> None:
    pixel, page = open_phone(site, visit)
    screen = page.get_by_role("region", name="Screen of Pixel 8")
    again = screen.get_by_role("button", name="Take a picture")
    again.click()
    expect(again).to_be_enabled()
    expect(screen.get_by_text("In front: ")).to_be_visible()
    expect(screen.get_by_role("img")).to_have_js_property("complete", True)
    held = list[Route]()
    page.route("**/screenshot", lambda route: held.append(route), times=1)
    again.click()
    expect(again).to_be_disabled()
    for key, what in (("Enter", "tap"), ("PageDown", "swipe")):
        with page.expect_response(f"**/{what}"):
            screen.get_by_role("application", name="Touch by the keyboard").press(key)
        assert pixel.gestures[-1].kind == what
    page.clock.fast_forward(1_000)  # the next picture is due before the first is here
    with page.expect_request("**/screenshot"), page.expect_response("**/current_app"):
        held[0].continue_()
    expect(again).to_be_enabled()


def test_a_key_while_a_picture_is_loaded(site: Site, visit: PageOpener) -> None:
    _, page = open_phone(site, visit)
    screen = page.get_by_role("region", name="Screen of Pixel 8")
    take = screen.get_by_role("button", name="Take a picture")
    take.click()
    expect(screen.get_by_text("In front: ")).to_be_visible()
    expect(take).to_be_enabled()
    held = list[Route]()
    page.route("**/media/*", lambda route: held.append(route), times=1)
    with page.expect_request("**/media/*"), page.expect_response("**/current_app"):
        take.click()
    with page.expect_response("**/tap"):
        screen.get_by_role("application", name="Touch by the keyboard").press("Enter")
    held[0].continue_()


def test_a_picture_that_does_not_come(site: Site, visit: PageOpener) -> None:
    _, page = open_phone(site, visit)
    screen = page.get_by_role("region", name="Screen of Pixel 8")
    take, problem = screen.get_by_role("button", name="Take a picture"), screen.get_by_role("alert")
    page.route("**/screenshot", lambda route: route.fulfill(json={"ok": True}), times=1)
    take.click()
    expect(problem).to_have_text("The phone sent no picture. Take another one.")
    held = list[Route]()
    page.route("**/current_app", lambda route: held.append(route))
    page.route("**/media/*", lambda route: route.abort(), times=1)
    take.click()
    expect(problem).to_have_text("The picture cannot be shown. Take another one.")
    with page.expect_response("**/current_app"):
        held[0].continue_()
    expect(take).to_be_enabled()
    expect(problem).to_have_text("The picture cannot be shown. Take another one.")
    take.click()
    expect(screen.get_by_role("img")).to_be_visible()
    expect(problem).to_be_hidden()


def test_a_phone_whose_device_control_is_off(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)
    note = {"package_name": "org.example.mail", "title": EVIL, "text": EVIL, "posted_at": 1, "key": "k"}
    phones = [
        {"device": {"device_id": "a", "name": "Off"}, "bridge": {"master_enabled": False}},
        {"device": {"device_id": "b", "name": EVIL}, "bridge": {"device_control_supported": False}, "active": True},
    ]
    script = Scripted(phones={"devices": phones}, notifications={"notifications": [note]})
    page = start(site, visit, "#phone", script)
    expect(page.get_by_text("This build of the app has no Device Control.")).to_be_visible()
    expect(page.locator(".news .name")).to_have_text("\u2068Mail\u2069")
    assert page.locator("#panel img:not([alt]), #panel script, #panel b").count() == 0
    page.get_by_role("button", name="Off").click()
    expect(page.get_by_text("Device Control is off: turn it on at the phone.")).to_be_visible()
    expect(page.get_by_role("button", name="Take a picture")).to_be_disabled()
    expect(page.get_by_role("button", name="Home")).to_be_disabled()
