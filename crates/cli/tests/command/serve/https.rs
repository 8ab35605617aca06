//! Upstream certificates: trusted CAs, and errors for untrusted certificates.

use axum::http::{Response, Version};
use serde_json::Value;

use super::tls::{Ca, TlsUpstream, params, serve};
use crate::cli::rig::TestHome;
use crate::serve::process::Served;
use paceline_testing::upstream::{TestUpstream, chat, http, json};

/// Returns a chat request through this upstream.
fn through(served: &Served, name: &str) -> reqwest::RequestBuilder {
    let url = format!("http://{}/{name}/v1/chat/completions", served.addr());
    http().post(url).header("content-type", "application/json").body(chat("gpt-4o"))
}

/// Sends a request to an untrusted upstream and returns the problem document.
async fn distrusted(served: &Served, name: &str) -> Value {
    let response = through(served, name).send().await.expect("a response");
    assert_eq!(response.status(), 502, "{name}");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let problem = json(response).await;
    assert_eq!(problem["code"], "upstream_untrusted", "{problem}");
    problem
}

#[tokio::test]
async fn ssl_cert_file_sets_trusted_ca() {
    let ca = Ca::new("ours");
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let mut up = TlsUpstream::start(ca.certify("127.0.0.1"), protocols).await;
        let served = ca.trusted(&[("up", up.url() + "/llm")], "");
        let sent = tokio::spawn(through(&served, "up").send());
        let request = up.request().await;
        assert_eq!(
            (request.parts.version, request.parts.uri.path()),
            (version, "/llm/v1/chat/completions")
        );
        request.answer(Response::new("{}".into()));
        assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), "{}");
    }
}

#[tokio::test]
async fn untrusted_upstream_gets_no_request_and_no_charge() {
    let (ca, stranger) = (Ca::new("ours"), Ca::new("a stranger"));
    let mut expired = params("127.0.0.1");
    expired.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let mut early = params("127.0.0.1");
    early.not_before = rcgen::date_time_ymd(4000, 1, 1);
    let cases = [
        ("stranger", stranger.certify("127.0.0.1"), "SSL_CERT_FILE"),
        ("namesake", Ca::new("ours").certify("127.0.0.1"), "SSL_CERT_FILE"),
        ("elsewhere", ca.certify("gateway.example"), "another host; change `base_url`"),
        ("expired", ca.sign(&expired), "an expired certificate"),
        ("early", ca.sign(&early), "is not yet valid"),
        ("itself", ca.own_certificate(), "an invalid certificate: "),
    ];
    let (mut ups, mut urls, mut details) = (Vec::new(), Vec::new(), Vec::new());
    for (name, config, expected) in cases {
        let up = TlsUpstream::start(config, &["h2"]).await;
        urls.push((name, up.url() + "/hush-hush"));
        details.push((name, expected));
        ups.push(up);
    }
    let mut up = TlsUpstream::start(ca.certify("127.0.0.1"), &["h2"]).await;
    urls.push(("up", up.url()));
    let more = "quotas: {gpt-4o: {rpd: 1}}\nmargin: {percent: 0, lag: 0s}";
    let served = ca.trusted(&urls, more);

    for (name, expected) in details {
        let problem = distrusted(&served, name).await;
        let detail = problem["detail"].as_str().expect("a text");
        assert!(detail.starts_with(&format!("the upstream `{name}` ")), "{detail}");
        assert!(detail.contains(expected), "{detail}");
        assert_eq!(problem["error"]["message"], format!("paceline: {detail}"));
        for secret in ["hush", "127.0.0.1", "gateway.example"] {
            assert!(!problem.to_string().contains(secret), "{problem}");
        }
    }
    assert!(ups.iter_mut().all(TlsUpstream::is_idle));
    let log = served.read_with("log", "gateway.example");
    assert!(!log.contains("hush"), "{log}");

    // The quota of the key is unused.
    let sent = tokio::spawn(through(&served, "up").send());
    up.request().await.answer(Response::new("{}".into()));
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    assert_eq!(through(&served, "up").send().await.unwrap().status(), 429);
}

#[tokio::test]
async fn plain_upstream_behind_https_url_gives_hint() {
    let up = paceline_testing::upstream::listen(|mut stream| {
        Box::pin(async move {
            use tokio::io::AsyncWriteExt;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        })
    })
    .await;
    let served = Ca::new("ours").trusted(&[("up", format!("https://{up}"))], "");
    let problem = distrusted(&served, "up").await;
    assert!(problem["detail"].as_str().unwrap().contains("to `http:`"), "{problem}");
}

#[tokio::test]
async fn server_without_ca_warns_and_reaches_plain_upstream() {
    let secure = TlsUpstream::start(Ca::new("ours").certify("127.0.0.1"), &["h2"]).await;
    let mut plain = TestUpstream::start().await;
    let upstreams = [("up", secure.url()), ("plain", format!("http://{}", plain.addr))];
    let served = serve(TestHome::new(), &upstreams, "", "/nowhere/ca.pem");
    served.read_with("log", "no trusted root certificates found");
    let problem = distrusted(&served, "up").await;
    assert!(problem["detail"].as_str().unwrap().contains("SSL_CERT_FILE"), "{problem}");
    let sent = tokio::spawn(through(&served, "plain").send());
    plain.request().await.answer("200 OK", "", "{}").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}
