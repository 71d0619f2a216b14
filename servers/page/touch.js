// Touches of a mouse, a pen, a finger or the keyboard on the picture of a phone's screen, in the coordinates of the phone.

import { announce, h } from "./dom.js";
import { t } from "./i18n.js";

const FAR = 24; // px of this page: a longer movement is a swipe
const LONG = 500; // ms: a longer touch is a long press

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEP = 5; // % of the screen for each arrow key, 1 with Shift
let frames = 0; // made so far
const SCROLL = { PageDown: [70, 30], PageUp: [30, 70] }; // % from the top, where a swipe starts and ends

/** Build a frame around the picture `surface`, in which the keyboard moves a pointer and touches; arguments as below. */
export function keyboardFrame(surface, sizeOf, send) {
  const hint = h("p", { id: `keys-${(frames += 1)}` }, t("Arrow keys move the pointer. Enter taps, Shift and Enter press long, Page Up and Page Down scroll."));
  const mark = h("span", { class: "pointer" });
  const frame = h("div", { class: "sight", role: "application", tabindex: "0", "aria-label": t("Touch by the keyboard"), "aria-describedby": hint.id }, surface, mark, hint);
  let [left, top] = [50, 50]; // %
  const draw = () => {
    mark.style.left = `${surface.offsetLeft + (surface.offsetWidth * left) / 100}px`;
    mark.style.top = `${surface.offsetTop + (surface.offsetHeight * top) / 100}px`;
  };
  const at = (x, y) => {
    const { width, height } = sizeOf();
    return { x: Math.min(width - 1, Math.round((x * width) / 100)), y: Math.min(height - 1, Math.round((y * height) / 100)) };
  };
  frame.addEventListener("focus", draw);
  frame.addEventListener("keydown", (event) => {
    const { width } = sizeOf();
    if (event.target !== frame || event.ctrlKey || event.altKey || event.metaKey || !width) return;
    if (ARROWS[event.key]) {
      const [x, y] = ARROWS[event.key].map((each) => each * (event.shiftKey ? 1 : STEP));
      [left, top] = [left + x, top + y].map((each) => Math.min(100, Math.max(0, each)));
      draw();
      announce(t("{x} % from the left, {y} % from the top", { x: left, y: top }));
    } else if (event.key === "Enter" && !event.repeat) send({ kind: event.shiftKey ? "long_press" : "tap", ...at(left, top) });
    else if (SCROLL[event.key] && !event.repeat) {
      const [from, to] = SCROLL[event.key].map((each) => at(left, each));
      send({ kind: "swipe", start_x: from.x, start_y: from.y, end_x: to.x, end_y: to.y });
    } else return;
    event.preventDefault();
  });
  return frame;
}

/** Report touches on `element` to `send({ kind, … })`; `sizeOf()` returns width and height of the phone's screen. */
export function watchTouches(element, sizeOf, send) {
  let down = null;
  element.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary || event.button !== 0) return;
    down = { x: event.clientX, y: event.clientY, at: performance.now() };
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointercancel", () => { down = null; });
  element.addEventListener("pointerup", (event) => {
    if (!down) return;
    const { x, y, at } = down;
    down = null;
    const from = point(x, y);
    const to = point(event.clientX, event.clientY);
    if (Math.hypot(event.clientX - x, event.clientY - y) > FAR) send({ kind: "swipe", start_x: from.x, start_y: from.y, end_x: to.x, end_y: to.y });
    else send({ kind: performance.now() - at > LONG ? "long_press" : "tap", ...from });
  });

  function point(x, y) {
    const box = element.getBoundingClientRect();
    const { width, height } = sizeOf();
    const within = (value, most) => Math.min(most - 1, Math.max(0, Math.round(value)));
    return { x: within(((x - box.left) / box.width) * width, width), y: within(((y - box.top) / box.height) * height, height) };
  }
}
