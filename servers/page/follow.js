// Scrolling of a growing conversation: its end stays in sight until the reader scrolls up.

import { h, icon } from "./dom.js";
import { t } from "./i18n.js";

const NEAR = 40; // px from the end within which scrolling down follows again
const UP = ["ArrowUp", "PageUp", "Home"];

/** Build the log around `thread`, the button to its end, and `follow()`, which goes there and stays. */
export function followed(thread) {
  const log = h("div", { class: "log", role: "log", "aria-label": t("Conversation"), "aria-live": "off", tabindex: "0" }, thread);
  const jump = h("button", { class: "round jump", type: "button", "aria-label": t("Jump to the end"), title: t("Jump to the end"), hidden: true }, icon("down"));
  let following = true;
  let top = 0; // scrollTop after the last scroll event
  let most = Infinity; // the least scrollTop at the end since then: a log that has become shorter is moved there
  let own = -1; // scrollTop after a scroll of our own whose event has not come yet: the reader may have scrolled since

  const left = () => log.scrollHeight - log.scrollTop - log.clientHeight;
  const set = (on) => {
    following = on;
    jump.hidden = on || left() < NEAR;
  };
  const toEnd = () => {
    if (!following) return set(false);
    const before = log.scrollTop;
    log.scrollTop = log.scrollHeight;
    if (log.scrollTop !== before) own = log.scrollTop;
  };
  const follow = () => {
    following = true;
    toEnd();
    set(true);
  };

  // Sizes change with new text, loaded pictures, and the keyboard of a phone.
  const sized = new ResizeObserver(() => {
    most = Math.min(most, log.scrollHeight - log.clientHeight);
    toEnd();
  });
  sized.observe(log);
  sized.observe(thread);
  log.addEventListener("scroll", () => {
    const up = log.scrollTop < Math.min(top, most) - 1;
    const down = log.scrollTop > top && log.scrollTop !== own;
    [top, most, own] = [log.scrollTop, Infinity, -1];
    if (up && left() > 1) set(false);
    else if (down && left() < NEAR) set(true);
    else if (!following) set(false);
  });
  // The first step of a smooth scroll can be smaller than the text that arrives meanwhile.
  log.addEventListener("wheel", (event) => { if (event.deltaY < 0 && log.scrollTop > 0) set(false); }, { passive: true });
  log.addEventListener("keydown", (event) => { if (UP.includes(event.key) && log.scrollTop > 0) set(false); });
  jump.addEventListener("click", () => {
    follow();
    log.focus({ preventScroll: true });
  });
  return { log, jump, follow };
}
