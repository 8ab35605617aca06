"""The official `anthropic` package against the simulated provider."""

import datetime

import anthropic
from pydantic import BaseModel

from common import FULL, OPEN, PACED, PROMPT, expect_refusal, report, usage, validated

client = anthropic.Anthropic(base_url=OPEN, api_key="any", max_retries=0)
messages = [{"role": "user", "content": PROMPT}]
tools = [{"name": "look_up", "input_schema": {"type": "object", "properties": {}}}]
request = {"model": "claude-sonnet-4-5", "max_tokens": 1_000, "messages": messages}


def read_usage(reported):
    read = reported.cache_read_input_tokens or 0
    write = reported.cache_creation_input_tokens or 0
    return usage(reported.input_tokens + read + write, reported.output_tokens, read, write)


def plain():
    raw = client.messages.with_raw_response.create(tools=tools, **request)
    response = validated(raw.parse())
    assert response.stop_reason == "end_turn" and response.type == "message"
    assert raw.headers["request-id"].startswith("req_")
    limits = {"requests": 1_000, "tokens": 1_000_000, "input-tokens": 900_000, "output-tokens": 100_000}
    for name, limit in limits.items():
        header = f"anthropic-ratelimit-{name}"
        assert raw.headers[f"{header}-limit"] == str(limit), raw.headers
        assert 0 < int(raw.headers[f"{header}-remaining"]) <= limit, raw.headers
        datetime.datetime.fromisoformat(raw.headers[f"{header}-reset"])
    report("message", read_usage(response.usage), text=response.content[0].text)

    response = client.messages.create(**{**request, "max_tokens": 5})
    assert response.stop_reason == "max_tokens"
    report("cut message", read_usage(response.usage), text=response.content[0].text)


def stream():
    events = [validated(event) for event in client.messages.create(stream=True, **request)]
    names = [event.type for event in events]
    assert names[:2] == ["message_start", "content_block_start"], names
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"], names
    pieces = [event.delta.text for event in events if event.type == "content_block_delta"]
    start, end = events[0].message.usage, events[-2].usage
    assert start.input_tokens == end.input_tokens and start.output_tokens < end.output_tokens
    report("stream", read_usage(end), text="".join(pieces), pieces=len(pieces))

    # The stream helper of the SDK assembles the message from the events.
    with client.messages.stream(**request) as helper:
        pieces = list(helper.text_stream)
        response = helper.get_final_message()
    assert response.content[0].text == "".join(pieces) and response.stop_reason == "end_turn"
    report("stream helper", read_usage(response.usage), text="".join(pieces), pieces=len(pieces))


class Trip(BaseModel):
    city: str
    days: int


def structured():
    response = client.messages.parse(output_format=Trip, **request)
    assert isinstance(response.parsed_output, Trip), response
    report("parsed message", read_usage(response.usage))

    with client.messages.stream(output_format=Trip, **request) as stream:
        response = stream.get_final_message()
    assert Trip.model_validate_json(response.content[0].text), response
    report("parsed stream", read_usage(response.usage))


def tool_calls():
    response = validated(client.messages.create(tools=tools, tool_choice={"type": "any"}, **request))
    assert response.content[0].name == "look_up" and response.content[0].input == {}
    report("tool call", read_usage(response.usage))

    with client.messages.stream(tools=tools, tool_choice={"type": "any"}, **request) as stream:
        response = stream.get_final_message()
    assert response.content[0].name == "look_up" and response.content[0].input == {}
    assert response.stop_reason == "tool_use", response
    report("tool call stream", read_usage(response.usage))


def models():
    listed = [model.id for model in client.models.list()]
    report("models")
    assert request["model"] in listed, listed
    assert validated(client.models.retrieve("claude-opus-5")).id == "claude-opus-5"
    report("model")


def cache():
    long = [{"type": "text", "text": "word " * 2_000, "cache_control": {"type": "ephemeral"}}]
    for case in ["cache written", "cache read"]:
        response = client.messages.create(system=long, **request)
        report(case, read_usage(response.usage), text=response.content[0].text)


def count():
    counted = validated(client.messages.count_tokens(model=request["model"], messages=messages))
    report("count", counted=counted.input_tokens)


def errors():
    try:
        client.messages.create(model="", max_tokens=5, messages=messages)
    except anthropic.BadRequestError as error:
        assert error.body["error"]["type"] == "invalid_request_error", error.body
        report("malformed")
    try:
        client.messages.create(**{**request, "messages": []})
    except anthropic.BadRequestError as error:
        assert "at least one message" in error.message, error.body
        report("malformed")

    full = anthropic.Anthropic(base_url=FULL, api_key="any", max_retries=0)
    refusal = expect_refusal(anthropic.RateLimitError, lambda: full.messages.create(**request))
    assert refusal.status_code == 429 and refusal.body["type"] == "error", refusal.body
    assert refusal.body["error"]["type"] == "rate_limit_error", refusal.body
    assert "limit of 1 requests per minute" in refusal.message, refusal.message
    assert refusal.request_id == refusal.body["request_id"]
    assert 0 < int(refusal.response.headers["retry-after"]) <= 60

    paced = anthropic.Anthropic(base_url=PACED, api_key="any", max_retries=1)
    for _ in range(3):
        paced.messages.create(**request)


plain()
stream()
structured()
tool_calls()
models()
cache()
count()
errors()
