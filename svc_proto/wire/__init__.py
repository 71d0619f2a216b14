"""Bytes to events and back: HTTP/1.1, WebSocket, SSE, multipart. The only home of h11, h2 and wsproto."""
