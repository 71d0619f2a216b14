// Touches of a mouse, a pen or a finger on the picture of a phone's screen, in the coordinates of the phone.

const FAR = 24; // px of this page: a longer movement is a swipe
const LONG = 500; // ms: a longer touch is a long press

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
