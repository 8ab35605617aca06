"""What the scripts say that go through the proxy: one line of JSON for each case, in order."""

import json
import os

PROXY = os.environ["TOLLGATE_PROXY"]

PROMPT = "What is the capital of France?"


def tell(case):
    print(json.dumps({"case": case}), flush=True)


def raised(error, send):
    try:
        send()
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__} was raised")
