"""The official `openai` package through the proxy; it sets only `base_url`."""

import json

import openai
from common import ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, expect_error, report


def new_client(upstream, version="v1", **options):
    options = {"max_retries": 0, **options}
    return openai.OpenAI(base_url=f"{PROXY}/{upstream}/{version}", api_key="sk-proxied", **options)


client = new_client("openai")
messages = [{"role": "user", "content": PROMPT}]
look_up = {"name": "look_up", "parameters": {"type": "object", "properties": {}}}
tools = [{"type": "function", "function": look_up}]


def chat(client, model="gpt-4o", **more):
    return client.chat.completions.create(model=model, messages=messages, **more)


response = chat(client, tools=tools, tool_choice="auto")
assert response.choices[0].message.content and response.usage.completion_tokens > 0, response
report("plain")

chunks = list(chat(client, stream=True, tools=tools, stream_options={"include_usage": True}))
pieces = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
assert len(pieces) > 1 and chunks[-1].usage.completion_tokens > 0, chunks
report("stream")

response = client.responses.create(model="gpt-4o", input=PROMPT)
events = [event.type for event in client.responses.create(model="gpt-4o", input=PROMPT, stream=True)]
assert response.output_text and events[-1] == "response.completed", events
report("responses")

must = {"name": "look_up", "parameters": SCHEMA, "strict": True}
forced = {"model": "tools", "tools": [{"type": "function", "function": must}]}
plain = chat(client, **forced, tool_choice="required")
with client.chat.completions.stream(
    messages=messages,
    tool_choice={"type": "function", "function": {"name": "look_up"}},
    stream_options={"include_usage": True},
    **forced,
) as helper:
    pieces = [event.arguments_delta for event in helper if event.type == "tool_calls.function.arguments.delta"]
    streamed = helper.get_final_completion()
assert len([piece for piece in pieces if piece]) > 1 and json.loads("".join(pieces)) == ARGUMENTS, pieces
usages = []
for response in [plain, streamed]:
    (choice,) = response.choices
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls" and choice.message.content is None, choice
    assert (call.function.name, json.loads(call.function.arguments)) == ("look_up", ARGUMENTS), call
    result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
    conversation = [*messages, choice.message.model_dump(exclude_none=True), result]
    last = client.chat.completions.create(messages=conversation, **forced)
    assert last.choices[0].message.content and not last.choices[0].message.tool_calls, last
    usages += [(usage.prompt_tokens, usage.completion_tokens) for usage in [response.usage, last.usage]]

forced = {"model": "tools", "tools": [{"type": "function", **must}]}
plain = client.responses.create(input=PROMPT, tool_choice="required", **forced)
with client.responses.stream(
    input=PROMPT, tool_choice={"type": "function", "name": "look_up"}, **forced
) as helper:
    pieces = [event.delta for event in helper if event.type == "response.function_call_arguments.delta"]
    streamed = helper.get_final_response()
assert len(pieces) > 1 and json.loads("".join(pieces)) == ARGUMENTS, pieces
for response in [plain, streamed]:
    (call,) = response.output
    assert (call.name, json.loads(call.arguments)) == ("look_up", ARGUMENTS), call
    result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
    conversation = [{"role": "user", "content": PROMPT}, call, result]
    last = client.responses.create(input=conversation, **forced)
    assert last.output_text, last
    usages += [(usage.input_tokens, usage.output_tokens) for usage in [response.usage, last.usage]]
report("tools", usages)

response = client.embeddings.create(model="text-embedding-3-small", input=["one", "two"], dimensions=4)
assert [list(item.embedding) for item in response.data] == [[0.5] * 4] * 2, response
report("embeddings")

chat(client, "limited")
refusal = expect_error(openai.RateLimitError, lambda: chat(client, "limited"))
assert refusal.code == "rate_limit_exceeded" and refusal.type == "requests", refusal.body
assert int(refusal.response.headers["retry-after"]) > 60, refusal.response.headers
assert "Please try again in" in refusal.message, refusal.message
report("refused")

patient = new_client("openai", max_retries=1)
for _ in range(3):
    chat(patient, "paced")
report("retried")

missing = expect_error(openai.NotFoundError, lambda: chat(new_client("openai", "v0")))
assert missing.type == "invalid_request_error", missing.body
missing = expect_error(openai.NotFoundError, lambda: chat(new_client("opnai")))
assert "names no upstream" in missing.message, missing.message
denied = expect_error(openai.AuthenticationError, lambda: chat(new_client("denied")))
assert denied.code == "invalid_api_key", denied.body
broken = expect_error(openai.InternalServerError, lambda: chat(new_client("unreachable")))
assert broken.status_code == 502 and broken.code == "upstream_unreachable", broken.body
report("errors")

expect_error(openai.APITimeoutError, lambda: chat(new_client("slow", timeout=0.3)))
report("timeout")
