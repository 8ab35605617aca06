//! Upstreams that refuse: each kind of refusal stops only what it speaks of.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::rig::{Proxy, TestUpstream, json};

/// Returns the reported answer of this name: its status, header fields and body.
fn reported(name: &str) -> (String, String, String) {
    let rows = include_str!("../../../../../tests/data/refusals.jsonl").lines();
    let rows = rows.map(|row| serde_json::from_str::<Value>(row).unwrap());
    let row = rows.into_iter().find(|row| row["name"] == name).unwrap();
    let headers = row["headers"].as_object().unwrap().iter();
    let fields = headers.map(|(name, value)| format!("{name}: {}\r\n", value.as_str().unwrap()));
    let body = row["body"].as_str().unwrap().to_owned();
    (format!("{} Refused", row["status"]), fields.collect(), body)
}

/// Answers all requests: those to `refused`, or all if it is empty, with the reported answer, others with a 200. Returns
/// the number of requests so far.
fn answer(mut up: TestUpstream, refused: &'static str, name: &str) -> Arc<AtomicUsize> {
    let (status, fields, body) = reported(name);
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    tokio::spawn(async move {
        loop {
            let request = up.request().await;
            count.fetch_add(1, Ordering::Relaxed);
            match String::from_utf8_lossy(&request.body).contains(refused) {
                true => request.answer(&status, &fields, &body).await,
                false => request.answer("200 OK", "", "{}").await,
            }
        }
    });
    received
}

async fn send(proxy: &Proxy, text: &str) -> reqwest::Response {
    let body = format!(r#"{{"model":"gpt-4o","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    proxy.chat("gpt-4o").body(body).send().await.unwrap()
}

/// B is larger than the deployment's limit; Azure states a day for it.
#[tokio::test]
async fn stray_delay_of_a_day_closes_no_deployment() {
    for retry in ["", "retry: {attempts: 2}"] {
        let up = TestUpstream::start().await;
        let (addr, proxied) = (up.addr, answer(up, "too long", "az-86400"));
        let quotas = format!("quotas: {{gpt-4o: {{rpm: 6000}}}}\n{retry}");
        let proxy = Proxy::with(&[("up", addr, "azure")], "", &quotas).await;
        assert_eq!(send(&proxy, "a").await.status(), 200);
        let others = async { (send(&proxy, "c").await.status(), send(&proxy, "d").await.status()) };
        let all = async { tokio::join!(send(&proxy, "too long"), others) };
        let (b, (c, d)) = tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
        assert_eq!(
            (b.status(), c, d),
            (429.try_into().unwrap(), 200.try_into().unwrap(), 200.try_into().unwrap())
        );
        assert!(json(b).await["error"]["message"].as_str().unwrap().contains("86400"));
        assert!((4..=5).contains(&proxied.load(Ordering::Relaxed)));
    }
}

#[tokio::test]
async fn refused_account_is_answered_in_the_providers_words() {
    for (provider, name, words, kind) in [
        ("openai", "oai-insuff", "You exceeded your current quota", "insufficient_quota"),
        ("anthropic", "ant-400-credit", "Your credit balance is too low", "invalid_request_error"),
    ] {
        let up = TestUpstream::start().await;
        let (addr, received) = (up.addr, answer(up, "", name));
        let more = "quotas: {gpt-4o: {rpm: 6000}}\nretry: {attempts: 3}";
        let proxy = Proxy::with(&[("up", addr, provider)], "", more).await;
        let mut statuses = Vec::new();
        for _ in 0..10 {
            statuses.push(send(&proxy, "hi").await.status());
        }
        assert!(statuses.iter().all(|status| *status == statuses[0]), "{statuses:?}");
        assert_eq!(received.load(Ordering::Relaxed), 3, "{name}");
        let response = send(&proxy, "hi").await;
        assert_eq!(response.headers()["x-should-retry"], "false");
        let problem = json(response).await;
        assert_eq!(
            (&problem["code"], &problem["error"]["type"]),
            (&"account_refused".into(), &kind.into())
        );
        assert!(problem["error"]["message"].as_str().unwrap().starts_with(words), "{problem}");
    }
}

#[tokio::test]
async fn attempts_of_a_request_are_bounded() {
    let up = TestUpstream::start().await;
    let (addr, received) = (up.addr, answer(up, "", "mis-1300"));
    let proxy = Proxy::to(addr, "retry: {attempts: 2}").await;
    assert_eq!(send(&proxy, "hi").await.status(), 429);
    assert_eq!(received.load(Ordering::Relaxed), 2);
}
