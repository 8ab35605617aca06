//! The effects of command-line arguments.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};

use super::rig::{Folder, chat, ended, line, lines, output_of, paceline, signal, squeezed};
use super::scripted::{Reply, Scripted};

#[tokio::test]
async fn results_are_in_completion_or_input_order() {
    for (ordered, expected) in [("", ["r1", "r2", "r0"]), ("--ordered", ["r0", "r1", "r2"])] {
        let folder = Folder::with(&lines(3));
        let server = Scripted::start(|call| match call.id.as_str() {
            "r0" => Reply::ok().after(Duration::from_millis(600)),
            "r2" => Reply::ok().after(Duration::from_millis(200)),
            _ => Reply::ok(),
        })
        .await;
        let arguments = format!("--base-url {} --rpm 100 {ordered}", server.base());
        assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(0));
        let lines = folder.lines();
        let ids: Vec<_> =
            lines.iter().map(|line| line["custom_id"].as_str().expect("an id")).collect();
        assert_eq!(ids, expected, "{ordered}");
    }
}

#[tokio::test]
async fn invalid_lines_continue_run_and_go_to_errors_file() {
    let mut all = lines(3);
    all.insert(1, "not json".to_owned());
    all.insert(2, "  ".to_owned());
    let folder = Folder::with(&all);
    let server = Scripted::start(|call| match call.id.as_str() {
        "r2" => Reply::error(400, "bad", "no"),
        _ => Reply::ok(),
    })
    .await;
    let arguments = format!("--base-url {} --rpm 100 --errors failed.jsonl", server.base());
    for sent in [3, 3] {
        let output = output_of(folder.batch(&arguments)).await;
        assert_eq!((output.code, server.received()), (Some(1), sent), "{output:?}");
        assert_eq!(folder.results().keys().collect::<Vec<_>>(), ["r0", "r1"]);
        let mut failed = folder.lines_of("failed.jsonl");
        failed.sort_by_key(|line| line["custom_id"].to_string());
        assert_eq!((failed.len(), &failed[0]["line"]), (2, &2.into()), "{failed:?}");
        assert_eq!(failed[0]["error"]["code"], "invalid_line");
        assert_eq!(failed[1]["error"]["code"], "http_400");
    }
}

#[tokio::test]
async fn dry_run_prints_estimates_and_writes_no_files() {
    let mut all: Vec<_> = (0..61).map(|n| line(&format!("r{n}"), chat("gpt-4o", 1_000))).collect();
    all.push(line("big", chat("gpt-4o", 70_000)));
    all.push("[]".to_owned());
    let folder = Folder::with(&all);
    let server = Scripted::start(|_| Reply::ok()).await;
    let arguments = format!(
        "--base-url {} --provider openai --tpm 60000 --dry-run --report r.json --errors e.jsonl",
        server.base()
    );
    let mut command = folder.batch(&arguments);
    command.env_remove("OPENAI_API_KEY");
    let output = output_of(command).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let row = output.stdout.lines().nth(1).expect("a row").split_whitespace().collect::<Vec<_>>();
    assert_eq!(row, ["gpt-4o", "61", "61,000"]);
    for part in ["1 invalid line\n", "1 request above the limits", "about 3s at these limits"] {
        assert!(output.stdout.contains(part), "{part} is missing from\n{}", output.stdout);
    }
    assert_eq!((folder.listing(), server.received()), (vec!["in.jsonl".to_owned()], 0));

    let unknown = format!("--base-url {} --dry-run", server.base());
    let output = super::rig::output_of(folder.batch(&unknown)).await;
    assert!(output.stdout.contains("62 requests for models without known limits"), "{output:?}");
}

#[tokio::test]
async fn only_report_is_printed_without_terminal() {
    let folder = Folder::with(&lines(3));
    let server = Scripted::start(|_| Reply::ok()).await;
    for quiet in ["", "--quiet"] {
        let output =
            output_of(folder.batch(&format!("--base-url {} --rpm 9 {quiet}", server.base()))).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
        assert_eq!(output.stdout.lines().count(), 16, "{}", output.stdout);
    }
}

#[tokio::test]
async fn finished_run_started_again_says_where_results_are() {
    let folder = Folder::with(&lines(3));
    let server = Scripted::start(|_| Reply::ok()).await;
    let arguments = format!("--base-url {} --rpm 9", server.base());
    for (end, notice) in [("", ""), ("", "already contains the results"), ("--quiet", "")] {
        let output = output_of(folder.batch(&format!("{arguments} {end}"))).await;
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stderr.contains(notice), "{output:?}");
        assert_eq!(output.stderr.is_empty(), notice.is_empty(), "{output:?}");
    }
    assert_eq!(server.received(), 3);
}

#[tokio::test]
async fn raw_bodies_go_to_endpoint_for_any_base_url_form() {
    for end in ["", "/", "/v1", "/v1/"] {
        let folder = Folder::with(&[r#"{"input": "a",  "model": "m"}"#.to_owned()]);
        let server = Scripted::start(|_| Reply::ok()).await;
        let base = server.base();
        let arguments = format!("--base-url {base}{end} --endpoint /v1/embeddings --rpm 9");
        assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(0));
        assert_eq!(server.calls()[0].path, "/v1/embeddings", "{end}");
        assert_eq!(folder.lines()[0]["custom_id"], "line-1");
    }
}

#[tokio::test]
async fn api_key_is_required_only_by_provider() {
    let folder = Folder::with(&lines(1));
    let mut command = folder.batch("--rpm 9");
    command.env("OPENAI_API_KEY", " ");
    let missing = output_of(command).await;
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("OPENAI_API_KEY: not set"), "{missing:?}");
    assert!(missing.stderr.contains("--api-key-env"), "{missing:?}");

    let server = Scripted::start(|_| Reply::ok()).await;
    let mut command = folder.batch(&format!("--base-url {} --rpm 9", server.base()));
    command.env_remove("OPENAI_API_KEY");
    assert_eq!(output_of(command).await.code, Some(0));
    assert_eq!(server.calls()[0].authorization, "");
}

#[tokio::test]
async fn simulated_provider_needs_no_key_and_no_network() {
    for provider in ["openai", "compatible"] {
        let folder = Folder::with(&lines(30));
        let mut command = folder.batch(&format!("--simulate --tpm 20000 --provider {provider}"));
        command.env_remove("OPENAI_API_KEY");
        // An unreachable proxy, which loopback addresses must bypass.
        command.env("HTTP_PROXY", "http://127.0.0.1:1").env("http_proxy", "http://127.0.0.1:1");
        let output = output_of(command).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
        assert_eq!(folder.results().len(), 30);
        assert!(squeezed(&output.stdout).contains("rate limited 0 "), "{}", output.stdout);
    }
}

#[tokio::test]
async fn simulated_provider_prints_counters_when_interrupted() {
    let mut command = paceline();
    command.args(["simulate", "--listen", "127.0.0.1:0", "--latency-ms", "1..5", "--rpm", "500"]);
    let mut server = command.spawn().expect("the command starts");
    let mut stdout = BufReader::new(server.stdout.take().expect("a pipe"));
    let mut received = String::new();
    stdout.read_line(&mut received).await.expect("the server prints its address");
    let base =
        received.trim().strip_prefix("listening on ").expect("the server prints its address");

    let folder = Folder::with(&lines(20));
    let batch = output_of(folder.batch(&format!("--base-url {base} --rpm 500"))).await;
    assert_eq!((batch.code, folder.results().len()), (Some(0), 20), "{batch:?}");

    signal(&server, "-INT");
    let mut counts = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stdout, &mut counts).await.expect("text");
    let counts: serde_json::Value = serde_json::from_str(&counts).expect("counts");
    assert_eq!((&counts["received"], &counts["refused"]), (&20.into(), &0.into()));
    assert_eq!(ended(server).await.code, Some(0));
}
