//! Requests of every shape: a limit counts each, or the proxy refuses it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::rig::Proxy;
use crate::provider::corpus;

/// An upstream that answers everything, and keeps what came.
#[derive(Debug, Clone)]
struct Recorder {
    addr: SocketAddr,
    came: Arc<Mutex<Vec<Came>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Came {
    method: String,
    target: String,
    body: Bytes,
}

impl Recorder {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let came = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&came);
        let app = Router::new().fallback(async move |request: Request| {
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.expect("a body");
            let (method, target) = (parts.method.to_string(), parts.uri.to_string());
            kept.lock().push(Came { method, target, body });
            (StatusCode::OK, "{}")
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { addr, came }
    }

    /// What came since it was asked before.
    fn take(&self) -> Vec<Came> {
        std::mem::take(&mut *self.came.lock())
    }
}

/// One request, as its client writes it.
#[derive(Debug, Clone)]
struct Row {
    provider: &'static str,
    method: &'static str,
    path: String,
    fields: String,
    body: Vec<u8>,
}

impl Row {
    fn write(&self) -> Vec<u8> {
        let Self { method, path, fields, body, .. } = self;
        let length = body.len();
        let head = format!(
            "{method} /up{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\
             content-length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }

    fn text(&self) -> String {
        let body: String = String::from_utf8_lossy(&self.body).chars().take(160).collect();
        format!("{} {} {} {:?} {body}", self.provider, self.method, self.path, self.fields)
    }
}

/// The status and the body of the answer to it.
async fn send(addr: SocketAddr, row: &Row) -> (u16, String) {
    let mut stream = TcpStream::connect(addr).await.expect("it listens");
    stream.write_all(&row.write()).await.expect("it is read");
    let mut answer = Vec::new();
    // A server that refuses a request may close before it has read it all.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.get(9..12).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.unwrap_or_else(|| panic!("{answer:?}: {}", row.text())), body.to_owned())
}

fn row(method: &'static str, path: &str, fields: &str, body: impl AsRef<[u8]>) -> Row {
    let (path, fields, body) = (path.to_owned(), fields.to_owned(), body.as_ref().to_vec());
    Row { provider: "openai", method, path, fields, body }
}

fn of(provider: &'static str, row: Row) -> Row {
    Row { provider, ..row }
}

fn chat(body: impl AsRef<[u8]>) -> Row {
    row("POST", "/v1/chat/completions", JSON, body)
}

fn gemini(path: &str) -> Row {
    of("gemini", row("POST", path, JSON, r#"{"contents": []}"#))
}

fn form(path: &str, body: &str) -> Row {
    row("POST", path, "content-type: multipart/form-data; boundary=B\r\n", body)
}

/// A part of a form.
fn part(head: &str, value: &str) -> String {
    format!("--B\r\n{head}\r\n\r\n{value}\r\n")
}

fn field(name: &str, value: &str) -> String {
    part(&format!("Content-Disposition: form-data; name=\"{name}\""), value)
}

fn file(content: &str) -> String {
    let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\
                Content-Type: audio/wav";
    part(head, content)
}

fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
    let units = mark.then_some(0xFEFF).into_iter().chain(text.encode_utf16());
    units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

fn utf32(text: &str, mark: bool, big: bool) -> Vec<u8> {
    let units = mark.then_some(0xFEFF).into_iter().chain(text.chars().map(u32::from));
    units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("it is in memory");
    encoder.finish().expect("it is in memory")
}

/// Requests for `gpt-4o` that can be read: five pass, and the others are over the limit.
fn counted() -> Vec<Row> {
    let bodies = [
        CHAT,
        // A settings object names no model, before the one that counts or after it.
        r#"{"model": "gpt-4o", "options": {"model": "free"}}"#,
        r#"{"options": {"model": "free"}, "model": "gpt-4o"}"#,
        r#"{"model": "gpt-4o", "generationConfig": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "generation_config": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "toolConfig": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "inferenceConfig": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "textGenerationConfig": {"model_id": "free"}}"#,
        r#"{"model": "gpt-4o", "singleEmbeddingParams": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "options": {"options": {"model": "free"}}}"#,
        r#"{"model": "gpt-4o", "options": {"model_id": "free"}}"#,
        r#"{"model": "gpt-4o", "metadata": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "messages": [{"model": "free", "content": "x"}]}"#,
        r#"{"model": "gpt-4o", "messages": [{"content": "{\"model\": \"free\"}"}]}"#,
        // The same model twice is that model.
        r#"{"model": "gpt-4o", "model": "gpt-4o"}"#,
        r#"{"model": "gpt-4o", "model_id": "gpt-4o"}"#,
        r#"{"model_id": "gpt-4o"}"#,
        r#"{"model": "models/gpt-4o"}"#,
        r#"{"Model": "gpt-4o"}"#,
        r#"{"MODEL": "gpt-4o", "model": "gpt-4o"}"#,
        // Escapes are read.
        r#"{"mod\u0065l": "gpt-4o"}"#,
        r#"{"model": "\u0067pt-4o"}"#,
        // Fields that are odd otherwise.
        r#"{"stream": "yes", "n": -1, "messages": 7, "model": "gpt-4o"}"#,
        r#"{"messages": [], "messages": [], "model": "gpt-4o"}"#,
        r#"{"top_p": 1e999, "model": "gpt-4o"}"#,
        r#"{"model": " gpt-4o "}"#,
        "\u{feff}{\"model\": \"gpt-4o\"}",
        " \r\n\t{\"model\": \"gpt-4o\"}\n\n",
    ];
    let mut rows: Vec<Row> = bodies.into_iter().map(chat).collect();
    rows.extend(
        ["PUT", "PATCH", "QUERY", "post", "Post", "PROPFIND", "put", "get", "X"]
            .map(|method| row(method, "/v1/chat/completions", JSON, CHAT)),
    );
    // A server may take these for a POST.
    rows.extend(["GET", "DELETE", "OPTIONS"].map(|method| {
        let fields = format!("{JSON}x-http-method-override: POST\r\n");
        row(method, "/v1/chat/completions", &fields, CHAT)
    }));
    rows.extend(
        [
            "//v1//chat/completions",
            "/v1/chat//completions",
            "/v1/chat/completions/",
            "/v1/chat/completions//",
            "/v1/chat/completions?model=free",
            "/v1/chat/completions?path=/v1/files",
            "/V1/Chat/Completions",
            "/v1/ch%61t/completions",
            "/v1%2Fchat%2Fcompletions",
            "/v1/files/chat/completions",
            "/",
            "",
        ]
        .map(|path| row("POST", path, JSON, CHAT)),
    );
    rows.extend(
        [
            "/v1beta/models/gpt-4o:generateContent",
            "/v1beta/models//gpt-4o:generateContent",
            "//v1beta//models//gpt-4o:generateContent",
            "/v1beta/models/gpt-4o:generateContent/",
            "/v1beta/models%2Fgpt-4o:generateContent",
            "/v1beta/models%2fgpt-4o%3AgenerateContent",
            "/v1beta/Models/gpt-4o:generateContent",
            "/v1beta/models/gpt-4o:GenerateContent",
            "/v1beta/models/gpt%2D4o:generateContent?alt=sse",
            "/v1/projects/p/locations/l/publishers/google/models/gpt-4o:streamGenerateContent",
        ]
        .map(gemini),
    );
    let of_path = r#"{"model": "free", "messages": []}"#;
    rows.extend(
        [
            "/openai/deployments/gpt-4o/chat/completions",
            "/openai/deployments//gpt-4o/chat/completions",
            "/openai/Deployments/gpt-4o/chat/completions",
            "/openai/deployments%2Fgpt-4o/chat/completions",
        ]
        .map(|path| of("azure", row("POST", path, JSON, of_path))),
    );
    rows.extend(
        ["/model/gpt-4o/converse", "//model//gpt-4o/invoke", "/Model/gpt%2D4o/converse-stream"]
            .map(|path| of("bedrock", row("POST", path, JSON, of_path))),
    );
    // Form fields, wherever they stand.
    let far = "x".repeat(200_000);
    let forms = [
        field("model", "gpt-4o") + &file("RIFF") + "--B--\r\n",
        file(&far) + &field("model", "gpt-4o") + &file(&far) + "--B--\r\n",
        file(&far) + &part("CONTENT-DISPOSITION:form-data;name=model", "gpt-4o") + "--B--",
        field("model", "gpt-4o") + &file("x\r\nname=\"model\"\r\n\r\nfree\r\n") + "--B--\r\n",
        file("\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nfree\r\n")
            + &field("model", "gpt-4o")
            + "--B--\r\n",
        part(&format!("x-pad: {far}\r\nContent-Disposition: form-data; name=\"model\""), "gpt-4o")
            + "--B--\r\n",
        field("m%6fdel", "gpt-4o") + "--B--\r\n",
        "\r\n".to_owned() + &field("model", "gpt-4o") + "--B--\r\n",
    ];
    rows.extend(forms.map(|body| form("/v1/audio/transcriptions", &body)));
    let pairs = ["model=gpt-4o&file=x", "file=x&m%6Fdel=gpt%2D4o", "a=b;model=gpt-4o"];
    let fields = "content-type: application/x-www-form-urlencoded\r\n";
    rows.extend(pairs.map(|body| row("POST", "/v1/audio/speech", fields, body)));
    // `curl -d` says so of JSON too.
    rows.push(row("POST", "/v1/chat/completions", fields, CHAT));
    rows.push(row("POST", "/v1/chat/completions", "", CHAT));
    rows.push(row("POST", "/v1/chat/completions", "content-type: text/plain\r\n", CHAT));
    rows
}

/// Requests that two servers may read differently, or that the proxy can't read: none passes.
fn refused() -> Vec<(Row, &'static str)> {
    let free = r#"{"model": "free"}"#;
    let model = "`model`";
    let bodies: [(&str, &str); 35] = [
        (r#"{"model": "free", "model": "gpt-4o"}"#, model),
        (r#"{"model": "gpt-4o", "model": "free"}"#, model),
        (r#"{"model": "free", "model_id": "gpt-4o"}"#, model),
        (r#"{"model_id": "free", "model": "gpt-4o"}"#, model),
        (r#"{"model": "free", "mod\u0065l": "gpt-4o"}"#, model),
        (r#"{"model": "free", "Model": "gpt-4o"}"#, model),
        (r#"{"MODEL": "gpt-4o", "model": "free"}"#, model),
        (r#"{"model": "free", "model": null}"#, model),
        (r#"{"model": null, "model": "free"}"#, model),
        (r#"{"model": "free", "model": 7}"#, model),
        (r#"{"model": ["gpt-4o"]}"#, model),
        (r#"{"model": {"id": "gpt-4o"}}"#, model),
        (r#"{"model": 4}"#, model),
        (r#"{"model": -4}"#, model),
        (r#"{"model": true}"#, model),
        (r#"{"options": {"model": "gpt-4o"}}"#, model),
        (r#"{"generationConfig": {"model": "gpt-4o"}}"#, model),
        (r#"{"toolConfig": {"model_id": "gpt-4o"}}"#, model),
        (r#"{"top_p": NaN, "model": "gpt-4o"}"#, "`body`"),
        (r#"{"top_p": Infinity, "model": "gpt-4o"}"#, "`body`"),
        (r#"{"top_p": -Infinity, "model": "gpt-4o"}"#, "`body`"),
        (r#"{"top_p": 01, "model": "gpt-4o"}"#, "`body`"),
        (r#"{"top_p": .5, "model": "gpt-4o"}"#, "`body`"),
        (r#"{/* a */ "model": "gpt-4o"}"#, "`body`"),
        (r#"{"stop": ["\ud83d"], "a": undefined, "model": "gpt-4o"}"#, "`body`"),
        (r#"{"messages": [{"content": "\ud83d"}], "model": "gpt-4o"}"#, "`body`"),
        (r#"{'model': 'gpt-4o'}"#, "`body`"),
        (r#"{model: "gpt-4o"}"#, "`body`"),
        (r#"{"model": "gpt-4o",}"#, "`body`"),
        (r#"{"model": "gpt-4o""#, "`body`"),
        (r#"{"model": "free"} {"model": "gpt-4o"}"#, "`body`"),
        (r#"[{"model": "gpt-4o"}]"#, "`body`"),
        (r#""{\"model\": \"gpt-4o\"}""#, "`body`"),
        ("model=gpt-4o", "`body`"),
        ("null", "`body`"),
    ];
    let mut rows: Vec<(Row, &str)> =
        bodies.into_iter().map(|(body, field)| (chat(body), field)).collect();
    for (mark, big) in [(false, false), (false, true), (true, false), (true, true)] {
        rows.push((chat(utf16(CHAT, mark, big)), "`body`"));
        rows.push((chat(utf32(CHAT, mark, big)), "`body`"));
    }
    rows.push((chat([CHAT.as_bytes(), b"\0"].concat()), "`body`"));
    rows.push((chat([&b"{\"a\": \"\xff\", \"model\": \"gpt-4o\"}"[..]].concat()), "`body`"));
    rows.push((chat(gzip(CHAT)), "`body`"));
    rows.push((chat(format!("{}1{}", "[".repeat(300), "]".repeat(300))), "`body`"));
    let deep =
        format!(r#"{{"messages": {}{}, "model": "gpt-4o"}}"#, "[".repeat(300), "]".repeat(300));
    rows.push((chat(deep), "`body`"));
    for encoding in ["gzip", "br", "deflate", "zstd", "x-gzip", "identity, gzip"] {
        let fields = format!("{JSON}content-encoding: {encoding}\r\n");
        rows.push((row("POST", "/v1/chat/completions", &fields, gzip(CHAT)), "content-encoding"));
        rows.push((row("PUT", "/v1/chat/completions", &fields, gzip(CHAT)), "content-encoding"));
    }
    let kind = "`content-type`";
    for fields in [
        "content-type: application/json; charset=utf-16\r\n",
        "content-type: application/json; charset=\"UTF-7\"\r\n",
        "content-type: application/json\r\ncontent-type: application/x-www-form-urlencoded\r\n",
    ] {
        rows.push((row("POST", "/v1/chat/completions", fields, free), kind));
    }
    // Pairs within what is JSON too.
    let fields = "content-type: application/x-www-form-urlencoded\r\n";
    let both = r#"{"model": "free", "a": "&model=gpt-4o&"}"#;
    rows.push((row("POST", "/v1/chat/completions", fields, both), model));
    rows.push((row("POST", "/v1/chat/completions", fields, "model=free&model=gpt-4o"), model));
    rows.push((row("POST", "/v1/chat/completions", fields, "model=free;model=gpt-4o"), model));
    rows.push((row("POST", "/v1/chat/completions", fields, "model=free&model=%ff"), model));

    let transcribe = "/v1/audio/transcriptions";
    let (one, other) = (field("model", "free"), field("model", "gpt-4o"));
    let lines = format!("{one}{other}--B--\r\n").replace("\r\n", "\n");
    let of_model = |rest: &str, value: &str| {
        let head = format!("Content-Disposition: form-data; {rest}");
        one.clone() + &part(&head, value) + "--B--\r\n"
    };
    let forms = [
        (format!("{one}{other}--B--\r\n"), model),
        (of_model("name=\"model\"; filename=\"a\"", "gpt-4o"), model),
        (of_model("name=\"Model\"", "gpt-4o"), model),
        (of_model("name=\"mo\\del\"", "gpt-4o"), model),
        (of_model("name=\"m%6Fdel\"", "gpt-4o"), model),
        (of_model("name=model", "gpt-4o"), model),
        (of_model("name=\"model\"\r\nContent-Transfer-Encoding: base64", "Z3B0LTRv"), model),
        (of_model("name=\"model[]\"", "gpt-4o"), model),
        (of_model("name*=utf-8''model", "gpt-4o"), "`body`"),
        (of_model("name=a; name=model", "gpt-4o"), "`body`"),
        (of_model("\r\n name=model", "gpt-4o"), "`body`"),
        (field("model", &"x".repeat(300)) + "--B--\r\n", model),
        (format!("{one}--B--\r\n{other}--B--\r\n"), "`body`"),
        (format!("model=free\r\n{other}--B--\r\n"), "`body`"),
        (format!("{free}\r\n{other}--B--\r\n"), "`body`"),
        (one.clone() + &file("x"), "`body`"),
        (one.clone() + &file(&"x".repeat(200_000)), "`body`"),
        (lines, "`body`"),
        (format!("{}{other}--B--\r\n", one.replace("\r\n", "\n")), "`body`"),
        (
            format!("{one}--B x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--B--"),
            "`body`",
        ),
        (format!("{one}--B\r\nno header\r\n\r\n1\r\n--B--\r\n"), "`body`"),
        (format!("{one}--B\r\nContent-Disposition: form-data; name=model"), "`body`"),
    ];
    rows.extend(forms.map(|(body, field)| (form(transcribe, &body), field)));
    let whole = format!("{one}--B--\r\n");
    for fields in [
        "content-type: multipart/form-data\r\n",
        "content-type: multipart/form-data; boundary=C\r\n",
        "content-type: multipart/form-data; boundary=B; boundary=C\r\n",
        "content-type: multipart/mixed; boundary=B\r\n",
        "content-type: audio/wav\r\n",
        JSON,
        "",
    ] {
        let row = row("POST", transcribe, fields, &whole);
        rows.push((row, if fields.contains("form-data") { kind } else { "`body`" }));
    }
    for path in [
        "/v1beta/models/gpt%252D4o:generateContent",
        "/v1beta/models/gpt-4o%20:generateContent",
        "/v1beta/models/gpt-4o%00:generateContent",
        "/v1beta/models/gpt-4o;a=b:generateContent",
        "/v1beta/models/gpt-4o%3Ba=b:generateContent",
        "/v1beta/models%5Cgpt-4o:generateContent",
        "/v1beta/models/gpt-4o%23:generateContent",
        "/v1beta/models/gpt-4o%3F:generateContent",
        "/v1beta/models/gpt-4o%FF:generateContent",
        "/v1beta/models/gpt-4o%zz:generateContent",
        "/v1beta/models/gpt-4o:generateContent%09",
    ] {
        rows.push((gemini(path), "path"));
    }
    for path in [
        "/v1beta/./models/gpt-4o:generateContent",
        "/v1beta/models/../models/gpt-4o:generateContent",
        "/v1beta/models/free/%2e%2e/gpt-4o:generateContent",
        "/v1beta/models/free%2F..%2fgpt-4o:generateContent",
        "/v1beta/models/free/%252e%252e/gpt-4o:generateContent",
        "/v1/files/../chat/completions",
    ] {
        rows.push((gemini(path), "path"));
    }
    rows
}

/// Requests as clients of the providers write them.
fn genuine() -> Vec<Row> {
    let hi = r#"{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}"#;
    let contents = r#"{"contents": [{"parts": [{"text": "Hi"}]}]}"#;
    let batch = r#"{"requests": [{"model": "models/a", "content": {}}, {"model": "models/b"}]}"#;
    let converse =
        r#"{"messages": [], "inferenceConfig": {"maxTokens": 9}, "toolConfig": {"tools": []}}"#;
    let invoke = r#"{"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": []}"#;
    let json = [
        ("openai", "/v1/chat/completions", hi),
        (
            "openai",
            "/v1/chat/completions",
            r#"{"model": "m", "messages": [], "metadata": {"model": "x"}}"#,
        ),
        ("openai", "/v1/completions", r#"{"model": "m", "prompt": ["a", "b"], "n": 2}"#),
        (
            "openai",
            "/v1/responses",
            r#"{"model": "m", "input": "Hi", "tools": [{"type": "web_search"}]}"#,
        ),
        ("openai", "/v1/responses", r#"{"prompt": {"id": "pmpt_1"}, "input": "no model"}"#),
        ("openai", "/v1/responses/resp_1/cancel", ""),
        ("openai", "/v1/embeddings", r#"{"model": "m", "input": [[1, 2], [3]]}"#),
        ("openai", "/v1/moderations", r#"{"input": "no model"}"#),
        ("openai", "/v1/moderations", r#"{"model": null, "input": "no model"}"#),
        ("openai", "/v1/images/generations", r#"{"model": "m", "prompt": "a cat", "n": 1}"#),
        ("openai", "/v1/audio/speech", r#"{"model": "m", "input": "Hi", "voice": "alloy"}"#),
        ("openai", "/v1/batches", r#"{"input_file_id": "file-1", "endpoint": "/v1/embeddings"}"#),
        ("openai", "/v1/fine_tuning/jobs", r#"{"model": "m", "training_file": "file-1"}"#),
        ("openai", "/v1/threads/t/runs", r#"{"assistant_id": "asst_1"}"#),
        ("openai", "/v1/vector_stores", "{}"),
        (
            "anthropic",
            "/v1/messages",
            r#"{"model": "m", "max_tokens": 9, "messages": [], "system": "x"}"#,
        ),
        (
            "anthropic",
            "/v1/messages?beta=true",
            r#"{"model": "m", "max_tokens": 9, "messages": []}"#,
        ),
        ("anthropic", "/v1/messages/count_tokens", hi),
        (
            "anthropic",
            "/v1/messages/batches",
            r#"{"requests": [{"custom_id": "a", "params": {"model": "m"}}]}"#,
        ),
        ("gemini", "/v1beta/models/gemini-x:generateContent", contents),
        ("gemini", "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", contents),
        ("gemini", "/v1beta/models/gemini-x:batchEmbedContents", batch),
        ("gemini", "/v1beta/models/gemini-x%3AgenerateContent", contents),
        ("gemini", "/v1beta/cachedContents", r#"{"model": "models/m", "contents": []}"#),
        ("gemini", "/v1beta/openai/chat/completions", hi),
        (
            "vertex",
            "/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
            contents,
        ),
        (
            "vertex-anthropic",
            "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
            invoke,
        ),
        ("azure", "/openai/deployments/d/chat/completions?api-version=2024-10-21", hi),
        ("azure", "/openai/deployments/d/chat/completions", r#"{"messages": []}"#),
        ("azure", "/openai/v1/responses", r#"{"model": "m", "input": "Hi"}"#),
        ("bedrock", "/model/us.amazon.nova-micro-v1%3A0/converse", converse),
        (
            "bedrock",
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fp/invoke",
            invoke,
        ),
        (
            "bedrock",
            "/model/amazon.titan-text/invoke",
            r#"{"inputText": "Hi", "textGenerationConfig": {}}"#,
        ),
        ("cohere", "/v2/chat", hi),
        ("cohere", "/v1/chat", r#"{"message": "no model", "chat_history": []}"#),
        ("cohere", "/v2/embed", r#"{"model": "m", "texts": ["a"], "input_type": "search_query"}"#),
        ("cohere", "/v2/rerank", r#"{"model": "m", "query": "a", "documents": ["b"]}"#),
        (
            "ollama",
            "/api/chat",
            r#"{"model": "llama3:8b", "messages": [], "options": {"num_predict": 9}}"#,
        ),
        (
            "ollama",
            "/api/generate",
            r#"{"model": "llama3", "prompt": "Hi", "options": {"temperature": 0}}"#,
        ),
        ("ollama", "/api/pull", r#"{"model": "llama3"}"#),
        ("mistral", "/v1/chat/completions", hi),
        (
            "mistral",
            "/v1/ocr",
            r#"{"model": "m", "document": {"type": "document_url", "document_url": "u"}}"#,
        ),
        ("groq", "/openai/v1/chat/completions", hi),
        ("openrouter", "/api/v1/chat/completions", r#"{"models": ["a", "b"], "messages": []}"#),
        ("huggingface", "/v1/chat/completions", hi),
        ("voyage", "/v1/embeddings", r#"{"model": "m", "input": "Hi"}"#),
        ("llama-cpp", "/completion", r#"{"prompt": "no model", "n_predict": 9}"#),
        (
            "vllm",
            "/v1/chat/completions",
            r#"{"messages": [{"role": "user", "content": "no model"}]}"#,
        ),
        ("compatible", "/models/owner/name/predictions", r#"{"input": {"prompt": "Hi"}}"#),
        ("compatible", "/serving-endpoints/e/invocations", r#"{"messages": []}"#),
    ];
    let mut rows: Vec<Row> =
        json.map(|(provider, path, body)| of(provider, row("POST", path, JSON, body))).into();
    for fields in [
        "",
        "content-type: application/json; charset=utf-8\r\n",
        "content-type: application/json;charset=UTF-8\r\n",
        "content-type: text/plain; charset=\"us-ascii\"\r\n",
        "content-type: application/x-www-form-urlencoded\r\n",
        "content-type: application/json\r\ncontent-encoding: identity\r\n",
    ] {
        rows.push(row("POST", "/v1/chat/completions", fields, hi));
    }
    // As curl, Python's httpx, Go, OkHttp, .NET and aiohttp write forms.
    let head = "Content-Disposition: form-data; name=";
    let audio = "\0RIFF\r\n--\r\n\u{ff}\n\n";
    let forms = [
        ("-----26", format!("\"model\"\r\n\r\nm\r\n-------26\r\n{head}\"file\"; filename=\"a.wav\"\r\n\
            Content-Type: application/octet-stream\r\n\r\n{audio}\r\n-------26--\r\n")),
        ("0f3a", format!("\"file\"; filename=\"a b;c.wav\"\r\nContent-Type: audio/wav\r\n\r\n{audio}\r\n\
            --0f3a\r\n{head}\"model\"\r\n\r\nm\r\n--0f3a--\r\n")),
        ("okhttp", format!("\"model\"\r\nContent-Length: 1\r\n\r\nm\r\n--okhttp--\r\n")),
        ("\"a-b\"", "model\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nm\r\n--a-b\r\n\
            Content-Disposition: form-data; name=file; filename=a.wav; filename*=utf-8''a.wav\r\n\r\n\
            x\r\n--a-b--\r\n".to_owned()),
        ("z", format!("\"image[]\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\nx\r\n--z\r\n\
            {head}\"image[]\"; filename=\"b.png\"\r\nContent-Type: image/png\r\n\r\ny\r\n--z\r\n\
            {head}\"prompt\"\r\n\r\nno model\r\n--z--\r\n")),
    ];
    for (boundary, body) in forms {
        let fields = format!("content-type: multipart/form-data; boundary={boundary}\r\n");
        let body = format!("--{}\r\n{head}{body}", boundary.trim_matches('"'));
        rows.push(row("POST", "/v1/audio/transcriptions", &fields, &body));
        let path = "/openai/deployments/whisper/audio/transcriptions?api-version=1";
        rows.push(of("azure", row("POST", path, &fields, &body)));
        rows.push(row("POST", "/v1/files", &fields, &body));
    }
    // No model, and so nothing that must be read.
    let raw = "content-type: application/octet-stream\r\n";
    rows.push(of("ollama", row("POST", "/api/blobs/sha256:00", raw, "\0GGUF")));
    rows.push(of("gemini", row("POST", "/upload/v1beta/files?upload_id=1", raw, "\0")));
    rows.push(row("PUT", "/v1/files/file-1", raw, gzip(CHAT)));
    rows.push(row("POST", "/v1/uploads/u/parts", raw, utf16(CHAT, true, true)));
    for path in ["/v1/models", "/v1/files/a%20b", "/v1//models/x;y", "/api/tags", ""] {
        rows.push(row("GET", path, "", ""));
        rows.push(row("DELETE", path, "", ""));
    }
    rows
}

#[tokio::test]
async fn a_limit_counts_requests_of_every_shape() {
    let upstream = Recorder::start().await;
    let rows = counted();
    assert!(rows.len() >= 70, "{}", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let proxy = limited(&upstream, row.provider, "").await;
        let mut statuses = Vec::new();
        for _ in 0..12 {
            statuses.push(send(proxy.addr(), row).await.0);
        }
        let came = upstream.take().len();
        if came != 5 || statuses[..5] != [200; 5] || statuses[5..] != [429; 7] {
            wrong.push(format!("{came} of 12 ({statuses:?}): {}", row.text()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[tokio::test]
async fn a_request_that_cannot_be_read_for_certain_is_refused() {
    let upstream = Recorder::start().await;
    let rows = refused();
    assert!(rows.len() >= 100, "{}", rows.len());
    let mut wrong = Vec::new();
    for (row, field) in &rows {
        let proxy = limited(&upstream, row.provider, "").await;
        let (status, answer) = send(proxy.addr(), row).await;
        let came = upstream.take().len();
        let is_refused = match *field {
            "content-encoding" => status == 415,
            _ => status == 400,
        };
        if !is_refused || came > 0 || !answer.contains(field) {
            wrong.push(format!("{status}, {came} came: {}\n  {answer}", row.text()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[tokio::test]
async fn requests_of_every_dialect_pass_unchanged() {
    let upstream = Recorder::start().await;
    let rows = genuine();
    assert!(rows.len() >= 50, "{}", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let proxy = limited(&upstream, row.provider, "").await;
        wrong.extend(changed(&upstream, &proxy, row).await);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// What is wrong with how a request came to its upstream.
async fn changed(upstream: &Recorder, proxy: &Proxy, row: &Row) -> Option<String> {
    let (status, answer) = send(proxy.addr(), row).await;
    let target = if row.path.is_empty() { "/".to_owned() } else { row.path.clone() };
    let (method, body) = (row.method.to_owned(), Bytes::from(row.body.clone()));
    let is_same = upstream.take() == [Came { method, target, body }];
    (status != 200 || !is_same).then(|| format!("{status}: {}\n  {answer}", row.text()))
}

#[tokio::test]
async fn recorded_requests_pass_unchanged() {
    let Some(entries) = corpus::all() else { return };
    let upstream = Recorder::start().await;
    let mut proxies: HashMap<&str, Proxy> = HashMap::new();
    let mut wrong = Vec::new();
    for entry in &entries {
        // One was cut off as it was recorded.
        let body = entry.request.as_bytes();
        if serde_json::from_slice::<serde_json::Value>(body).is_err() {
            assert_eq!((entry.file, body.is_empty()), ("bedrock.har", false), "{}", entry.index);
            continue;
        }
        let name = entry.profile().name();
        if !proxies.contains_key(name) {
            let ample = "quotas: {'*': {rpd: 1000000}}";
            let proxy = Proxy::with(&[("up", upstream.addr, name)], "mode: reject", ample).await;
            proxies.insert(name, proxy);
        }
        let (_, path) = entry.url.split_once("://").expect("a URL");
        let path = path.find('/').map_or("", |slash| &path[slash..]);
        let row = of(name, row("POST", path, JSON, body));
        wrong.extend(changed(&upstream, &proxies[name], &row).await);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
}

#[tokio::test]
async fn a_configuration_lets_pass_what_cannot_be_read() {
    let upstream = Recorder::start().await;
    let fields = format!("{JSON}content-encoding: gzip\r\n");
    for row in [
        chat(r#"{"model": "gpt-4o", "top_p": NaN}"#),
        chat(r#"{"model": "free", "model": "gpt-4o"}"#),
        row("POST", "/v1/chat/completions", &fields, gzip(CHAT)),
        row("POST", "/v1/listen", "content-type: audio/wav\r\n", "RIFF"),
        gemini("/v1beta/models/gpt-4o;a=b:generateContent"),
    ] {
        let refusing = limited(&upstream, row.provider, "unread: refuse").await;
        assert_ne!(send(refusing.addr(), &row).await.0, 200, "{}", row.text());
        assert_eq!(upstream.take(), []);
        let allowing = limited(&upstream, row.provider, "unread: allow").await;
        assert_eq!(changed(&upstream, &allowing, &row).await, None);
    }
    // What was read of it counts.
    let proxy = limited(&upstream, "openai", "unread: allow").await;
    let row = chat(r#"{"model": "gpt-4o", "top_p": NaN}"#);
    for n in 0..12 {
        assert_eq!(send(proxy.addr(), &row).await.0, if n < 5 { 200 } else { 429 });
    }
}

#[tokio::test]
async fn a_refusal_is_an_error_as_the_provider_writes_it() {
    let upstream = Recorder::start().await;
    for (provider, kind) in [("openai", "invalid_request_error"), ("gemini", "INVALID_ARGUMENT")] {
        let proxy = limited(&upstream, provider, "").await;
        let row = chat(r#"{"model": "secret-a", "model": "secret-b"}"#);
        let (status, answer) = send(proxy.addr(), &row).await;
        assert_eq!(status, 400);
        for part in ["unreadable_request", "`model`: ", "more than once", "serve.unread", kind] {
            assert!(answer.contains(part), "{part}: {answer}");
        }
        assert!(!answer.contains("secret"), "{answer}");
    }
}

/// A proxy that lets five requests for `gpt-4o` a day pass, and any number for others.
async fn limited(upstream: &Recorder, provider: &str, serve: &str) -> Proxy {
    let upstreams = [("up", upstream.addr, provider)];
    let quotas = "quotas: {gpt-4o: {rpd: 5, algorithm: fixed_window}}";
    Proxy::with(&upstreams, &format!("mode: reject\n{serve}"), quotas).await
}

const JSON: &str = "content-type: application/json\r\n";

const CHAT: &str = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}"#;
