"""Clients that mean no good, for robustness.sh: robustness.py KIND HOST:PORT, until it is killed."""

import asyncio
import os
import random
import sys

kind, where = sys.argv[1:]
host, port = where.rsplit(":", 1)


async def connect():
    return await asyncio.open_connection(host, int(port))


async def drip():
    """A head, one byte every half second."""
    _, writer = await connect()
    writer.write(b"POST /rate/slow HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    while not writer.is_closing():
        await asyncio.sleep(0.5)
        writer.write(b"a")
        await writer.drain()


async def garbage():
    """Random bytes, and requests that are broken in one place."""
    request = b"POST /rate/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    reader, writer = await connect()
    broken = bytearray(random.choice([request, os.urandom(200)]))
    broken[random.randrange(len(broken))] = random.randrange(256)
    writer.write(bytes(broken))
    writer.write_eof()
    await reader.read()
    writer.close()


async def vanish():
    """Waits for its turn, and is gone in the middle of it."""
    _, writer = await connect()
    writer.write(b"POST /rate/queue?canWait=true HTTP/1.1\r\nHost: x\r\n\r\n")
    await writer.drain()
    await asyncio.sleep(random.random() / 10)
    writer.transport.abort()


async def client(what):
    while True:
        try:
            await what()
        except OSError:
            await asyncio.sleep(0.01)


async def main():
    what, count = {"drip": (drip, 500), "garbage": (garbage, 20), "vanish": (vanish, 100)}[kind]
    await asyncio.gather(*(client(what) for _ in range(count)))


asyncio.run(main())
