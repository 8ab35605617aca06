"""Creates the pictures of the documentation; called by scripts/pictures.sh."""

import base64
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

PACELINE, PICTURES = (Path(argument).resolve() for argument in sys.argv[1:])
REPOSITORY = Path(__file__).resolve().parent.parent
CHROMIUM = [
    "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
]

CONFIG = """\
providers: [openai, anthropic]
quotas:
  gpt-4o: {{rpm: 300, tpm: 60000, rpd: 10000}}
  gpt-4o-mini: {{rpm: 500, tpm: 200000}}
  "claude-*": {{rpm: 120, itpm: 40000, otpm: 16000}}
  "tenant:*": {{limits: [{{dimension: tokens, limit: 50000, window: 60s}}]}}
waiting: {{max_wait: 300s}}
serve:
  upstreams:
    openai: {{base_url: "{provider}", provider: openai}}
    anthropic: {{base_url: "{provider}", provider: anthropic}}
  scopes: [model, {{header: x-tenant, prefix: "tenant:"}}]
"""


def main():
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        batch(Path(folder))
        live(Path(folder))
    for picture in sorted(PICTURES.glob("*.png")):
        print(f"{picture.relative_to(REPOSITORY)}: {picture.stat().st_size // 1024} KiB")


def batch(folder):
    """Creates a picture of a batch run: its progress line half-way, and its report."""
    command = "paceline batch examples/requests.jsonl --simulate -o out.jsonl"
    (folder / "examples").symlink_to(REPOSITORY / "examples")
    tmux = ["tmux", "-L", f"paceline-pictures-{os.getpid()}"]
    environment = {**os.environ, "PATH": f"{PACELINE.parent}:{os.environ['PATH']}",
                   "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    done = folder / "done"
    subprocess.run([*tmux, "new-session", "-d", "-x", "136", "-y", "24",
                    f"{command}; touch {done}; sleep 60"],
                   check=True, cwd=folder, env=environment)

    def screen():
        shown = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True,
                               text=True).stdout
        return shown.rstrip("\n ")

    time.sleep(20)
    progress = screen()
    while not done.exists():
        time.sleep(0.5)
    time.sleep(0.5)
    report = screen()
    subprocess.run([*tmux, "kill-server"], check=True)
    text = f"\x1b[1m$ {command}\x1b[0m\n{progress}\n\n{report}"
    page = folder / "batch.html"
    page.write_text(TERMINAL.format(text=to_html(text)))
    lines = text.count("\n") + 1
    screenshot(page.as_uri(), "batch", 1190, 44 + 20 * lines)


def live(folder):
    """Creates a picture of the live page of a server under load."""
    provider = Server("simulate", "--listen", "127.0.0.1:0", "--rpm", "2000", "--tpm", "2000000",
                      "--itpm", "400000", "--otpm", "80000", folder=folder)
    config = folder / "paceline.yaml"
    config.write_text(CONFIG.format(provider=provider.url))
    server = Server("serve", "--config", str(config), "--port", "0", folder=folder)
    stop = threading.Event()
    for client in range(24):
        threading.Thread(target=call, args=(server.url, client, stop), daemon=True).start()
    time.sleep(75)
    screenshot(server.url, "live", 1280, 840)
    stop.set()
    server.stop()
    provider.stop()


def call(url, client, stop):
    """Sends requests of one tenant until `stop` is set."""
    models = [("openai/v1/chat/completions", "gpt-4o"), ("openai/v1/chat/completions", "gpt-4o-mini"),
              ("anthropic/v1/messages", "claude-sonnet-4-5")]
    path, model = models[client % 3]
    tenant = ["acme", "globex", "initech"][client // 3 % 3]
    count = 0
    while not stop.is_set():
        count += 1
        body = {"model": model, "max_tokens": 100 + 40 * (count % 10),
                "messages": [{"role": "user", "content": "Tell me something new. " * (count % 7 + 1)}]}
        request = urllib.request.Request(f"{url}/{path}", json.dumps(body).encode(),
                                         {"content-type": "application/json", "x-tenant": tenant})
        try:
            urllib.request.urlopen(request, timeout=300).read()
        except (urllib.error.URLError, OSError):
            time.sleep(1)
        time.sleep(0.3)


class Server:
    """A `paceline` process that listens on a free port."""

    def __init__(self, *arguments, folder):
        environment = {**os.environ, "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
        self.process = subprocess.Popen([PACELINE, *arguments], stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, env=environment)
        self.url = self.process.stdout.readline().removeprefix("listening on ").strip()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def screenshot(url, name, width, height):
    """Saves a screenshot of a page, using Chromium and WebDriver."""
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL)
    started = next(line for line in driver.stdout if "started successfully on port" in line)
    port = re.search(r"port (\d+)", started)[1]
    root = f"http://127.0.0.1:{port}/session"

    def send(method, path, body=None):
        body = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(root + path, body, method=method)
        return json.load(urllib.request.urlopen(request, timeout=60))["value"]

    options = {"goog:chromeOptions": {"args": CHROMIUM}}
    session = "/" + send("POST", "", {"capabilities": {"alwaysMatch": options}})["sessionId"]
    try:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        send("POST", f"{session}/goog/cdp/execute",
             {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})
        send("POST", f"{session}/url", {"url": url})
        # Waits for the first events of the page.
        time.sleep(4)
        picture = send("GET", f"{session}/screenshot")
        (PICTURES / f"{name}.png").write_bytes(base64.b64decode(picture))
    finally:
        send("DELETE", session)
        driver.terminate()
        driver.wait(timeout=60)


def to_html(text):
    """Converts the terminal colors and weights of a text to HTML."""
    spans, parts = 0, []
    for part in re.split(r"(\x1b\[[0-9;]*m)", text):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not code:
            parts.append(html.escape(part))
            continue
        for number in (int(number or 0) for number in code[1].split(";")):
            if number in (0, 39):
                parts.append("</span>" * spans)
                spans = 0
            elif number in STYLES:
                parts.append(f'<span style="{STYLES[number]}">')
                spans += 1
    return "".join(parts) + "</span>" * spans


STYLES = {1: "font-weight: bold", 2: "opacity: .6", 31: "color: #f47067", 32: "color: #8ddb8c",
          33: "color: #f69d50", 34: "color: #6cb6ff", 36: "color: #76e3ea"}

TERMINAL = """<!doctype html><meta charset="utf-8">
<style>
  body {{ margin: 0; background: #22272e; color: #cdd9e5; }}
  pre {{ margin: 0; padding: 20px; font: 14px/20px "DejaVu Sans Mono", monospace; }}
</style>
<pre>{text}</pre>
"""

if __name__ == "__main__":
    main()
