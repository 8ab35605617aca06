"""The official `anthropic` package through the proxy; it sets only `base_url`."""

import json

import anthropic
from common import ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, expect_error, report


def new_client(upstream, **options):
    options = {"max_retries": 0, **options}
    return anthropic.Anthropic(base_url=f"{PROXY}/{upstream}", api_key="sk-proxied", **options)


client = new_client("anthropic")
messages = [{"role": "user", "content": PROMPT}]
tools = [{"name": "look_up", "input_schema": {"type": "object", "properties": {}}}]


def ask(client, model="claude-sonnet-4-5", **more):
    return client.messages.create(model=model, max_tokens=100, messages=messages, **more)


response = ask(client, tools=tools)
assert response.content[0].text and response.usage.output_tokens > 0, response
report("plain")

events = [event.type for event in ask(client, stream=True)]
assert events[0] == "message_start" and events[-1] == "message_stop", events
with client.messages.stream(model="claude-sonnet-4-5", max_tokens=100, messages=messages, tools=tools) as helper:
    pieces = list(helper.text_stream)
    response = helper.get_final_message()
assert response.content[0].text == "".join(pieces), response
report("stream")

forced = {"model": "tools", "max_tokens": 100, "tools": [{"name": "look_up", "input_schema": SCHEMA}]}
plain = client.messages.create(messages=messages, tool_choice={"type": "any"}, **forced)
must = {"type": "tool", "name": "look_up"}
with client.messages.stream(messages=messages, tool_choice=must, **forced) as helper:
    pieces = [event.partial_json for event in helper if event.type == "input_json"]
    streamed = helper.get_final_message()
assert len(pieces) > 1 and json.loads("".join(pieces)) == ARGUMENTS, pieces
usages = []
for response in [plain, streamed]:
    (call,) = response.content
    assert (response.stop_reason, call.type) == ("tool_use", "tool_use"), response
    assert (call.name, call.input) == ("look_up", ARGUMENTS), call
    result = {"type": "tool_result", "tool_use_id": call.id, "content": RESULT}
    conversation = [{"role": "assistant", "content": response.content}, {"role": "user", "content": [result]}]
    last = client.messages.create(messages=messages + conversation, **forced)
    assert last.stop_reason == "end_turn" and last.content[0].text, last
    usages += [(usage.input_tokens, usage.output_tokens) for usage in [response.usage, last.usage]]
report("tools", usages)

assert client.messages.count_tokens(model="claude-sonnet-4-5", messages=messages).input_tokens > 0
report("count")

ask(client, "limited")
refusal = expect_error(anthropic.RateLimitError, lambda: ask(client, "limited"))
assert refusal.body["error"]["type"] == "rate_limit_error", refusal.body
assert int(refusal.response.headers["retry-after"]) > 60, refusal.response.headers
report("refused")

patient = new_client("anthropic", max_retries=1)
for _ in range(3):
    ask(patient, "paced")
report("retried")

expect_error(anthropic.NotFoundError, lambda: ask(new_client("anthropc")))
denied = expect_error(anthropic.AuthenticationError, lambda: ask(new_client("denied")))
assert denied.body["error"]["type"] == "authentication_error", denied.body
broken = expect_error(anthropic.InternalServerError, lambda: ask(new_client("unreachable")))
assert broken.status_code == 502, broken
report("errors")

expect_error(anthropic.APITimeoutError, lambda: ask(new_client("slow", timeout=0.3)))
report("timeout")
