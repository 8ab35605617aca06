"""The clients beside paceline. Usage: clients.py sdk|aimd URL REQUESTS.jsonl; prints the number of answers.

sdk: AsyncOpenAI(max_retries=30), 50 requests at a time.
aimd: concurrency from 20, between 4 and 100. It doubles once per round until the first 429, then grows by
one per round, and halves at a 429, once per round. It obeys Retry-After, or else backs off from 0.5 s,
doubling to 8 s, and tries a request 30 times.
"""

import asyncio
import collections
import json
import random
import sys
import time

import httpx2
import openai

TRIES = 31


class Sdk:
    def __init__(self, url):
        self.client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=TRIES - 1)
        self.free = asyncio.Semaphore(50)

    async def answer(self, body):
        async with self.free:
            try:
                await self.client.chat.completions.create(**body)
            except openai.APIError:
                return False
            return True


class Aimd:
    def __init__(self, url):
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        self.client = httpx2.AsyncClient(base_url=url, limits=limits, timeout=600)
        self.bound, self.in_flight, self.round, self.is_doubling = 20.0, 0, 0, True
        self.reacted, self.waiting = float("-inf"), collections.deque()

    async def answer(self, body):
        for number in range(TRIES):
            await self.enter()
            sent = time.monotonic()
            try:
                response = await self.client.post("/v1/chat/completions", json=body)
                self.adapt(sent, response.status_code)
            finally:
                self.leave()
            if response.status_code == 200:
                return True
            await asyncio.sleep(self.delay(response.headers, number))
        return False

    async def enter(self):
        if self.in_flight >= int(self.bound):
            turn = asyncio.get_running_loop().create_future()
            self.waiting.append(turn)
            await turn
        else:
            self.in_flight += 1

    def leave(self):
        self.in_flight -= 1
        while self.waiting and self.in_flight < int(self.bound):
            self.in_flight += 1
            self.waiting.popleft().set_result(None)

    def adapt(self, sent, status):
        if status == 200:
            self.round += 1
            if self.round >= self.bound:
                self.bound = min(100.0, self.bound * 2 if self.is_doubling else self.bound + 1)
                self.round = 0
        elif sent > self.reacted:
            self.bound = max(4.0, self.bound / 2)
            self.round, self.is_doubling, self.reacted = 0, False, time.monotonic()

    def delay(self, headers, number):
        if milliseconds := float(headers.get("retry-after-ms", 0)):
            return milliseconds / 1000
        if seconds := float(headers.get("retry-after", 0)):
            return seconds
        return min(8.0, 0.5 * 2**number) * random.uniform(0.75, 1)


async def main(kind, url, path):
    client = {"sdk": Sdk, "aimd": Aimd}[kind](url)
    with open(path) as lines:
        bodies = [json.loads(line) for line in lines]
    print(sum(await asyncio.gather(*(client.answer(body) for body in bodies))))


asyncio.run(main(*sys.argv[1:]))
