"""Shared parts of the scripts, which print one line of JSON for each case, in order."""

import json
import os

PROXY = os.environ["PACELINE_PROXY"]

PROMPT = "What is the capital of France?"


# The parameters of a tool, and the arguments with which the simulated provider calls it.
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Paris", "Oslo"]},
        "days": {"type": "integer", "minimum": 3},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
ARGUMENTS = {"city": "Paris", "days": 3}
RESULT = "It rains in Paris."


def report(case, usages=None):
    """Prints that a case has passed, with the sums of `usages`: pairs of input and output tokens."""
    line = {"case": case}
    if usages is not None:
        line["input"], line["output"] = map(sum, zip(*usages))
    print(json.dumps(line), flush=True)


def expect_error(error, send):
    try:
        send()
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__} was raised")
