//! Requests in all formats: each is either charged or refused.

mod charged_requests;
mod client_requests;
mod refused_requests;
mod test_request;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use parking_lot::Mutex;
use tokio::net::TcpListener;

use self::charged_requests::charged_requests;
use self::client_requests::client_requests;
use self::refused_requests::refused_requests;
use self::test_request::{CHAT, JSON, TestRequest, chat, gemini, gzip, of, send, test_request};
use super::rig::Proxy;
use paceline::provider::Profile;
use paceline_testing::corpus;

/// An upstream that responds to every request and records it.
#[derive(Debug, Clone)]
struct Recorder {
    addr: SocketAddr,
    recorded: Arc<Mutex<Vec<RecordedRequest>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RecordedRequest {
    method: String,
    target: String,
    body: Bytes,
}

impl Recorder {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("a local address");
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&recorded);
        let app = Router::new().fallback(async move |request: Request| {
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.expect("a body");
            let (method, target) = (parts.method.to_string(), parts.uri.to_string());
            kept.lock().push(RecordedRequest { method, target, body });
            (StatusCode::OK, "{}")
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { addr, recorded }
    }

    /// Returns the requests since the last call.
    fn take(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut *self.recorded.lock())
    }
}

#[tokio::test]
async fn all_request_formats_are_charged() {
    let upstream = Recorder::start().await;
    let requests = charged_requests();
    assert!(requests.len() >= 70, "{}", requests.len());
    let mut wrong = Vec::new();
    for request in &requests {
        let proxy = limited(&upstream, request.provider, "").await;
        let mut statuses = Vec::new();
        for _ in 0..12 {
            statuses.push(send(proxy.addr(), request).await.0);
        }
        let recorded = upstream.take().len();
        if recorded != 5 || statuses[..5] != [200; 5] || statuses[5..] != [429; 7] {
            wrong.push(format!("{recorded} of 12 ({statuses:?}): {}", request.text()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), requests.len(), wrong.join("\n"));
}

#[tokio::test]
async fn request_without_a_determinable_model_is_refused() {
    let upstream = Recorder::start().await;
    let requests = refused_requests();
    assert!(requests.len() >= 100, "{}", requests.len());
    let mut wrong = Vec::new();
    for (request, field) in &requests {
        let proxy = limited(&upstream, request.provider, "").await;
        let (status, response) = send(proxy.addr(), request).await;
        let recorded = upstream.take().len();
        let is_refused = match *field {
            "content-encoding" => [400, 415].contains(&status),
            _ => status == 400,
        };
        if !is_refused || recorded > 0 || !response.contains(field) {
            wrong.push(format!("{status}, {recorded} recorded: {}\n  {response}", request.text()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), requests.len(), wrong.join("\n"));
}

#[tokio::test]
async fn requests_of_all_dialects_are_forwarded_unchanged() {
    let upstream = Recorder::start().await;
    let requests = client_requests();
    assert!(requests.len() >= 50, "{}", requests.len());
    let mut wrong = Vec::new();
    for request in &requests {
        let proxy = limited(&upstream, request.provider, "").await;
        wrong.extend(changed(&upstream, &proxy, request).await);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), requests.len(), wrong.join("\n"));
}

/// Returns `true` if a forwarded body is that of a stream of a chat which asks for its usage, and otherwise the
/// same.
fn asks_for_usage_only(sent: &[u8], forwarded: &[u8]) -> bool {
    let parse = |body: &[u8]| serde_json::from_slice::<serde_json::Value>(body).ok();
    let (Some(mut sent), Some(mut forwarded)) = (parse(sent), parse(forwarded)) else {
        return false;
    };
    let asked = forwarded["stream_options"]["include_usage"] == true;
    for body in [&mut sent, &mut forwarded] {
        let options = body.get_mut("stream_options").and_then(|options| options.as_object_mut());
        if options
            .is_some_and(|options| options.remove("include_usage").is_some() && options.is_empty())
        {
            body.as_object_mut().map(|body| body.remove("stream_options"));
        }
    }
    asked && sent["stream"] == true && sent == forwarded
}

/// Returns the difference between a request and its forwarded form.
async fn changed(upstream: &Recorder, proxy: &Proxy, request: &TestRequest) -> Option<String> {
    let (status, response) = send(proxy.addr(), request).await;
    let target = if request.path.is_empty() { "/".to_owned() } else { request.path.clone() };
    let (method, body) = (request.method.to_owned(), Bytes::from(request.body.clone()));
    let sent = RecordedRequest { method, target, body };
    let is_same = match &upstream.take()[..] {
        [forwarded] if forwarded.body != sent.body => {
            (&forwarded.method, &forwarded.target) == (&sent.method, &sent.target)
                && asks_for_usage_only(&sent.body, &forwarded.body)
        }
        forwarded => forwarded == [sent],
    };
    (status != 200 || !is_same).then(|| format!("{status}: {}\n  {response}", request.text()))
}

#[tokio::test]
async fn recorded_requests_are_forwarded_unchanged() {
    let Some(entries) = corpus::all() else { return };
    let upstream = Recorder::start().await;
    let mut proxies: HashMap<&str, Proxy> = HashMap::new();
    let mut wrong = Vec::new();
    for entry in &entries {
        // One recording is truncated.
        let body = entry.request.as_bytes();
        if serde_json::from_slice::<serde_json::Value>(body).is_err() {
            assert_eq!((entry.file, body.is_empty()), ("bedrock.har", false), "{}", entry.index);
            continue;
        }
        let name = Profile::find(&entry.url).name();
        if !proxies.contains_key(name) {
            let ample = "quotas: {'*': {rpd: 1000000}}";
            let proxy = Proxy::with(&[("up", upstream.addr, name)], "mode: reject", ample).await;
            proxies.insert(name, proxy);
        }
        let (_, path) = entry.url.split_once("://").expect("a URL");
        let path = path.find('/').map_or("", |slash| &path[slash..]);
        let request = of(name, test_request("POST", path, JSON, body));
        wrong.extend(changed(&upstream, &proxies[name], &request).await);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
}

#[tokio::test]
async fn unread_allow_forwards_undeterminable_requests() {
    let upstream = Recorder::start().await;
    let fields = format!("{JSON}content-encoding: compress\r\n");
    for request in [
        chat(r#"{"model": "gpt-4o", "top_p": NaN}"#),
        chat(r#"{"model": "free", "model": "gpt-4o"}"#),
        test_request("POST", "/v1/chat/completions", &fields, gzip(CHAT)),
        test_request("POST", "/v1/listen", "content-type: audio/wav\r\n", "RIFF"),
        gemini("/v1beta/models/gpt-4o;a=b:generateContent"),
    ] {
        let refusing = limited(&upstream, request.provider, "unread: refuse").await;
        assert_ne!(send(refusing.addr(), &request).await.0, 200, "{}", request.text());
        assert_eq!(upstream.take(), []);
        let allowing = limited(&upstream, request.provider, "unread: allow").await;
        assert_eq!(changed(&upstream, &allowing, &request).await, None);
    }
    // The readable part is charged.
    let proxy = limited(&upstream, "openai", "unread: allow").await;
    let request = chat(r#"{"model": "gpt-4o", "top_p": NaN}"#);
    for n in 0..12 {
        assert_eq!(send(proxy.addr(), &request).await.0, if n < 5 { 200 } else { 429 });
    }
}

#[tokio::test]
async fn refusal_has_the_providers_error_format() {
    let upstream = Recorder::start().await;
    for (provider, kind) in [("openai", "invalid_request_error"), ("gemini", "INVALID_ARGUMENT")] {
        let proxy = limited(&upstream, provider, "").await;
        let request = chat(r#"{"model": "secret-a", "model": "secret-b"}"#);
        let (status, response) = send(proxy.addr(), &request).await;
        assert_eq!(status, 400);
        for part in ["unreadable_request", "`model`: ", "more than once", "serve.unread", kind] {
            assert!(response.contains(part), "{part}: {response}");
        }
        assert!(!response.contains("secret"), "{response}");
    }
}

/// Starts a proxy that admits five requests per day for `gpt-4o`, and any number for other models.
async fn limited(upstream: &Recorder, provider: &str, serve: &str) -> Proxy {
    let upstreams = [("up", upstream.addr, provider)];
    let quotas = "quotas: {gpt-4o: {rpd: 5, algorithm: fixed_window}}";
    Proxy::with(&upstreams, &format!("mode: reject\n{serve}"), quotas).await
}
