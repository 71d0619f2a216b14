// Service worker: keeps the page's own files, so that an installed page opens and says that the dashboard does not
// answer. The network comes first, so a new version is used at once. Answers of the servers are never kept.

const NAME = "svc-relay-page";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && isOwn(new URL(event.request.url))) event.respondWith(fresh(event));
});

/** Report whether an address is that of the page or of one of its files. */
function isOwn({ origin, pathname, search }) {
  const scope = new URL(self.registration.scope);
  return origin === scope.origin && !search && (pathname === scope.pathname || pathname.startsWith(`${scope.pathname}page/`));
}

/** Return the answer of the network; without one, the kept answer. */
async function fresh(event) {
  try {
    const answer = await fetch(event.request);
    if (answer.ok && !answer.redirected) {
      const copy = answer.clone();
      event.waitUntil(caches.open(NAME).then((cache) => cache.put(event.request, copy)).catch(() => {})); // no space left
    }
    return answer;
  } catch (error) {
    const kept = await caches.match(event.request, { cacheName: NAME, ignoreVary: true });
    if (kept) return kept;
    throw error;
  }
}
