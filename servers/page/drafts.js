// Drafts of messages, kept in the browser for each chat, so that a reload or an outage loses no words.

const KEY = "svc-relay-draft:";

/** Return the draft of a chat; `null` is the chat that is not created yet. */
export function draftOf(session) {
  try {
    return localStorage.getItem(KEY + (session ?? "")) ?? "";
  } catch {
    return "";
  }
}

/** Keep the draft of a chat; an empty one is removed. */
export function keepDraft(session, words) {
  try {
    if (words.trim()) localStorage.setItem(KEY + (session ?? ""), words);
    else localStorage.removeItem(KEY + (session ?? ""));
  } catch { /* private window or no space left: the draft is lost with the page */ }
}
