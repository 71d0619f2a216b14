// Card of a file for the phone in a message (`MEDIA:` lines), with the picture itself if the file is one.

import { h, icon, ticking } from "./dom.js";
import { size, text } from "./format.js";
import { t } from "./i18n.js";
import { timeLeft } from "./media.js";
import { chatPictureOf, pictureOf, relay } from "./net.js";
import { PICTURES } from "./pictures.js";

export const MEDIA = /^MEDIA:(?:(["'`])(\/.+)\1|(\/.*\S|\S+))\s*$/; // a path may contain blanks
const FILE = /^\/.+\.(png|jpe?g|gif|webp)$/i; // a picture on the host

/** Build the card of a file for the phone, with the picture itself if the file is one. */
export function mediaCard(where) {
  const token = /:\/\/(.+)$/.exec(where)?.[1];
  const about = h("div", { class: "sub" }, token ? t("Token {token}", { token: token.slice(0, 8) }) : t("A file of the host"));
  const name = h("strong", { class: "name" }, token ? t("A file for the phone") : where);
  const card = h("div", { class: "media-card" }, icon("file"), h("div", {}, name, about), h("a", { href: "#media" }, t("Media")));
  if (token) {
    relay("GET", "/media").then((found) => {
      const entry = (found.media ?? []).find((each) => each.token === token);
      if (!entry) {
        about.textContent = t("Expired");
        const chat = location.hash.split("/")[1];
        if (chat) card.after(stored(chat, token, about));
        return;
      }
      name.textContent = text(entry.file_name);
      about.replaceChildren(`${text(entry.content_type)} · ${size(entry.size)} · `, ticking(h("span"), (each) => timeLeft(each, entry)));
      if (PICTURES.includes(entry.content_type)) card.after(shot(token, text(entry.file_name)));
    }).catch(() => {});
  }
  if (!token && FILE.test(where)) card.lastChild.replaceWith(showing(where, card, about));
  return h("div", { class: "media-of" }, card);
}

/** Build the button that registers and shows a picture on the host: opening a chat alone creates no media tokens. */
function showing(path, card, about) {
  const button = h("button", { type: "button", class: "quiet" }, t("Show"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      card.after(shot((await relay("POST", "/media", { path })).token, path));
    } catch (error) {
      about.textContent = error.message;
    }
    button.remove();
  });
  return button;
}

/** Build the picture that is stored with the open chat; it is removed if the chat has none. */
function stored(chat, token, about) {
  const picture = shot(token, t("A picture of this chat"), chatPictureOf(chat, token));
  picture.addEventListener("load", () => (about.textContent = t("Stored with this chat")));
  return picture;
}

function shot(token, name, src = pictureOf(token)) {
  const picture = h("img", { class: "shot", src, alt: name });
  picture.addEventListener("error", () => picture.remove());
  return picture;
}
