"""The official `google-genai` package against the simulated provider."""

from google import genai
from google.genai import errors, types
from pydantic import BaseModel

from common import FULL, OPEN, PACED, PROMPT, expect_refusal, report, usage

MODEL = "gemini-2.5-flash"


def new_client(url, **options):
    return genai.Client(api_key="any", http_options=types.HttpOptions(base_url=url, **options))


client = new_client(OPEN)


def read_usage(reported):
    return usage(reported.prompt_token_count, reported.candidates_token_count)


def ask(client, **config):
    config = types.GenerateContentConfig(**config)
    return client.models.generate_content(model=MODEL, contents=PROMPT, config=config)


def plain():
    look_up = types.FunctionDeclaration(name="look_up", description="Looks it up.")
    response = ask(client, tools=[types.Tool(function_declarations=[look_up])])
    assert response.candidates[0].finish_reason == types.FinishReason.STOP
    assert response.model_version == MODEL
    report("content", read_usage(response.usage_metadata), text=response.text)

    response = ask(client, max_output_tokens=5)
    assert response.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    report("cut content", read_usage(response.usage_metadata), text=response.text)


def stream():
    chunks = list(client.models.generate_content_stream(model=MODEL, contents=PROMPT))
    pieces = [chunk.text for chunk in chunks if chunk.text]
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert chunks[0].usage_metadata.prompt_token_count > 0
    report("stream", read_usage(chunks[-1].usage_metadata), text="".join(pieces), pieces=len(pieces))


class Trip(BaseModel):
    city: str
    days: int


def structured():
    for schema in [{"response_schema": Trip}, {"response_json_schema": Trip.model_json_schema()}]:
        response = ask(client, response_mime_type="application/json", **schema)
        assert Trip.model_validate_json(response.text), response
        report("structured", read_usage(response.usage_metadata))
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Trip)
    chunks = list(client.models.generate_content_stream(model=MODEL, contents=PROMPT, config=config))
    assert Trip.model_validate_json("".join(chunk.text or "" for chunk in chunks)), chunks
    report("structured stream", read_usage(chunks[-1].usage_metadata))


def tool_calls():
    look_up = types.FunctionDeclaration(name="look_up", description="Looks it up.")
    forced = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
    config = {
        "tools": [types.Tool(function_declarations=[look_up])],
        "tool_config": types.ToolConfig(function_calling_config=forced),
    }
    response = ask(client, **config)
    assert [call.name for call in response.function_calls] == ["look_up"], response
    report("tool call", read_usage(response.usage_metadata))

    config = types.GenerateContentConfig(**config)
    chunks = list(client.models.generate_content_stream(model=MODEL, contents=PROMPT, config=config))
    calls = [call.name for chunk in chunks for call in chunk.function_calls or []]
    assert calls == ["look_up"], chunks
    report("tool call stream", read_usage(chunks[-1].usage_metadata))


def models():
    listed = [model.name for model in client.models.list()]
    report("models")
    assert f"models/{MODEL}" in listed, listed
    assert client.models.get(model=MODEL).name == f"models/{MODEL}"
    report("model")


def embeddings():
    config = types.EmbedContentConfig(output_dimensionality=4)
    response = client.models.embed_content(model="gemini-embedding-001", contents=["one", "two"], config=config)
    assert [item.values for item in response.embeddings] == [[0.5] * 4] * 2, response
    report("embeddings")


def count():
    counted = client.models.count_tokens(model=MODEL, contents=PROMPT)
    report("count", counted=counted.total_tokens)


def malformed():
    try:
        client.models.generate_content(model=MODEL, contents=[types.Content(role="user", parts=[])])
    except errors.ClientError as error:
        assert error.code == 400 and error.status == "INVALID_ARGUMENT", error.details
        assert "contents[0].parts: contents.parts must not be empty" in error.message, error.details
        report("malformed")


def refusals():
    full = new_client(FULL)
    refusal = expect_refusal(errors.ClientError, lambda: ask(full))
    assert refusal.code == 429 and refusal.status == "RESOURCE_EXHAUSTED", refusal.details
    details = {item["@type"].rsplit(".", 1)[1]: item for item in refusal.details["error"]["details"]}
    assert "PerMinute" in details["QuotaFailure"]["violations"][0]["quotaId"], details
    delay = details["RetryInfo"]["retryDelay"]
    assert delay.endswith("s") and 0 < float(delay[:-1]) <= 60, details

    # This SDK ignores the delay in the response; the wait is configured.
    patient = types.HttpRetryOptions(attempts=2, initial_delay=1.01, jitter=0)
    paced = new_client(PACED, retry_options=patient)
    for _ in range(3):
        ask(paced)


plain()
stream()
structured()
tool_calls()
models()
embeddings()
count()
malformed()
refusals()
