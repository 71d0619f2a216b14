// The screen of a paired phone as a picture, on request, and touches on it. All of it passes the gates of the phone.

import { announce, h, icon, put, ticking } from "./dom.js";
import { ago, seconds } from "./format.js";
import { t } from "./i18n.js";
import { command, pictureOf } from "./net.js";
import { appName } from "./sentences.js";
import { keyboardFrame, watchTouches } from "./touch.js";

const SETTLED = 800; // ms from a touch to the next picture
const KEYS = [["back", t("Back")], ["home", t("Home")], ["recents", t("Recent apps")]];
const TOKEN = /:\/\/([\w-]{1,200})/;

/** Build the screen of one phone: `show(phone, record)` takes its report and its latest command for a picture. */
export function screenOf(id, name) {
  const closing = new AbortController();
  let at = null; // time of the picture in epoch seconds
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const take = h("button", { type: "button", class: "main", onclick: () => look() }, icon("screen"), t("Take a picture"));
  const image = h("img", { alt: t("Screen of {name}", { name }), draggable: "false", hidden: true, onload: shown, onerror: lost });
  const taken = ticking(h("p", { class: "sub" }), (each) => put(each, at ? t("Taken {when}", { when: ago(at) }) : ""));
  const app = h("p", { class: "sub" });
  const words = h("input", { "aria-label": t("Text for the phone"), placeholder: t("Type into the phone"), autocomplete: "off" });
  const typing = h("form", { class: "joined" }, words, h("button", { type: "submit" }, t("Type")));
  const keys = h("div", { class: "keys", role: "group", "aria-label": t("Keys of the phone") },
    KEYS.map(([key, title]) => h("button", { type: "button", onclick: () => act("key", { key }) }, title)));
  const hands = h("fieldset", { class: "hands", "aria-label": t("Control by hand"), disabled: true }, keys, typing);
  const hint = h("p", { class: "sub" });
  const element = h("section", { class: "takeover", "aria-label": t("Screen of {name}", { name }) }, h("div", { class: "heading" }, h("h3", {}, t("Screen")), take), problem, hint,
    keyboardFrame(image, sizeOf, touch), app, taken, hands);
  let size = { width: 0, height: 0 }; // of the last picture that was loaded: while the next one is, the image has none
  let able = false;
  let busy = false; // while a picture is taken
  let isOld = false; // the phone was touched since the picture that is taken was requested
  let isRequested = false; // the picture was taken for this page; an earlier one may have expired
  let settling = 0; // timer to the next picture

  function sizeOf() {
    return size;
  }

  function shown() {
    size = { width: image.naturalWidth, height: image.naturalHeight };
  }

  function touch({ kind, ...place }) {
    return act(kind, place);
  }

  function lost() {
    image.hidden = true;
    size = { width: 0, height: 0 };
    if (isRequested) fail(t("The picture cannot be shown. Take another one."));
  }

  function fail(text) {
    put(problem, text);
    problem.hidden = false;
  }

  async function send(what, body) {
    try {
      return await command(id, what, body, closing.signal);
    } catch (error) {
      if (!closing.signal.aborted) fail(error.message);
      return null;
    }
  }

  async function look() {
    clearTimeout(settling);
    if (busy) {
      isOld = true;
      return;
    }
    busy = true;
    isOld = false;
    take.disabled = true;
    const answer = await send("screenshot", {});
    if (answer) problem.hidden = true; // before the picture is loaded: it may report a problem of its own
    const token = TOKEN.exec(`${answer?.media ?? ""}`)?.[1];
    if (token) {
      isRequested = true;
      image.src = pictureOf(token);
      image.hidden = false;
      at = Date.now() / 1000;
      announce(t("The picture is here"));
      const open = await send("current_app", {});
      if (open?.package) put(app, t("In front: {app}", { app: appName(open.package) }));
    } else if (answer) fail(t("The phone sent no picture. Take another one."));
    busy = false;
    take.disabled = !able;
    if (isOld && !closing.signal.aborted) look();
  }

  async function act(what, body) {
    if (!able) return false;
    const answer = await send(what, body);
    if (answer) {
      problem.hidden = true;
      clearTimeout(settling);
      settling = setTimeout(() => { if (!closing.signal.aborted) look(); }, SETTLED);
    }
    return Boolean(answer);
  }

  watchTouches(image, sizeOf, touch);
  typing.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await act("type", { text: words.value })) words.value = "";
  });

  return {
    element,
    show({ bridge = {} }, record) {
      able = bridge.master_enabled === true && bridge.device_control_supported !== false;
      hands.disabled = !able;
      take.disabled = !able || busy;
      put(hint, able ? t("Tap or swipe on the picture to control the phone. The phone may ask its user before.")
        : bridge.device_control_supported === false ? t("This build of the app has no Device Control.")
          : t("Device Control is off: turn it on at the phone."));
      const token = TOKEN.exec(`${record?.result_summary ?? ""}`)?.[1];
      if (token && at === null) {
        at = seconds(record.sent_at);
        image.src = pictureOf(token);
        image.hidden = false;
      }
    },
    close: () => closing.abort(),
  };
}
