"""The official `openai` package against the simulated provider."""

import json

import openai
from pydantic import BaseModel

from common import FULL, OPEN, PACED, PROMPT, expect_refusal, report, usage, validated

client = openai.OpenAI(base_url=f"{OPEN}/v1", api_key="any", max_retries=0)
messages = [{"role": "user", "content": PROMPT}]
tools = [
    {
        "type": "function",
        "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}},
    }
]


def chat(client, **more):
    return client.chat.completions.create(model="gpt-4o", messages=messages, **more)


def read_chat_usage(reported):
    return usage(
        reported.prompt_tokens,
        reported.completion_tokens,
        reported.prompt_tokens_details.cached_tokens,
    )


def read_response_usage(reported):
    return usage(
        reported.input_tokens, reported.output_tokens, reported.input_tokens_details.cached_tokens
    )


def plain():
    raw = client.chat.completions.with_raw_response.create(
        model="gpt-4o", messages=messages, tools=tools
    )
    response = validated(raw.parse())
    assert response.choices[0].finish_reason == "stop"
    assert raw.headers["x-ratelimit-limit-requests"] == "1000", raw.headers
    assert raw.headers["x-ratelimit-reset-tokens"].endswith("s"), raw.headers
    assert raw.headers["x-request-id"].startswith("req_"), raw.headers
    report("chat", read_chat_usage(response.usage), text=response.choices[0].message.content)

    response = validated(client.completions.create(model="gpt-3.5-turbo-instruct", prompt=PROMPT))
    report("completion", read_chat_usage(response.usage), text=response.choices[0].text)

    response = validated(client.responses.create(model="gpt-4o", input=PROMPT))
    assert response.status == "completed"
    report("response", read_response_usage(response.usage), text=response.output_text)


def chat_stream():
    chunks = [validated(chunk) for chunk in chat(client, stream=True, stream_options={"include_usage": True})]
    pieces = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert chunks[-1].choices == [] and all(c.usage is None for c in chunks[:-1])
    assert [c.choices[0].finish_reason for c in chunks[:-1]][-1] == "stop"
    report("chat stream", read_chat_usage(chunks[-1].usage), text="".join(pieces), pieces=len(pieces))

    chunks = [validated(chunk) for chunk in chat(client, stream=True)]
    assert all(chunk.usage is None for chunk in chunks)
    report("chat stream without usage")


def response_stream():
    events = [validated(event) for event in client.responses.create(model="gpt-4o", input=PROMPT, stream=True)]
    names = [event.type for event in events]
    assert names[0] == "response.created" and names[-1] == "response.completed", names
    assert [event.sequence_number for event in events] == list(range(len(events)))
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    ended = events[-1].response
    assert ended.output_text == "".join(pieces)
    report("response stream", read_response_usage(ended.usage), text=ended.output_text, pieces=len(pieces))

    # The stream helper of the SDK assembles the response from the events.
    with client.responses.stream(model="gpt-4o", input=PROMPT) as stream:
        ended = stream.get_final_response()
    report("response helper", read_response_usage(ended.usage), text=ended.output_text)


class Trip(BaseModel):
    city: str
    days: int


def structured():
    response = validated(chat(client, response_format={"type": "json_object"}))
    assert json.loads(response.choices[0].message.content) == {}
    report("json object", read_chat_usage(response.usage))

    response = client.chat.completions.parse(model="gpt-4o", messages=messages, response_format=Trip)
    assert isinstance(response.choices[0].message.parsed, Trip), response
    report("parsed chat", read_chat_usage(response.usage))

    with client.chat.completions.stream(model="gpt-4o", messages=messages, response_format=Trip) as stream:
        response = stream.get_final_completion()
    assert isinstance(response.choices[0].message.parsed, Trip), response
    report("parsed chat stream")

    response = client.responses.parse(model="gpt-4o", input=PROMPT, text_format=Trip)
    assert isinstance(response.output_parsed, Trip), response
    report("parsed response", read_response_usage(response.usage))

    with client.responses.stream(model="gpt-4o", input=PROMPT, text_format=Trip) as stream:
        response = stream.get_final_response()
    assert isinstance(response.output_parsed, Trip), response
    report("parsed response stream", read_response_usage(response.usage))


def tool_calls():
    response = validated(chat(client, tools=tools, tool_choice="required"))
    call = response.choices[0].message.tool_calls[0]
    assert call.function.name == "look_up" and json.loads(call.function.arguments) == {}
    report("tool call", read_chat_usage(response.usage))

    with client.chat.completions.stream(
        model="gpt-4o", messages=messages, tools=tools, tool_choice="required"
    ) as stream:
        response = stream.get_final_completion()
    call = response.choices[0].message.tool_calls[0]
    assert call.function.name == "look_up" and json.loads(call.function.arguments) == {}
    report("tool call stream")

    flat = [{"type": "function", **tools[0]["function"]}]
    response = validated(
        client.responses.create(model="gpt-4o", input=PROMPT, tools=flat, tool_choice="required")
    )
    call = next(item for item in response.output if item.type == "function_call")
    assert call.name == "look_up" and json.loads(call.arguments) == {}
    report("response tool call", read_response_usage(response.usage))

    with client.responses.stream(model="gpt-4o", input=PROMPT, tools=flat, tool_choice="required") as stream:
        response = stream.get_final_response()
    assert any(item.type == "function_call" and item.name == "look_up" for item in response.output)
    report("response tool call stream", read_response_usage(response.usage))


def models():
    listed = [validated(model).id for model in client.models.list()]
    report("models")
    assert "gpt-4o" in listed, listed
    assert validated(client.models.retrieve("gpt-4o")).id == "gpt-4o"
    report("model")


def embeddings():
    for encoding in ["float", "base64", openai.NOT_GIVEN]:
        response = client.embeddings.create(
            model="text-embedding-3-small", input=["one", "two"], dimensions=4, encoding_format=encoding
        )
        vectors = [item.embedding for item in response.data]
        if encoding == "base64":
            assert vectors == ["AAAAPwAAAD8AAAA/AAAAPw=="] * 2, vectors
        else:
            assert [list(vector) for vector in vectors] == [[0.5] * 4] * 2, vectors
        report("embeddings", usage(response.usage.prompt_tokens, 0))
    response = client.embeddings.create(model="text-embedding-3-small", input="one")
    assert len(response.data[0].embedding) == 1_536
    report("embedding", usage(response.usage.prompt_tokens, 0))


def count():
    counted = validated(client.responses.input_tokens.count(model="gpt-4o", input=PROMPT))
    report("count", counted=counted.input_tokens)


def errors():
    try:
        client.chat.completions.create(model="", messages=messages)
    except openai.BadRequestError as error:
        assert error.param == "model" and error.type == "invalid_request_error", error.body
        report("malformed")
    try:
        client.chat.completions.create(model="gpt-4o", messages=[])
    except openai.BadRequestError as error:
        assert error.param == "messages" and error.code == "empty_array", error.body
        report("malformed")

    full = openai.OpenAI(base_url=f"{FULL}/v1", api_key="any", max_retries=0)
    refusal = expect_refusal(openai.RateLimitError, lambda: chat(full))
    assert refusal.status_code == 429 and refusal.code == "rate_limit_exceeded", refusal.body
    assert refusal.type == "requests" and "Please try again in" in refusal.message, refusal.body
    assert refusal.request_id.startswith("req_")
    assert 0 < float(refusal.response.headers["retry-after-ms"]) <= 60_000

    paced = openai.OpenAI(base_url=f"{PACED}/v1", api_key="any", max_retries=1)
    for _ in range(3):
        chat(paced)


plain()
chat_stream()
response_stream()
structured()
tool_calls()
models()
embeddings()
count()
errors()
