"""Codecs only: an HTTP server and a WebSocket client on blocking sockets, both in a few lines.

  python -m examples.codecs 8080        # GET / answers hello, and a WebSocket at any path echoes

`Http1Connection` implements both roles of HTTP/1.1 and of its WebSockets: give it received bytes, take events until
there are none, send events, and write the result of `data_to_send`. `Http2Connection` has the same methods and events.
"""

import os
import socket
import sys
from collections.abc import Iterator

from svc_proto import RemoteProtocolError
from svc_proto.wire import (
    AcceptWebSocket,
    BinaryMessage,
    CloseWebSocket,
    Event,
    Headers,
    Http1Connection,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    Role,
    StreamId,
    TextMessage,
    WebSocketAccepted,
    WebSocketClosed,
)

PIECE = 64 * 1024  # bytes


def events(conn: Http1Connection, sock: socket.socket) -> Iterator[Event]:
    """Yield the peer's events until the connection ends; pending bytes are written before each wait."""
    while True:
        while (event := conn.next_event()) is not None:
            yield event
        sock.sendall(conn.data_to_send())
        if conn.must_close:
            return
        if data := sock.recv(PIECE):
            conn.receive_data(data)
        else:
            return


def serve(sock: socket.socket) -> None:
    """Serve one connection until it ends: requests get a greeting, and WebSockets echo."""
    conn = Http1Connection(Role.SERVER, entropy=os.urandom)
    head: RequestHead | None = None
    try:
        for event in events(conn, sock):
            match event:
                case RequestHead(websocket=True):
                    conn.send(AcceptWebSocket(event.stream))
                case RequestHead():
                    head = event
                case RequestEnd(stream=stream) if head is not None:
                    hello = f"hello, {head.method} {head.target}\n".encode()
                    conn.send(ResponseHead(stream, 200, Headers([(b"content-length", b"%d" % len(hello))])))
                    conn.send(ResponseData(stream, hello))
                    conn.send(ResponseEnd(stream))
                case TextMessage() | BinaryMessage():
                    conn.send(event)
                case _:  # bodies are ignored; pings are answered automatically
                    pass
    except RemoteProtocolError as error:
        sock.sendall(conn.data_to_send())  # sends the close code of a WebSocket
        print(f"the peer broke the protocol: {error}", file=sys.stderr)


def ask(sock: socket.socket, target: str, *texts: str) -> list[str]:
    """Open a WebSocket, send texts, and return the texts that came back, fewer if the connection ends early."""
    conn, stream = Http1Connection(Role.CLIENT, entropy=os.urandom), StreamId(1)
    conn.send(RequestHead(stream, "GET", target, Headers([(b"host", b"localhost")]), websocket=True))
    answers: list[str] = []
    sock.sendall(conn.data_to_send())
    for event in events(conn, sock):
        match event:
            case WebSocketAccepted():
                for text in texts:
                    conn.send(TextMessage(stream, text))
            case TextMessage(text=text):
                answers.append(text)
                if len(answers) == len(texts):
                    conn.send(CloseWebSocket(stream, 1000))
            case WebSocketClosed():
                break
            case _:
                pass
    return answers


def main(port: int) -> None:
    """Serve one connection after another."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            sock, _ = listener.accept()
            with sock:
                serve(sock)


if __name__ == "__main__":
    main(int(sys.argv[1]))
