"""Misbehaving clients for robustness.sh. Usage: robustness.py KIND HOST:PORT; runs until it is killed."""

import asyncio
import os
import random
import sys

kind, address = sys.argv[1:]
host, port = address.rsplit(":", 1)


async def connect():
    return await asyncio.open_connection(host, int(port))


async def send_slow_head():
    """Sends a request head, one byte every half second."""
    _, writer = await connect()
    writer.write(b"POST /rate/slow HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    while not writer.is_closing():
        await asyncio.sleep(0.5)
        writer.write(b"a")
        await writer.drain()


async def send_garbage():
    """Sends random bytes, or a request with one random byte."""
    request = b"POST /rate/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    reader, writer = await connect()
    broken = bytearray(random.choice([request, os.urandom(200)]))
    broken[random.randrange(len(broken))] = random.randrange(256)
    writer.write(bytes(broken))
    writer.write_eof()
    await reader.read()
    writer.close()


async def disconnect():
    """Queues a request and disconnects while it waits."""
    _, writer = await connect()
    writer.write(b"POST /rate/queue?canWait=true HTTP/1.1\r\nHost: x\r\n\r\n")
    await writer.drain()
    await asyncio.sleep(random.random() / 10)
    writer.transport.abort()


async def repeat(behavior):
    while True:
        try:
            await behavior()
        except OSError:
            await asyncio.sleep(0.01)


async def main():
    kinds = {"slow": (send_slow_head, 500), "garbage": (send_garbage, 20), "disconnect": (disconnect, 100)}
    behavior, count = kinds[kind]
    await asyncio.gather(*(repeat(behavior) for _ in range(count)))


asyncio.run(main())
