//! The log of requests that wait for long, and of refusals that stop a key.

use std::fs::File;

use crate::cli::rig::TestHome;
use crate::serve::process::Served;
use paceline_testing::upstream::{TestUpstream, chat, http};

/// Starts a server in front of an upstream, whose log is the file `log`.
fn serve_logged(up: &TestUpstream, quotas: &str, mode: &str) -> Served {
    let config = format!(
        "quotas: {quotas}\nwaiting: {{max_wait: 2h}}\nserve:\n  allow_anonymous: true\n  mode: {mode}\n  upstreams: \
         {{up: {{base_url: 'http://{}', provider: openai}}}}\n",
        up.addr
    );
    let home = TestHome::new();
    let log = File::create(home.path("log")).expect("a file");
    Served::start_in(home, &config, |command| {
        command.stderr(log);
    })
}

// Reading the log blocks a thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wait_above_30_s_is_logged_once_per_key() {
    let mut up = TestUpstream::start().await;
    let budget = "{limits: [{dimension: usd, limit: 0.009, window: 1h}]}";
    let quotas = format!(
        "{{gpt-4o: {{rpm: 1}}, 'gpt-4.*': {{rpm: 1}}, gpt-4o-mini: {budget}, gpt-5: {{rpm: 60000}}}}"
    );
    let served = serve_logged(&up, &quotas, "wait");
    let url = served.url("/up/v1/chat/completions");
    let send = |model| {
        let request = http().post(&url).header("content-type", "application/json");
        tokio::spawn(request.body(chat(model)).send())
    };
    // Costs $0.0098.
    let usage = r#"{"usage": {"prompt_tokens": 9, "completion_tokens": 16384}}"#;
    for model in ["gpt-4o", "gpt-4.1", "gpt-4o-mini"] {
        let sent = send(model);
        up.request().await.answer("200 OK", "", usage).await;
        let answer = sent.await.unwrap().unwrap();
        assert_eq!(answer.status(), 200);
        answer.text().await.unwrap();
    }
    let _waiting =
        ["gpt-4o", "gpt-4o", "gpt-4o", "gpt-4.1", "gpt-4o-mini", "gpt-4o-mini"].map(send);
    let keys = [r#""key":"gpt-4o""#, r#""key":"gpt-4.*""#, r#""key":"gpt-4o-mini""#];
    keys.iter().for_each(|key| drop(served.read_with("log", key)));
    // All requests that were sent before this one is answered have been read.
    for _ in 0..3 {
        let sent = send("gpt-5");
        up.request().await.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
    let log = served.read_with("log", "waits for longer than 30 s");
    for key in keys {
        let lines =
            log.lines().filter(|line| line.contains("waits for longer") && line.contains(key));
        assert_eq!(lines.count(), 1, "{log}");
    }
    assert!(!log.contains(r#""key":"gpt-5""#), "{log}");
    assert!(!log.contains("gpt-4.1"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_that_stops_a_key_is_logged_in_the_providers_words() {
    let mut up = TestUpstream::start().await;
    let quotas = "{gpt-4o: {rpm: 60000}, 'gpt-5*': {rpm: 60000}}";
    let served = serve_logged(&up, quotas, "reject");
    let spent = r#"{"error": {"message": "You exceeded your current quota, please check your plan and billing details.", "type": "insufficient_quota", "code": "insufficient_quota"}}"#;
    let window = r#"{"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached", "resets_in_seconds": 602705}}"#;
    // The requests that are in flight at the same time, one group after the other.
    for (model, body, groups, key, words) in [
        ("gpt-4o", spent, &[1, 1, 1][..], "gpt-4o", "You exceeded your current quota"),
        ("gpt-5-codex", window, &[3], "gpt-5*", "The usage limit has been reached"),
    ] {
        for group in groups {
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for _ in 0..*group {
                let request = http().post(served.url("/up/v1/chat/completions"));
                let request = request.header("content-type", "application/json").body(chat(model));
                sent.push(tokio::spawn(request.send()));
                received.push(up.request().await);
            }
            for request in received {
                request.answer("429 Too Many Requests", "", body).await;
            }
            for sent in sent {
                assert_eq!(sent.await.unwrap().unwrap().status(), 429);
            }
        }
        let log = served.read_with("log", words);
        let is_of_key = |line: &&str| line.contains("paceline::refusals") && line.contains(words);
        let lines: Vec<_> = log.lines().filter(is_of_key).collect();
        assert_eq!(lines.len(), 1, "{log}");
        assert!(lines[0].contains(&format!(r#""key":"{key}""#)), "{log}");
        assert!(!log.contains("gpt-5-codex"), "{log}");
    }
}
