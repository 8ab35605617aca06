//! Chromium, driven through chromedriver over HTTP: WebDriver clients do not support the log and media
//! emulation, which are not in the standard.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use base64::Engine;
use serde_json::{Value, json};

/// A browser with one tab, closed on drop.
pub(super) struct Chromium {
    driver: Child,
    session: String,
    client: reqwest::Client,
}

impl Chromium {
    pub(super) async fn start() -> Self {
        let client = paceline_testing::http::client();
        // Of several at the same time, one may find its port taken in IPv6, and ends.
        let (driver, port) = (0..10).find_map(|_| driver()).expect("chromedriver starts");
        let root = format!("http://127.0.0.1:{port}/session");
        let mut browser = Self { driver, session: root, client };
        let options = json!({"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": [
                // Tests run as root in containers with little shared memory.
                "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                "--force-color-profile=srgb", "--hide-scrollbars",
            ]},
        }}});
        let session = browser.post("", options).await;
        let id = session["sessionId"].as_str().expect("a session").to_owned();
        browser.session = format!("{}/{id}", browser.session);
        browser
    }

    pub(super) async fn open(&self, url: &str) {
        self.post("/url", json!({"url": url})).await;
    }

    /// Runs the body of a function, and returns its result.
    pub(super) async fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({"script": script, "args": []})).await
    }

    /// Waits until an expression is true.
    pub(super) async fn until(&self, expression: &str) {
        let script = format!(
            "const done = arguments[arguments.length - 1];
             const look = () => ({expression}) ? done(true) : setTimeout(look, 20); look();"
        );
        self.post("/execute/async", json!({"script": script, "args": []})).await;
    }

    /// Types text or WebDriver key codes into the focused element.
    pub(super) async fn press(&self, keys: &str) {
        let strokes = keys.chars().flat_map(|key| {
            ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()}))
        });
        let strokes: Vec<_> = strokes.collect();
        let actions = json!([{"type": "key", "id": "keyboard", "actions": strokes}]);
        self.post("/actions", json!({"actions": actions})).await;
    }

    /// Sets the width of the window in CSS pixels, and the color scheme (`light` or `dark`).
    pub(super) async fn set_viewport(&self, width: u32, scheme: &str) {
        let metrics = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": features})).await;
    }

    /// Writes a screenshot of the whole page to `target/tmp/screenshots`.
    pub(super) async fn screenshot(&self, name: &str) {
        let options = json!({"format": "png", "captureBeyondViewport": true});
        let picture = self.devtools("Page.captureScreenshot", options).await;
        let picture = picture["data"].as_str().expect("a picture");
        let picture = base64::engine::general_purpose::STANDARD.decode(picture).unwrap();
        let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/screenshots");
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(format!("{folder}/{name}.png"), picture).unwrap();
    }

    /// Returns console messages since the last call.
    pub(super) async fn log(&self) -> Vec<String> {
        let log = self.post("/se/log", json!({"type": "browser"})).await;
        let lines = log.as_array().expect("a log").iter();
        lines.map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    async fn devtools(&self, command: &str, params: Value) -> Value {
        self.post("/goog/cdp/execute", json!({"cmd": command, "params": params})).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.session)).body(body.to_string());
        let response = request.send().await.unwrap();
        let status = response.status();
        let response: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert!(status.is_success(), "{path}: {response}");
        response["value"].clone()
    }
}

impl Drop for Chromium {
    /// Closes the browser before the driver, because a killed driver leaves it running.
    fn drop(&mut self) {
        let session = self.session.clone();
        let end = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let client = reqwest::Client::builder().no_proxy().build();
            let end = async { client.ok()?.delete(session).send().await.ok() };
            Ok::<_, std::io::Error>(runtime.block_on(end).is_some())
        });
        let _ = end.join();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Starts chromedriver on a free port, which it prints; returns `None` if it ends before.
fn driver() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver is installed: apt-get install chromium chromium-driver");
    let stdout = BufReader::new(driver.stdout.take().expect("stdout is piped"));
    let port = stdout.lines().map_while(Result::ok).find_map(|line| {
        let port = line.split_once("was started successfully on port ")?.1;
        port.trim_end_matches('.').parse().ok()
    });
    if port.is_none() {
        let _ = driver.wait();
    }
    port.map(|port| (driver, port))
}
