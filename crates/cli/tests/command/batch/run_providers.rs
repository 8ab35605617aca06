//! API keys by provider, and the same job with several providers.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use paceline_simulate::{Settings, SimulatedServer, Stats};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;

use super::rig::{Folder, chat, line, lines, output_of, simulated};
use super::scripted::{Reply, Scripted};

/// The environment variables and their keys.
const KEYS: &[(&str, &str)] = &[
    ("OPENAI_API_KEY", "sk-openai-0123456789-s3cret"),
    ("ANTHROPIC_API_KEY", "sk-ant-0123456789-s3cret"),
    ("GEMINI_API_KEY", "AIza-0123456789-s3cret"),
    ("AZURE_OPENAI_API_KEY", "azure-0123456789-s3cret"),
    ("MY_GW_API_KEY", "gateway-0123456789-s3cret"),
];

fn key(variable: &str) -> &'static str {
    let (_, key) = KEYS.iter().find(|(name, _)| *name == variable).expect("a variable");
    key
}

/// Returns the `paceline batch` command with all keys in its environment.
fn batch(folder: &Folder, arguments: &str) -> Command {
    let mut command = folder.batch(arguments);
    command.envs(KEYS.iter().copied());
    command
}

/// Returns the variables whose keys are in these headers.
fn sent(headers: &HeaderMap) -> Vec<&'static str> {
    let values: Vec<_> = headers.values().map(|v| String::from_utf8_lossy(v.as_bytes())).collect();
    let is_sent = |key: &str| values.iter().any(|value| value.contains(key));
    KEYS.iter().filter(|(_, key)| is_sent(key)).map(|(name, _)| *name).collect()
}

#[tokio::test]
async fn priority_is_sent_as_header_for_a_proxy() {
    for (arguments, value) in
        [("", None), ("--priority batch", Some("batch")), ("--priority -7", Some("-7"))]
    {
        let folder = Folder::with(&lines(1));
        let server = Scripted::start(|_| Reply::ok()).await;
        let arguments = format!("{arguments} --base-url {} --rpm 9", server.base());
        let output = output_of(batch(&folder, &arguments)).await;
        assert_eq!(output.code, Some(0), "{arguments}: {output:?}");
        let headers = &server.calls()[0].headers;
        assert_eq!(headers.get("x-paceline-priority").map(|v| v.to_str().unwrap()), value);
    }
    let folder = Folder::with(&lines(1));
    let output = output_of(batch(&folder, "--priority urgent")).await;
    assert!(
        output.code == Some(2) && output.stderr.contains("use interactive, normal, batch"),
        "{output:?}"
    );
}

#[tokio::test]
async fn api_key_is_sent_only_to_own_provider() {
    let bearer = format!("Bearer {}", key("OPENAI_API_KEY"));
    for (arguments, variable, header, value) in [
        ("--provider openai", "OPENAI_API_KEY", "authorization", bearer.as_str()),
        ("--provider anthropic", "ANTHROPIC_API_KEY", "x-api-key", key("ANTHROPIC_API_KEY")),
        ("--provider gemini", "GEMINI_API_KEY", "x-goog-api-key", key("GEMINI_API_KEY")),
        ("--provider azure", "AZURE_OPENAI_API_KEY", "api-key", key("AZURE_OPENAI_API_KEY")),
        ("--config gw.yaml", "MY_GW_API_KEY", "x-api-key", key("MY_GW_API_KEY")),
        ("--api-key-env OPENAI_API_KEY", "OPENAI_API_KEY", "authorization", bearer.as_str()),
        (
            "--provider anthropic --api-key-env MY_GW_API_KEY",
            "MY_GW_API_KEY",
            "x-api-key",
            key("MY_GW_API_KEY"),
        ),
    ] {
        let folder = Folder::with(&lines(1));
        let server = Scripted::start(|_| Reply::ok()).await;
        let base = server.base();
        let gateway = format!("providers: [{{name: my-gw, like: anthropic, base_url: '{base}'}}]");
        std::fs::write(folder.path("gw.yaml"), gateway).expect("the file is written");
        let to = if arguments.contains("--config") {
            String::new()
        } else {
            format!("--base-url {base}")
        };
        let output = output_of(batch(&folder, &format!("{arguments} {to} --rpm 9"))).await;
        assert_eq!(output.code, Some(0), "{arguments}: {output:?}");
        let headers = &server.calls()[0].headers;
        assert_eq!(sent(headers), [variable], "{arguments}");
        assert_eq!(headers[header], value, "{arguments}");
        let version = headers.get("anthropic-version").map(|version| version.as_bytes());
        let is_anthropic = header == "x-api-key";
        assert_eq!(version, is_anthropic.then_some(&b"2023-06-01"[..]), "{arguments}");
        assert!(!format!("{output:?}{}", folder.everything_written()).contains("s3cret"));
    }
}

#[tokio::test]
async fn unknown_server_gets_no_api_key() {
    // Some of the paths are those of providers.
    for path in ["", "/v1", "/anthropic", "/groq/openai/v1", "/openai/deployments/x"] {
        let folder = Folder::with(&lines(1));
        let server = Scripted::start(|_| Reply::ok()).await;
        let output =
            output_of(batch(&folder, &format!("--base-url {}{path} --rpm 9", server.base()))).await;
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(sent(&server.calls()[0].headers), Vec::<&str>::new(), "{path}");
    }
}

#[tokio::test]
async fn unset_variable_error_names_variable() {
    let folder = Folder::with(&lines(1));
    let own = "providers: [{name: my-gw, like: anthropic, base_url: 'http://127.0.0.1:1'}]";
    std::fs::write(folder.path("gw.yaml"), own).expect("the file is written");
    for (arguments, messages) in [
        ("", &["OPENAI_API_KEY: not set", "--api-key-env"][..]),
        ("--provider anthropic", &["ANTHROPIC_API_KEY: not set"]),
        ("--provider gemini", &["GEMINI_API_KEY or GOOGLE_API_KEY: not set"]),
        ("--provider anthropic --base-url http://127.0.0.1:1", &["ANTHROPIC_API_KEY: not set"]),
        ("--base-url https://x.openai.azure.com", &["AZURE_OPENAI_API_KEY: not set"]),
        ("--config gw.yaml", &["MY_GW_API_KEY: not set", "use `none` if the server needs no key"]),
        (
            "--provider openai --base-url https://api.anthropic.com",
            &["a host of anthropic; the API key of openai is not sent to it", "--api-key-env"],
        ),
        ("--provider anthropic --base-url https://api.openai.com/v1", &["a host of openai"]),
        ("--provider vllm", &["vllm: no default base URL; set --base-url"]),
        ("--provider azure", &["azure: no default base URL", "RESOURCE.openai.azure.com"]),
        (
            "--provider bedrock --base-url http://127.0.0.1:1",
            &["AWS_BEARER_TOKEN_BEDROCK: not set", "not signed with AWS access keys"],
        ),
        (
            "--provider vertex --base-url http://127.0.0.1:1",
            &["name its environment variable with --api-key-env", "gcloud auth print-access-token"],
        ),
        ("--base-url http://127.0.0.1:1 --api-key-env MINE", &["MINE: not set"]),
        ("--provider anthropic --header x-team=a", &["ANTHROPIC_API_KEY: not set"]),
    ] {
        let mut command = folder.batch(arguments);
        for (name, _) in KEYS {
            command.env_remove(name);
        }
        command.env_remove("GOOGLE_API_KEY").env_remove("AWS_BEARER_TOKEN_BEDROCK");
        let output = output_of(command).await;
        assert_eq!(output.code, Some(2), "{arguments}: {output:?}");
        for message in messages {
            assert!(output.stderr.contains(message), "{arguments}: {}", output.stderr);
        }
    }
    assert_eq!(folder.listing(), ["gw.yaml", "in.jsonl"]);
}

#[tokio::test]
async fn header_arguments_add_and_replace_headers() {
    let folder = Folder::with(&lines(1));
    let quoting_reply = |call: &super::scripted::Call| {
        Reply::error(400, "bad", &format!("no {:?}", call.headers["api-key"]))
    };
    let server = Scripted::start(quoting_reply).await;
    let arguments = format!(
        "--provider anthropic --base-url {} --rpm 9 --header anthropic-version=2099-01-01 \
         --header X-Team=blue --header api-key=header-0123456789-s3cret --report r.json",
        server.base()
    );
    let output = output_of(batch(&folder, &arguments)).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    let headers = &server.calls()[0].headers;
    assert_eq!(
        (&headers["anthropic-version"], &headers["x-team"]),
        (&"2099-01-01".parse().unwrap(), &"blue".parse().unwrap())
    );
    // The header replaces the API key.
    assert_eq!(headers["api-key"], "header-0123456789-s3cret");
    assert_eq!(sent(headers), Vec::<&str>::new());
    let message = folder.lines()[0]["error"]["message"].to_string();
    assert!(message.contains("***"), "{message}");
    assert!(!format!("{output:?}{}", folder.everything_written()).contains("s3cret"));
}

/// A simulated provider that records the path and headers of every request.
struct Recorded {
    server: SimulatedServer,
    base: String,
    requests: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

#[derive(Clone)]
struct Front {
    behind: String,
    client: reqwest::Client,
    requests: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

impl Recorded {
    async fn start(settings: Settings) -> Self {
        let (server, behind) = simulated(settings).await;
        let requests = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let client = paceline_testing::http::client();
        let front = Front { behind, client, requests: Arc::clone(&requests) };
        let app = axum::Router::new().fallback(forward).with_state(front);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { server, base, requests }
    }

    async fn end(self) -> (Stats, Vec<(String, HeaderMap)>) {
        let requests = self.requests.lock().clone();
        (self.server.shutdown().await.expect("the server shuts down"), requests)
    }
}

async fn forward(
    State(front): State<Front>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    front.requests.lock().push((uri.to_string(), headers));
    let request = front.client.post(format!("{}{uri}", front.behind)).body(body);
    let answer = http::Response::from(request.send().await.expect("a response"));
    answer.map(Body::new)
}

/// The job in the format of a provider.
struct Shape {
    arguments: &'static str,
    /// The path of the base URL.
    base_path: &'static str,
    variable: &'static str,
    header: &'static str,
    path: &'static str,
    body: fn() -> Value,
    /// Returns a batch line in the format of the provider.
    native: fn(&str, Value) -> Value,
}

const SHAPES: [Shape; 4] = [
    Shape {
        arguments: "--provider openai",
        base_path: "",
        variable: "OPENAI_API_KEY",
        header: "authorization",
        path: "/v1/chat/completions",
        body: || chat("gpt-4o", 100),
        native: |id, body| serde_json::from_str(&line(id, body)).expect("a line"),
    },
    Shape {
        arguments: "--provider anthropic",
        base_path: "",
        variable: "ANTHROPIC_API_KEY",
        header: "x-api-key",
        path: "/v1/messages",
        body: || {
            let messages = json!([{"role": "user", "content": "Why is the sky blue?"}]);
            json!({"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": messages})
        },
        native: |id, body| json!({"custom_id": id, "params": body}),
    },
    Shape {
        arguments: "--provider gemini",
        base_path: "",
        variable: "GEMINI_API_KEY",
        header: "x-goog-api-key",
        path: "/v1beta/models/gemini-2.5-flash:generateContent",
        body: || {
            let contents = json!([{"role": "user", "parts": [{"text": "Why is the sky blue?"}]}]);
            json!({"model": "models/gemini-2.5-flash", "contents": contents})
        },
        native: |id, body| json!({"key": id, "request": body}),
    },
    Shape {
        arguments: "--provider azure",
        base_path: "/openai/v1",
        variable: "AZURE_OPENAI_API_KEY",
        header: "api-key",
        path: "/openai/v1/chat/completions",
        body: || chat("my-deployment", 100),
        native: |id, body| json!({"custom_id": id, "method": "POST", "url": "/chat/completions", "body": body}),
    },
];

/// Sends 300 requests at a limit of 280 per minute, so that the last 20 wait. Few are in flight at a
/// time: with hundreds of new connections on a busy machine, requests would arrive much later than
/// they were admitted, which a client-side limiter can't know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_job_succeeds_with_every_provider() {
    let runs = SHAPES.map(|shape| tokio::spawn(run_as(shape)));
    for run in runs {
        run.await.expect("the run passes");
    }
}

async fn run_as(shape: Shape) {
    let written = (0..300).map(|n| match n % 2 {
        0 => (shape.body)().to_string(),
        _ => (shape.native)(&format!("r{n}"), (shape.body)()).to_string(),
    });
    let folder = Folder::with(&written.collect::<Vec<_>>());
    let settings = Settings::default().with_rpm(280).with_tpm(1_000_000);
    let provider = Recorded::start(settings).await;
    let arguments = format!(
        "{} --base-url {}{} --rpm 280 --tpm 1000000 --max-in-flight 16",
        shape.arguments, provider.base, shape.base_path
    );
    let output = output_of(batch(&folder, &arguments)).await;
    assert_eq!(output.code, Some(0), "{}: {output:?}", shape.arguments);
    let results = folder.results();
    assert_eq!(results.len(), 300, "{}", shape.arguments);
    assert!(results.contains_key("line-1") && results.contains_key("r299"));
    for line in results.values() {
        assert_eq!((&line["error"], &line["response"]["status_code"]), (&json!(null), &json!(200)));
    }
    let (stats, requests) = provider.end().await;
    let counts = (stats.total.received, stats.total.admitted, stats.total.refused);
    assert_eq!(counts, (300, 300, 0), "{}", shape.arguments);
    assert_eq!(requests.len(), 300);
    for (path, headers) in requests {
        assert_eq!(path, shape.path);
        assert_eq!(sent(&headers), [shape.variable]);
        let value = headers[shape.header].to_str().expect("text");
        assert_eq!(value.trim_start_matches("Bearer "), key(shape.variable));
    }
}
