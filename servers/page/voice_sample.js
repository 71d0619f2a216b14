// Voice in Settings: a text spoken by the voice of this host.

import { h, put } from "./dom.js";
import { t } from "./i18n.js";
import { speak } from "./net.js";

const MAX_TEXT = 500; // characters

/** Build the block; `signal` ends the request and the sound. */
export function voiceBlock(signal) {
  const words = h("input", { "aria-label": t("Text to speak"), value: t("Hello, this is the voice of your assistant."), maxlength: MAX_TEXT, autocomplete: "off" });
  const listen = h("button", { type: "submit" }, t("Listen"));
  const said = h("p", { class: "sub", role: "status" });
  const form = h("form", { class: "settings" }, h("div", { class: "joined" }, words, listen), said,
    h("p", { class: "sub" }, t("The phone chooses the voice, or the configuration file of the host does: voice_output.")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    listen.disabled = true;
    put(said, t("Being spoken…"));
    try {
      const { data_url: sound } = await speak(words.value, signal);
      put(said, t("{seconds} s of sound", { seconds: (await play(sound, signal)).toFixed(1) }));
    } catch (error) {
      if (!signal.aborted) put(said, error.message);
    }
    listen.disabled = false;
  });
  return h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("Voice"))), form);
}

/** Play a sound, and return its length in s. The policy of the page has no media elements, so it is decoded here. */
async function play(url, signal) {
  const bytes = Uint8Array.from(atob(url.slice(url.indexOf(",") + 1)), (sign) => sign.charCodeAt(0));
  const context = new AudioContext();
  signal.addEventListener("abort", () => context.close(), { once: true });
  const source = new AudioBufferSourceNode(context, { buffer: await context.decodeAudioData(bytes.buffer) });
  source.connect(context.destination);
  source.start();
  return source.buffer.duration;
}
