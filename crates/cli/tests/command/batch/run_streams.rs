//! Responses that are event streams.

use serde_json::json;
use tollgate::provider::OPENAI;
use tollgate_cli::batch::Job;
use tollgate_simulate::Settings;

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
