//! The log of requests that wait for long.

use std::fs::File;

use crate::cli::rig::TestHome;
use crate::serve::process::Served;
use tollgate_testing::upstream::{TestUpstream, chat, http};

// Reading the log blocks a thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wait_above_30_s_is_logged_once_per_key() {
    let mut up = TestUpstream::start().await;
    let config = format!(
        "quotas: {{gpt-4o: {{rpm: 1}}, gpt-4.1: {{rpm: 1}}, gpt-5: {{rpm: 60000}}}}\n\
         serve:\n  allow_anonymous: true\n  upstreams: \
         {{up: {{base_url: 'http://{}', provider: openai}}}}\n",
        up.addr
    );
    let home = TestHome::new();
    let log = File::create(home.path("log")).expect("a file");
    let served = Served::start_in(home, &config, |command| {
        command.stderr(log);
    });
    let url = served.url("/up/v1/chat/completions");
    let send = |model| {
        let request = http().post(&url).header("content-type", "application/json");
        tokio::spawn(request.body(chat(model)).send())
    };
    for model in ["gpt-4o", "gpt-4.1"] {
        let sent = send(model);
        up.request().await.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
    let _waiting = ["gpt-4o", "gpt-4o", "gpt-4o", "gpt-4.1"].map(send);
    let keys = [r#""key":"gpt-4o""#, r#""key":"gpt-4.1""#];
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
}
