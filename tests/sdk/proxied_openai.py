"""The official `openai` package through the proxy: nothing is set but `base_url`."""

import openai
from proxied import PROMPT, PROXY, raised, tell


def client_of(upstream, version="v1", **options):
    options = {"max_retries": 0, **options}
    return openai.OpenAI(base_url=f"{PROXY}/{upstream}/{version}", api_key="sk-proxied", **options)


client = client_of("openai")
messages = [{"role": "user", "content": PROMPT}]
look_up = {"name": "look_up", "parameters": {"type": "object", "properties": {}}}
tools = [{"type": "function", "function": look_up}]


def chat(client, model="gpt-4o", **more):
    return client.chat.completions.create(model=model, messages=messages, **more)


answer = chat(client, tools=tools, tool_choice="auto")
assert answer.choices[0].message.content and answer.usage.completion_tokens > 0, answer
tell("plain")

chunks = list(chat(client, stream=True, tools=tools, stream_options={"include_usage": True}))
pieces = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
assert len(pieces) > 1 and chunks[-1].usage.completion_tokens > 0, chunks
tell("stream")

answer = client.responses.create(model="gpt-4o", input=PROMPT)
events = [event.type for event in client.responses.create(model="gpt-4o", input=PROMPT, stream=True)]
assert answer.output_text and events[-1] == "response.completed", events
tell("responses")

answer = client.embeddings.create(model="text-embedding-3-small", input=["one", "two"])
assert [list(item.embedding) for item in answer.data] == [[0.5] * 4] * 2, answer
tell("embeddings")

chat(client, "limited")
refusal = raised(openai.RateLimitError, lambda: chat(client, "limited"))
assert refusal.code == "rate_limit_exceeded" and refusal.type == "requests", refusal.body
assert int(refusal.response.headers["retry-after"]) > 60, refusal.response.headers
assert "Please try again in" in refusal.message, refusal.message
tell("refused")

patient = client_of("openai", max_retries=1)
for _ in range(3):
    chat(patient, "paced")
tell("retried")

missing = raised(openai.NotFoundError, lambda: chat(client_of("openai", "v0")))
assert missing.type == "invalid_request_error", missing.body
missing = raised(openai.NotFoundError, lambda: chat(client_of("opnai")))
assert "no such upstream" in missing.message, missing.message
denied = raised(openai.AuthenticationError, lambda: chat(client_of("denied")))
assert denied.code == "invalid_api_key", denied.body
broken = raised(openai.InternalServerError, lambda: chat(client_of("away")))
assert broken.status_code == 502 and broken.code == "upstream_unreachable", broken.body
tell("errors")

raised(openai.APITimeoutError, lambda: chat(client_of("slow", timeout=0.3)))
tell("timeout")
