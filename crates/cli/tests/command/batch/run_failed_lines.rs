//! Reports of failed lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::rig::{Folder, KEY, lines, output_of, squeezed};
use super::scripted::{Reply, Scripted};

fn report(folder: &Folder) -> Value {
    let text = std::fs::read(folder.path("r.json")).expect("the report exists");
    serde_json::from_slice(&text).expect("the report is JSON")
}

#[tokio::test]
async fn failures_are_counted_by_cause_with_one_example_each() {
    let mut all = lines(6);
    all.push("not json".to_owned());
    let folder = Folder::with(&all);
    let server = Scripted::start(|call| match call.id.as_str() {
        "r1" | "r3" => Reply::error(400, "invalid_value", "max_tokens is too large\n\u{1b}[2J"),
        "r2" => Reply::error(404, "model_not_found", "no such model"),
        _ => Reply::ok(),
    })
    .await;
    let arguments =
        format!("--base-url {} --rpm 1000 --max-in-flight 1 --report r.json", server.base());
    let failed = output_of(folder.batch(&arguments)).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let text = squeezed(&failed.stdout);
    for part in [
        "failures by cause",
        r#"http_400 2 "r1": max_tokens is too large\n\u{1b}[2J"#,
        r#"http_404 1 "r2": no such model"#,
        r#"invalid_line 1 "line-7": line 7: not a JSON object"#,
    ] {
        assert!(text.contains(part), "{part} is missing from\n{}", failed.stdout);
    }
    let failures = &report(&folder)["failures"];
    let of = |index: usize| (&failures[index]["code"], &failures[index]["count"]);
    assert_eq!(of(0), (&"http_400".into(), &2.into()), "{failures}");
    assert_eq!(failures.as_array().map(Vec::len), Some(3), "{failures}");
    assert_eq!(failures[0]["example"]["custom_id"], "r1");

    let again = output_of(folder.batch(&arguments)).await;
    assert_eq!((again.code, server.received()), (Some(1), 6), "{again:?}");
    let text = squeezed(&again.stdout);
    assert!(text.contains("skipped 6 3 failed in an earlier run"), "{}", again.stdout);
    assert!(!text.contains("finished"), "{}", again.stdout);
    let report = report(&folder);
    assert_eq!((&report["skipped"], &report["failed_earlier"]), (&6.into(), &3.into()));
}

#[tokio::test]
async fn example_quoting_prompt_or_key_is_withheld() {
    let folder = Folder::with(&lines(3));
    let server = Scripted::start(|call| match call.id.as_str() {
        "r0" => Reply::error(400, "bad", "cannot answer 'the sky blue in the day': no"),
        "r1" => {
            Reply::error(200, "content_policy_violation", &format!("not {}", call.authorization))
        }
        _ => Reply::error(422, "bad", &format!("{} is refused", call.authorization)),
    })
    .await;
    let arguments =
        format!("--base-url {} --provider openai --rpm 1000 --report r.json", server.base());
    let failed = output_of(folder.batch(&arguments)).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let output = format!("{}{}{}", failed.stdout, failed.stderr, report(&folder));
    assert!(!output.contains("sky blue") && !output.contains(KEY), "{output}");
    assert!(server.calls().iter().all(|call| call.authorization.contains(KEY)));
    assert!(!folder.everything_written().contains(KEY), "{:?}", folder.results());
    assert!(
        output.contains("withheld, since it quotes the request; see its line in the output"),
        "{output}"
    );
    assert_eq!(
        folder.results()["r0"]["error"]["message"],
        "cannot answer 'the sky blue in the day': no"
    );
}

#[tokio::test]
async fn permanently_failed_lines_are_resent_on_request() {
    let folder = Folder::with(&lines(5));
    let fixed = Arc::new(AtomicBool::new(false));
    let open = Arc::clone(&fixed);
    let server = Scripted::start(move |call| match call.id.as_str() {
        "r1" | "r3" if !open.load(Ordering::Relaxed) => Reply::error(403, "region", "not here"),
        _ => Reply::ok(),
    })
    .await;
    for errors in ["", " --errors failed.jsonl"] {
        let _ = std::fs::remove_file(folder.path("out.jsonl"));
        fixed.store(false, Ordering::Relaxed);
        let arguments = format!("--base-url {} --rpm 1000 --report r.json{errors}", server.base());
        assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(1));
        fixed.store(true, Ordering::Relaxed);
        let before = server.received();
        assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(1), "they failed earlier");
        let retried = output_of(folder.batch(&format!("{arguments} --retry-failed"))).await;
        assert_eq!((retried.code, server.received()), (Some(0), before + 2), "{retried:?}");
        assert_eq!(report(&folder)["failed_earlier"], 0);
        let results = folder.results();
        assert_eq!(results.len(), 5);
        assert!(results.values().all(|line| line["error"].is_null()));
        assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(0));
    }
}
