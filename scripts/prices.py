#!/usr/bin/env python3
"""Rewrites crates/provider/src/price/prices.json: the prices per token of the providers with a profile, from LiteLLM's table.

The table comes with the package `litellm`, which pip downloads (it is not installed). Usage:

    python3 scripts/prices.py [VERSION]

Without a version: the newest one. Then set `Prices::BUILT_IN_SOURCE` in crates/provider/src/price/prices.rs to the printed one.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

TABLE = "litellm/model_prices_and_context_window_backup.json"
PROVIDERS = {
    "anthropic", "azure", "bedrock", "bedrock_converse", "bedrock_mantle", "cerebras", "cohere", "cohere_chat",
    "deepseek", "gemini", "groq", "mistral", "moonshot", "openai", "text-completion-openai", "together_ai",
    "vertex_ai-anthropic_models", "vertex_ai-embedding-models", "vertex_ai-language-models", "xai",
}
MODES = {"chat", "completion", "responses", "embedding"}
FIELDS = [
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
    "input_cost_per_audio_token",
    "output_cost_per_audio_token",
    "output_cost_per_image_token",
    "output_cost_per_video_token",
]
BOUNDS = ["max_input_tokens", "max_output_tokens"]
TIERS = "flex|priority|ultrafast"
PRICE = re.compile(f"({'|'.join(FIELDS)})(_above_[0-9]+k_tokens)?(_({TIERS}))?")
FACTORS = ["fast", "us"]


def kept(row):
    """Returns the fields that paceline reads: prices, also of long prompts and of service tiers, and bounds."""
    fields = {field: row[field] for field in row if PRICE.fullmatch(field) or field in BOUNDS}
    factors = row.get("provider_specific_entry", {})
    factors = {mode: factors[mode] for mode in FACTORS if mode in factors}
    return fields | ({"provider_specific_entry": factors} if factors else {})


def rows(table):
    """Yields the models that are priced by token, each with the fields that paceline reads."""
    for model, row in sorted(table.items()):
        is_priced = "input_cost_per_token" in row and row.get("mode") in MODES
        # Prices of single regions and deployment types have further parts in their names.
        is_general = model.count("/") < 2 or row["litellm_provider"] in ("groq", "together_ai")
        if is_priced and is_general and row.get("litellm_provider") in PROVIDERS and not model.startswith("bedrock/"):
            yield model, kept(row)


def main():
    version = f"=={sys.argv[1]}" if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "litellm" + version]
        subprocess.run(command, check=True)
        wheel = next(pathlib.Path(folder).glob("litellm-*.whl"))
        table = json.loads(zipfile.ZipFile(wheel).read(TABLE))
        print("LiteLLM", wheel.name.split("-")[1])
    lines = [f"{json.dumps(model)}: {json.dumps(row, separators=(',', ':'))}" for model, row in rows(table)]
    target = pathlib.Path(__file__).parent.parent / "crates/provider/src/price/prices.json"
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(lines)} models in {target}")


if __name__ == "__main__":
    main()
