//! Responses that are event streams.

use paceline::provider::OPENAI;
use paceline_cli::batch::{Job, Stop};
use paceline_config::Config;
use paceline_simulate::Settings;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::rig::{Folder, chat, line, run, simulated};

#[tokio::test]
async fn stream_is_stored_as_text_with_usage_counted() {
    let streamed = |n: usize| {
        let mut body = chat("gpt-4o", 100);
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        line(&format!("r{n}"), body)
    };
    let folder = Folder::with(&(0..6).map(streamed).collect::<Vec<_>>());
    let (server, base) = simulated(Settings::default()).await;
    let ended = run(&Job { profile: OPENAI, ..folder.job(&base) }).await;
    let stats = server.shutdown().await.expect("the server shuts down").total;
    let report = &ended.report;
    assert_eq!((report.succeeded, report.output_tokens), (6, 30));
    assert_eq!(
        (report.input_tokens, report.charged_tokens),
        (stats.input_tokens, stats.charged_tokens)
    );
    for line in folder.results().values() {
        let body = line["response"]["body"].as_str().expect("the body is a string");
        assert!(body.starts_with("data: {") && body.ends_with("data: [DONE]\n\n"), "{body}");
        assert!(body.contains("\"completion_tokens\":5"), "{body}");
    }
}

/// A provider stops a moment after the connection is closed.
#[tokio::test]
async fn stream_that_is_cut_off_is_charged_for_what_arrived() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
        let chunk = json!({"object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"content": "Hello"}}]});
        for answer in [format!("{head}data: {chunk}\n\n"), head.to_owned()] {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut buf = [0; 4096];
            let _ = stream.read(&mut buf).await.expect("a request");
            stream.write_all(answer.as_bytes()).await.expect("a response");
        }
    });
    let config = Config::parse("quotas: {gpt-4o: {usd_per_day: 100}}").expect("a configuration");
    // $1.60 at most, of which the first stream costs a cent and the second, without an event, all.
    for (name, expected) in [("first", 1_000..100_000), ("second", 1_500_000..2_000_000)] {
        let mut body = chat("gpt-4o", 160_000);
        body["stream"] = json!(true);
        let folder = Folder::with(&[line(name, body)]);
        let job = Job { profile: OPENAI, config: Some(config.clone()), ..folder.job(&base) };
        let limiter = job.limiter().expect("a limiter");
        let ended = job.run_with(limiter.clone(), &Stop::new()).await.expect("the job runs");
        assert_eq!((ended.report.failed, ended.report.succeeded), (1, 0), "{name}");
        assert_eq!(folder.results()[name]["error"]["code"], "connection", "{name}");
        let spent = limiter.stats("gpt-4o").limits[0].used;
        assert!(expected.contains(&spent), "{name}: {spent}");
    }
}
