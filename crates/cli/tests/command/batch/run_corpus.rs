//! Recorded requests against the simulated provider.

use std::path::Path;

use paceline::provider::OPENAI;
use paceline::quota::Quota;
use paceline_cli::batch::Job;
use paceline_simulate::Settings;

use super::har::har_to_batch::convert;
use super::rig::{Folder, run, simulated};

#[tokio::test]
async fn recorded_request_succeeds_or_fails_with_reason() {
    let Ok(corpus) = std::env::var("PACELINE_CORPUS") else {
        eprintln!("skipped: PACELINE_CORPUS is not set");
        return;
    };
    let path = Path::new(&corpus).join("openai.har");
    let har = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let recorded = convert(har.as_bytes(), "openai").expect("a valid HAR file").lines;
    let folder = Folder::with(&recorded);
    let (server, base) = simulated(Settings::default().with_tpm(10_000_000)).await;
    let quota = Quota::new().tpm(10_000_000);
    let ended = run(&Job { quota, profile: OPENAI, ..folder.job(&base) }).await;
    let results = folder.results();
    assert_eq!(results.len(), recorded.len());
    assert_eq!((ended.report.rate_limited, server.stats().total.refused), (0, 0));
    let (answered, refused): (Vec<_>, Vec<_>) =
        results.values().partition(|line| line["error"].is_null());
    assert!(answered.len() > 300, "only {} of {}", answered.len(), results.len());
    assert!(answered.iter().all(|line| line["response"]["status_code"] == 200));
    for line in refused {
        let (code, message) = (&line["error"]["code"], &line["error"]["message"]);
        assert!(code == "http_404" || code == "http_400", "{line}");
        assert!(message.as_str().is_some_and(|text| text.len() > 10), "{line}");
    }
}
