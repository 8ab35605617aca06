"""An official package through the proxy to an upstream that always fails; it sets only `base_url`."""

import os

import anthropic
import openai
from common import PROMPT, PROXY, expect_error, report

messages = [{"role": "user", "content": PROMPT}]
case = os.environ["PACELINE_SDK"]

if case == "openai":
    client = openai.OpenAI(base_url=f"{PROXY}/openai/v1", api_key="sk-proxied")
    send = lambda: client.chat.completions.create(model="gpt-4o", messages=messages)
    failed = expect_error(openai.InternalServerError, send)
else:
    client = anthropic.Anthropic(base_url=f"{PROXY}/anthropic", api_key="sk-proxied")
    send = lambda: client.messages.create(model="claude-sonnet-4-5", max_tokens=5, messages=messages)
    failed = expect_error(anthropic.InternalServerError, send)
assert client.max_retries == 2, client.max_retries
assert failed.response.headers["x-should-retry"] == "false", failed.response.headers
report(case)
