"""The official `google-genai` package, at the simulated provider."""

from google import genai
from google.genai import errors, types
from told import FULL, OPEN, PACED, PROMPT, refused, tell, usage

MODEL = "gemini-2.5-flash"


def client_of(url, **options):
    return genai.Client(api_key="any", http_options=types.HttpOptions(base_url=url, **options))


client = client_of(OPEN)


def of(stated):
    return usage(stated.prompt_token_count, stated.candidates_token_count)


def ask(client, **config):
    config = types.GenerateContentConfig(**config)
    return client.models.generate_content(model=MODEL, contents=PROMPT, config=config)


def plain():
    look_up = types.FunctionDeclaration(name="look_up", description="Looks it up.")
    answer = ask(client, tools=[types.Tool(function_declarations=[look_up])])
    assert answer.candidates[0].finish_reason == types.FinishReason.STOP
    assert answer.model_version == MODEL
    tell("content", of(answer.usage_metadata), text=answer.text)

    answer = ask(client, max_output_tokens=5)
    assert answer.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    tell("cut content", of(answer.usage_metadata), text=answer.text)


def stream():
    chunks = list(client.models.generate_content_stream(model=MODEL, contents=PROMPT))
    pieces = [chunk.text for chunk in chunks if chunk.text]
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert chunks[0].usage_metadata.prompt_token_count > 0
    tell("stream", of(chunks[-1].usage_metadata), text="".join(pieces), pieces=len(pieces))


def embeddings():
    answer = client.models.embed_content(model="gemini-embedding-001", contents=["one", "two"])
    assert [item.values for item in answer.embeddings] == [[0.5] * 4] * 2, answer
    tell("embeddings")


def count():
    counted = client.models.count_tokens(model=MODEL, contents=PROMPT)
    tell("count", counted=counted.total_tokens)


def refusals():
    full = client_of(FULL)
    refusal = refused(errors.ClientError, lambda: ask(full))
    assert refusal.code == 429 and refusal.status == "RESOURCE_EXHAUSTED", refusal.details
    details = {item["@type"].rsplit(".", 1)[1]: item for item in refusal.details["error"]["details"]}
    assert "PerMinute" in details["QuotaFailure"]["violations"][0]["quotaId"], details
    delay = details["RetryInfo"]["retryDelay"]
    assert delay.endswith("s") and 0 < float(delay[:-1]) <= 60, details

    # This SDK doesn't read the delay; it waits as long as it is set to.
    patient = types.HttpRetryOptions(attempts=2, initial_delay=1.01, jitter=0)
    paced = client_of(PACED, retry_options=patient)
    for _ in range(3):
        ask(paced)


plain()
stream()
embeddings()
count()
refusals()
