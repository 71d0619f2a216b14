// Server-sent events of a fetched body (WHATWG HTML 9.2): `for await (const { event, data } of events(body))`.

export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = "";
  let data = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return; // an incomplete last event is dropped
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const raw of lines) {
        const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
        if (line === "") {
          if (data.length) yield { event: event || "message", data: data.join("\n") };
          event = "";
          data = [];
        } else if (line.startsWith("event:")) event = line.slice(6).trimStart();
        else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
