"""The official `openai` package, at the simulated provider."""

import openai
from told import FULL, OPEN, PACED, PROMPT, refused, tell, usage, valid

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


def of_chat(stated):
    return usage(
        stated.prompt_tokens,
        stated.completion_tokens,
        stated.prompt_tokens_details.cached_tokens,
    )


def of_response(stated):
    return usage(
        stated.input_tokens, stated.output_tokens, stated.input_tokens_details.cached_tokens
    )


def plain():
    raw = client.chat.completions.with_raw_response.create(
        model="gpt-4o", messages=messages, tools=tools
    )
    answer = valid(raw.parse())
    assert answer.choices[0].finish_reason == "stop"
    assert raw.headers["x-ratelimit-limit-requests"] == "1000", raw.headers
    assert raw.headers["x-ratelimit-reset-tokens"].endswith("s"), raw.headers
    assert raw.headers["x-request-id"].startswith("req_"), raw.headers
    tell("chat", of_chat(answer.usage), text=answer.choices[0].message.content)

    answer = valid(client.completions.create(model="gpt-3.5-turbo-instruct", prompt=PROMPT))
    tell("completion", of_chat(answer.usage), text=answer.choices[0].text)

    answer = valid(client.responses.create(model="gpt-4o", input=PROMPT))
    assert answer.status == "completed"
    tell("response", of_response(answer.usage), text=answer.output_text)


def chat_stream():
    chunks = [valid(chunk) for chunk in chat(client, stream=True, stream_options={"include_usage": True})]
    pieces = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert chunks[-1].choices == [] and all(c.usage is None for c in chunks[:-1])
    assert [c.choices[0].finish_reason for c in chunks[:-1]][-1] == "stop"
    tell("chat stream", of_chat(chunks[-1].usage), text="".join(pieces), pieces=len(pieces))

    chunks = [valid(chunk) for chunk in chat(client, stream=True)]
    assert all(chunk.usage is None for chunk in chunks)
    tell("chat stream without usage")


def response_stream():
    events = [valid(event) for event in client.responses.create(model="gpt-4o", input=PROMPT, stream=True)]
    names = [event.type for event in events]
    assert names[0] == "response.created" and names[-1] == "response.completed", names
    assert [event.sequence_number for event in events] == list(range(len(events)))
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    ended = events[-1].response
    assert ended.output_text == "".join(pieces)
    tell("response stream", of_response(ended.usage), text=ended.output_text, pieces=len(pieces))

    # The helper keeps its own account of what the events add up to.
    with client.responses.stream(model="gpt-4o", input=PROMPT) as stream:
        ended = stream.get_final_response()
    tell("response helper", of_response(ended.usage), text=ended.output_text)


def embeddings():
    for encoding in ["float", "base64", openai.NOT_GIVEN]:
        answer = client.embeddings.create(
            model="text-embedding-3-small", input=["one", "two"], encoding_format=encoding
        )
        vectors = [item.embedding for item in answer.data]
        if encoding == "base64":
            assert vectors == ["AAAAPwAAAD8AAAA/AAAAPw=="] * 2, vectors
        else:
            assert [list(vector) for vector in vectors] == [[0.5] * 4] * 2, vectors
        tell("embeddings", usage(answer.usage.prompt_tokens, 0))


def count():
    counted = valid(client.responses.input_tokens.count(model="gpt-4o", input=PROMPT))
    tell("count", counted=counted.input_tokens)


def errors():
    try:
        client.chat.completions.create(model="", messages=messages)
    except openai.BadRequestError as error:
        assert error.param == "model" and error.type == "invalid_request_error", error.body
        tell("malformed")

    full = openai.OpenAI(base_url=f"{FULL}/v1", api_key="any", max_retries=0)
    refusal = refused(openai.RateLimitError, lambda: chat(full))
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
embeddings()
count()
errors()
