// A chat as a file: Markdown to read, JSON to process.

import { h, icon } from "./dom.js";
import { moment } from "./format.js";
import { t } from "./i18n.js";
import { textOf } from "./turn.js";

/** Build the menu; `chatOf()` resolves to `{ title, rows }` of the open chat. */
export function exportMenu(chatOf, onError) {
  const items = [["Markdown", "md", "text/markdown", markdown], ["JSON", "json", "application/json", json]].map(([label, suffix, kind, write]) => {
    const button = h("button", { type: "button", class: "quiet" }, label);
    button.addEventListener("click", async () => {
      menu.open = false;
      try {
        const chat = await chatOf();
        save(new Blob([write(chat)], { type: kind }), `${nameOf(chat.title)}.${suffix}`);
      } catch (error) {
        onError(error);
      }
    });
    return button;
  });
  const menu = h("details", { class: "menu" }, h("summary", { "aria-label": t("Export this chat"), title: t("Export") }, icon("export")), h("div", {}, items));
  menu.addEventListener("focusout", (event) => { if (!menu.contains(event.relatedTarget)) menu.open = false; });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.preventDefault();
    menu.open = false;
    menu.firstChild.focus();
  });
  return menu;
}

function markdown({ title, rows }) {
  const parts = rows.map((row) => {
    const calls = (row.tool_calls ?? []).map((call) => `    ${call.function?.name ?? call.name} ${call.function?.arguments ?? ""}`).join("\n");
    const who = { user: t("You"), assistant: t("Agent") }[row.role];
    const words = row.role === "tool" ? textOf(row.content).split("\n").map((line) => `    ${line}`).join("\n") : textOf(row.content);
    const inside = [words, calls].filter(Boolean).join("\n\n");
    return who && inside ? `## ${who}, ${moment(row.timestamp) ?? ""}\n\n${inside}` : inside;
  });
  return `# ${title}\n\n${parts.filter(Boolean).join("\n\n")}\n`;
}

function json({ title, rows }) {
  return `${JSON.stringify({ title, messages: rows }, null, 2)}\n`;
}

function nameOf(title) {
  return title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "chat";
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
