"""The official `anthropic` package through the proxy: nothing is set but `base_url`."""

import json

import anthropic
from proxied import ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, raised, tell


def client_of(upstream, **options):
    options = {"max_retries": 0, **options}
    return anthropic.Anthropic(base_url=f"{PROXY}/{upstream}", api_key="sk-proxied", **options)


client = client_of("anthropic")
messages = [{"role": "user", "content": PROMPT}]
tools = [{"name": "look_up", "input_schema": {"type": "object", "properties": {}}}]


def ask(client, model="claude-sonnet-4-5", **more):
    return client.messages.create(model=model, max_tokens=100, messages=messages, **more)


answer = ask(client, tools=tools)
assert answer.content[0].text and answer.usage.output_tokens > 0, answer
tell("plain")

events = [event.type for event in ask(client, stream=True)]
assert events[0] == "message_start" and events[-1] == "message_stop", events
with client.messages.stream(model="claude-sonnet-4-5", max_tokens=100, messages=messages, tools=tools) as helper:
    pieces = list(helper.text_stream)
    answer = helper.get_final_message()
assert answer.content[0].text == "".join(pieces), answer
tell("stream")

forced = {"model": "tools", "max_tokens": 100, "tools": [{"name": "look_up", "input_schema": SCHEMA}]}
plain = client.messages.create(messages=messages, tool_choice={"type": "any"}, **forced)
must = {"type": "tool", "name": "look_up"}
with client.messages.stream(messages=messages, tool_choice=must, **forced) as helper:
    pieces = [event.partial_json for event in helper if event.type == "input_json"]
    streamed = helper.get_final_message()
assert len(pieces) > 1 and json.loads("".join(pieces)) == ARGUMENTS, pieces
usages = []
for answer in [plain, streamed]:
    (call,) = answer.content
    assert (answer.stop_reason, call.type) == ("tool_use", "tool_use"), answer
    assert (call.name, call.input) == ("look_up", ARGUMENTS), call
    result = {"type": "tool_result", "tool_use_id": call.id, "content": RESULT}
    said = [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    last = client.messages.create(messages=messages + said, **forced)
    assert last.stop_reason == "end_turn" and last.content[0].text, last
    usages += [(usage.input_tokens, usage.output_tokens) for usage in [answer.usage, last.usage]]
tell("tools", usages)

assert client.messages.count_tokens(model="claude-sonnet-4-5", messages=messages).input_tokens > 0
tell("count")

ask(client, "limited")
refusal = raised(anthropic.RateLimitError, lambda: ask(client, "limited"))
assert refusal.body["error"]["type"] == "rate_limit_error", refusal.body
assert int(refusal.response.headers["retry-after"]) > 60, refusal.response.headers
tell("refused")

patient = client_of("anthropic", max_retries=1)
for _ in range(3):
    ask(patient, "paced")
tell("retried")

raised(anthropic.NotFoundError, lambda: ask(client_of("anthropc")))
denied = raised(anthropic.AuthenticationError, lambda: ask(client_of("denied")))
assert denied.body["error"]["type"] == "authentication_error", denied.body
broken = raised(anthropic.InternalServerError, lambda: ask(client_of("away")))
assert broken.status_code == 502, broken
tell("errors")

raised(anthropic.APITimeoutError, lambda: ask(client_of("slow", timeout=0.3)))
tell("timeout")
