import math
import re
from typing import Any

from playwright.sync_api import Page, expect

from svc_proto.service_clients.server_stats import NAMES
from tests.browser.conftest import PageOpener, Site
from tests.browser.test_layout import STICKS_OUT
from tests.browser.test_pictures import WIDE, Album

NOW = 1_700_003_600.0
DASH = "\u2013"
AWAY = range(100, 120)  # samples that are missing: the host slept


def look(number: int) -> list[float | None]:
    """Return sample `number`, from 0 to 240: one for every 15 s of the hour before `NOW`."""
    wave = round(1 + math.sin(number / 20), 3)
    known: dict[str, float | None] = dict.fromkeys(NAMES, wave)
    known |= {"at": NOW - 3600 + 15 * number, "phones": 2 + number // 120, "sessions": 5, "sockets": round(3 * wave)}
    known |= {"turns": round(wave), "waiting": 1, "descriptors": 31, "memory": 4.7e7 + 1e5 * number, "strangers": 900}
    known |= {"errors": 0.5 if number > 200 else 0, "failed": 0, "lag": 0.0004 * wave, "latest": 0.005, "store": None}
    return [known[name] for name in NAMES]


def hour(*, rows: int = 240, api: bool = True) -> dict[str, Any]:
    kept = [look(number) for number in range(240 - rows, 240) if number not in AWAY]
    answers = {"relay": True, "api": api}
    return {"every": 15, "span": 3600, "names": NAMES, "rows": kept, "now": look(240), "answers": answers}


def opened(site: Site, visit: PageOpener, answer: dict[str, Any]) -> Page:
    """Open the tab with the load; `answer` is the response to its request for `/api/vitals`."""
    site.open()
    page = visit(f"{site.url}#media", viewport=WIDE, reduced_motion="reduce", clock=NOW)
    page.route("**/api/vitals", lambda route: route.fulfill(json=answer))
    page.evaluate("location.hash = 'load'")
    return page


def test_running_servers_are_shown_at_once(site: Site, visit: PageOpener) -> None:
    site.world.start_relay()
    site.world.phone(name="Pixel")
    site.open(api=site.world.api())
    page = visit(f"{site.url}#load")
    phones = page.locator("figure").filter(has_text=re.compile("^Phones"))
    expect(phones.locator(".value")).to_have_text("1")
    expect(phones.locator(".hint")).to_have_text("1 paired")
    expect(page.locator("figure").filter(has_text="Requests").locator(".value")).to_have_text(DASH)
    expect(page.locator("figure").filter(has_text="Memory").locator(".value")).to_have_text(re.compile(r"^\d+\.\d MB$"))
    expect(page.get_by_text("The charts fill over time: one sample every 15 seconds.")).to_be_visible()
    page.clock.fast_forward(5_000)
    expect(page.locator("figure").filter(has_text="Requests").locator(".value")).to_have_text("0 a second")


def test_an_hour(site: Site, visit: PageOpener) -> None:
    site.world.start_relay()
    page = opened(site, visit, hour())
    charts = page.locator("figure")
    expect(charts).to_have_count(10)
    phones = page.get_by_role("img", name=re.compile("^Phones since .*: now 4, least 2, most 4.$"))
    expect(phones).to_have_count(1)
    lines = phones.locator("path:not(.rail, .under)")
    expect(lines).to_have_count(2)  # before and after the gap
    points = [float(each) for each in re.findall(r"[ML](\S+) ", lines.last.get_attribute("d") or "")]
    assert points == sorted(points)
    assert (points[0], points[-1]) == (120.0, 240.0)
    failing = charts.filter(has_text="Requests")
    expect(failing.locator(".hint.bad")).to_have_text("0.50 a second fail")
    expect(failing.locator(".second")).to_have_count(2)
    expect(charts.filter(has_text="Loop lag").locator(".hint")).to_have_text("none above 5 ms")
    expect(charts.filter(has_text="Store").locator(".value")).to_have_text(DASH)
    expect(page.get_by_role("img", name=re.compile("^Store since .*: no number yet.$"))).to_have_count(1)
    album = Album(page)
    album.check_everywhere("load")
    album.shoot("load")
    page.set_viewport_size({"width": 320, "height": 640})
    edges = charts.evaluate_all("all => all.map((each) => each.getBoundingClientRect()).map(({ x, y }) => [x, y])")
    assert (edges[0][1], edges[0][0]) == (edges[1][1], edges[2][0])  # two in a row
    page.evaluate("document.body.style.letterSpacing = '0.02em'")
    assert page.locator("main").evaluate(STICKS_OUT) == []


def test_a_server_without_metrics(site: Site, visit: PageOpener) -> None:
    site.world.start_relay()
    page = opened(site, visit, hour(rows=5, api=False))
    expect(page.get_by_text("No numbers at the moment from: API server.")).to_be_visible()


def test_nothing_to_show(site: Site, visit: PageOpener) -> None:
    site.open(relay_url="http://127.0.0.1:9")
    page = visit(f"{site.url}#load", viewport={"width": 320, "height": 640})
    expect(page.get_by_text("No numbers yet")).to_be_visible()
    assert page.locator("main").evaluate(STICKS_OUT) == []
    Album(page).check("load-empty")
