// A server that shares no code with ours: Node's, over TLS, HTTP/2 and HTTP/1.1 on one port. It says its port, then
// one line for each request: version, method, path. Arguments: certificate, key, "sockets" (RFC 8441) or "none".
"use strict";
const { createHash } = require("node:crypto");
const { readFileSync } = require("node:fs");
const http2 = require("node:http2");

const [cert, key, mode] = process.argv.slice(2);
const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455 section 1.3
const server = http2.createSecureServer({
  cert: readFileSync(cert),
  key: readFileSync(key),
  allowHTTP1: true,
  settings: { enableConnectProtocol: mode === "sockets" },
});

// Small text frames are sent back, a close frame too; nothing else is understood (RFC 6455 section 5.2).
function echo(stream) {
  let waiting = Buffer.alloc(0);
  stream.on("data", (data) => {
    waiting = Buffer.concat([waiting, data]);
    while (waiting.length >= 6) {
      const size = waiting[1] & 0x7f;
      if (waiting.length < 6 + size) return;
      const mask = waiting.subarray(2, 6);
      const payload = waiting.subarray(6, 6 + size).map((byte, at) => byte ^ mask[at % 4]);
      const opcode = waiting[0] & 0x0f;
      waiting = waiting.subarray(6 + size);
      stream.write(Buffer.concat([Buffer.from([0x80 | opcode, size]), payload]));
      if (opcode === 8) stream.end();
    }
  });
  stream.on("error", () => {});
}

function say(version, method, path) {
  console.log(`${version} ${method} ${path}`);
}

server.on("stream", (stream, headers) => {
  if (headers[":method"] !== "CONNECT") return;
  say("2.0", `CONNECT:${headers[":protocol"]}`, headers[":path"]);
  stream.respond({ ":status": 200 });
  echo(stream);
});

server.on("connect", () => {}); // else it is answered with 405 beside that

server.on("upgrade", (request, socket) => {
  say(request.httpVersion, "UPGRADE", request.url);
  const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + MAGIC).digest("base64");
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  echo(socket);
});

server.on("request", (request, response) => {
  say(request.httpVersion, request.method, request.url);
  if (request.url === "/reset") {
    response.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  } else if (request.url === "/events") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    let number = 0;
    const timer = setInterval(() => {
      number += 1;
      response.write(`data: ${number}\n\n`);
      if (number === 3) {
        clearInterval(timer);
        response.end();
      }
    }, 5);
  } else {
    const hash = createHash("sha256");
    let size = 0;
    request.on("data", (data) => {
      size += data.length;
      hash.update(data);
    });
    request.on("end", () => response.end(JSON.stringify({ size, hash: hash.digest("hex") })));
  }
});

server.on("sessionError", () => {});
server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
