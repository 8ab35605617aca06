"""Clients that occupy memory, for robustness.sh. Usage: memory.py KIND HOST:PORT; prints `ready` and holds what it has
until it is killed."""

import asyncio
import socket
import struct
import sys

kind, address = sys.argv[1:]
host, port = address.rsplit(":", 1)

DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 4, 6, 8, 9
ACK, END_STREAM, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
JSON = [("content-type", "application/json")]


class Http2:
    """A connection that reads frames, or nothing at all, but no response: its windows stay as it opens them."""

    async def open(self, window, reads=True):
        self.reader, self.writer = await asyncio.open_connection(host, int(port))
        self.window, self.stream_window, self.windows = 65535, 65535, {}
        self.changed, self.next_id = asyncio.Event(), 1
        self.writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.send(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window))
        self.reading = asyncio.create_task(self.read() if reads else asyncio.sleep(3600))
        return self

    def send(self, kind, flags, stream, payload=b""):
        self.writer.write(struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload)

    def request(self, method, path, headers, end):
        """Sends a request head, with its fields as literals without a name of the table (RFC 7541, 6.2.2)."""
        fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost"), *headers]
        block = b"".join(b"\0" + text(name) + text(value) for name, value in fields)
        stream, self.next_id = self.next_id, self.next_id + 2
        self.windows[stream] = self.stream_window
        parts = [block[start : start + 16384] for start in range(0, len(block), 16384)]
        for n, part in enumerate(parts):
            last = END_HEADERS if n == len(parts) - 1 else 0
            self.send(CONTINUATION if n else HEADERS, last | (END_STREAM if end and not n else 0), stream, part)
        return stream

    async def body(self, stream, length):
        """Sends a part of a body, as far as the windows permit."""
        while length > 0 and not self.reading.done():
            size = min(length, self.window, self.windows[stream], 16384)
            if size <= 0:
                self.changed.clear()
                await self.changed.wait()
                continue
            self.send(DATA, 0, stream, b" " * size)
            await self.writer.drain()
            length -= size
            self.window -= size
            self.windows[stream] -= size

    async def read(self):
        try:
            while True:
                head = await self.reader.readexactly(9)
                length, kind, flags, stream = int.from_bytes(head[:3]), head[3], head[4], int.from_bytes(head[5:])
                payload = await self.reader.readexactly(length)
                if kind == SETTINGS and not flags & ACK:
                    for name, value in struct.iter_unpack(">HI", payload):
                        if name == INITIAL_WINDOW_SIZE:
                            self.windows = {s: w + value - self.stream_window for s, w in self.windows.items()}
                            self.stream_window = value
                    self.send(SETTINGS, ACK, 0)
                elif kind == PING and not flags & ACK:
                    self.send(PING, ACK, 0, payload)
                elif kind == WINDOW_UPDATE and stream == 0:
                    self.window += int.from_bytes(payload)
                elif kind == WINDOW_UPDATE and stream in self.windows:
                    self.windows[stream] += int.from_bytes(payload)
                self.changed.set()
        except (OSError, asyncio.IncompleteReadError):
            self.changed.set()


def text(value):
    """Returns a string literal of HPACK (RFC 7541, 5.2)."""
    value, length = value.encode(), len(value)
    if length < 127:
        return bytes([length]) + value
    length -= 127
    prefix = [127]
    while length >= 128:
        prefix.append(length % 128 + 128)
        length //= 128
    return bytes([*prefix, length]) + value


async def unread(connections, streams, path, headers=(), window=0, reads=True):
    """Requests a path on many streams, and reads no response."""
    for _ in range(connections):
        connection = await Http2().open(window, reads)
        for _ in range(streams):
            connection.request("GET", path, [("accept-encoding", "gzip"), *headers], True)
        await connection.writer.drain()
        yield connection


async def unfinished(connections, streams, path, length, headers=()):
    """Sends bodies that don't end, over HTTP/2."""
    for _ in range(connections):
        connection = await Http2().open(65535)
        for _ in range(streams):
            stream = connection.request("POST", path, [*JSON, *headers], False)
            await asyncio.wait_for(connection.body(stream, length), 5)
        yield connection


async def unfinished_http1(connections, path, length, announced):
    """Sends bodies that don't end, over HTTP/1.1."""
    for _ in range(connections):
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {announced}\r\n\r\n"
        writer.write(head.encode())
        for start in range(0, length, 65536):
            writer.write(b" " * min(65536, length - start))
            await writer.drain()
        yield reader, writer


async def keys(count):
    """Adds keys of `/rate` that stay."""
    reader, writer = await asyncio.open_connection(host, int(port))
    for start in range(0, count, 100):
        for key in range(start, start + 100):
            writer.write(f"POST /rate/stay-{key} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await writer.drain()
        for _ in range(100):
            await reader.readuntil(b"\r\n\r\n")
            # The body is an id without a newline; its length is read from the next head.
    writer.close()


BODY = 255_000
KINDS = {
    "page": lambda: unread(1, 1000, "/"),
    "pages": lambda: unread(30, 1000, "/"),
    "document": lambda: unread(30, 1000, "/openapi.json"),
    "silent": lambda: unread(30, 1000, "/", reads=False),
    "byte": lambda: unread(30, 1000, "/openapi.json", window=1),
    "debug": lambda: unread(1, 100, "/debug"),
    "metrics": lambda: unread(30, 1000, "/metrics"),
    "stats": lambda: unread(30, 1000, "/v1/stats?limit=1000"),
    "heads": lambda: unfinished(30, 1000, "/v1/reserve", 1, [(f"x-{n}", "a" * 4000) for n in range(14)]),
    "bodies": lambda: unfinished_http1(1000, "/v1/reserve", BODY, 256_000),
    "streams": lambda: unfinished(4, 1000, "/v1/reserve", BODY),
    "gzip": lambda: unfinished(30, 1000, "/v1/reserve", 1, [("content-encoding", "gzip")]),
    "uploads": lambda: unfinished_http1(20, "/up/v1/chat/completions", 31 << 20, 32 << 20),
}


async def main():
    held = []
    if kind in ("debug", "stats"):
        await keys(30_000)
    try:
        async for connection in KINDS[kind]():
            held.append(connection)
    except (OSError, TimeoutError) as error:
        print("ended early:", type(error).__name__, len(held), flush=True)
    print("ready", flush=True)
    await asyncio.sleep(3600)


asyncio.run(main())
