//! Inputs that have changed since an earlier run.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::rig::{Folder, KEY, chat, ended, line, lines, output_of};
use super::scripted::{Reply, Scripted};

/// Returns raw bodies, one per user.
fn raw(users: &[&str]) -> Vec<String> {
    users.iter().map(|user| json!({"model": "gpt-4o", "user": user}).to_string()).collect()
}

/// Starts a server that answers with the user of the request.
async fn echo() -> Scripted {
    Scripted::start(|call| {
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12});
        let message = json!({"role": "assistant", "content": call.id});
        let choices = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
        Reply::ok().body(json!({"choices": choices, "usage": usage}).to_string())
    })
    .await
}

/// Returns the id of each output line and the user in its response.
fn answered(folder: &Folder) -> Vec<(String, String)> {
    let user = |line: &Value| {
        let content = &line["response"]["body"]["choices"][0]["message"]["content"];
        content.as_str().unwrap_or_default().to_owned()
    };
    folder.results().iter().map(|(id, line)| (id.clone(), user(line))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, user)| ((*id).to_owned(), (*user).to_owned())).collect()
}

fn rewrite(folder: &Folder, lines: &[String]) {
    fs::write(folder.path("in.jsonl"), lines.join("\n")).expect("the input is written");
}

fn bytes(folder: &Folder) -> Vec<u8> {
    fs::read(folder.path("out.jsonl")).expect("the output exists")
}

#[tokio::test]
async fn line_inserted_above_raw_bodies_is_rejected() {
    let folder = Folder::with(&raw(&["a", "b", "c"]));
    let server = echo().await;
    let arguments = format!("--base-url {} --rpm 1000", server.base());
    assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(0));
    let before = bytes(&folder);

    rewrite(&folder, &raw(&["a", "new", "b", "c"]));
    let refused = output_of(folder.batch(&arguments)).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
    for part in [
        "in.jsonl: 2 lines have changed since",
        "line 2 (\"line-2\")",
        "line 3 (\"line-3\")",
        "identified by line number",
        "--changed resend",
        "nothing was sent",
    ] {
        assert!(refused.stderr.contains(part), "{part} is missing from {}", refused.stderr);
    }
    assert!(!refused.stderr.contains("line-1"), "{refused:?}");
    assert_eq!((server.received(), bytes(&folder)), (3, before));

    let resent = output_of(folder.batch(&format!("{arguments} --changed resend"))).await;
    assert_eq!((resent.code, server.received()), (Some(0), 6), "{resent:?}");
    let expected = [("line-1", "a"), ("line-2", "new"), ("line-3", "b"), ("line-4", "c")];
    assert_eq!(answered(&folder), pairs(&expected));
    let last = output_of(folder.batch(&arguments)).await;
    assert_eq!((last.code, server.received()), (Some(0), 6), "{last:?}");
}

#[tokio::test]
async fn changed_body_is_rejected_or_resent() {
    let folder = Folder::with(&lines(30));
    let server = echo().await;
    let arguments = format!("--base-url {} --rpm 1000 --errors failed.jsonl", server.base());
    assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(0));
    let mut changed = lines(30);
    for (n, line) in changed.iter_mut().enumerate().skip(10) {
        *line = line.replace("Why is", &format!("secret prompt {n}"));
    }
    rewrite(&folder, &changed);
    let refused = output_of(folder.batch(&arguments)).await;
    assert_eq!((refused.code, server.received()), (Some(2), 30), "{refused:?}");
    for part in ["20 lines have changed", "line 11 (\"r10\")", "line 15 (\"r14\") and 15 more"] {
        assert!(refused.stderr.contains(part), "{part} is missing from {}", refused.stderr);
    }
    for part in ["secret prompt", "line number"] {
        assert!(!refused.stderr.contains(part), "{part} is in {}", refused.stderr);
    }
    let resent = output_of(folder.batch(&format!("{arguments} --changed resend --ordered"))).await;
    assert_eq!((resent.code, server.received()), (Some(0), 50), "{resent:?}");
    assert_eq!(folder.results().len(), 30);
    assert_eq!(folder.lines()[10]["custom_id"], "r10");
}

#[tokio::test]
async fn request_of_another_endpoint_is_another_request() {
    let folder = Folder::with(&raw(&["a"]));
    let server = echo().await;
    let arguments = format!("--base-url {} --rpm 1000", server.base());
    assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(0));
    let refused = output_of(folder.batch(&format!("{arguments} --endpoint /v1/responses"))).await;
    assert_eq!((refused.code, server.received()), (Some(2), 1), "{refused:?}");
    assert!(refused.stderr.contains("1 line has changed"), "{refused:?}");
}

#[tokio::test]
async fn moved_lines_with_own_ids_are_unchanged() {
    let folder = Folder::with(&lines(3));
    let server = echo().await;
    let arguments = format!("--base-url {} --rpm 1000", server.base());
    assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(0));
    let mut moved = lines(3);
    moved.reverse();
    moved.insert(0, line("new", chat("gpt-4o", 100)));
    rewrite(&folder, &moved);
    let next = output_of(folder.batch(&arguments)).await;
    assert_eq!((next.code, server.received(), folder.results().len()), (Some(0), 4, 4), "{next:?}");
}

#[tokio::test]
async fn finished_line_now_invalid_is_rejected_or_replaced() {
    let folder = Folder::with(&lines(3));
    let server = echo().await;
    let arguments = format!("--base-url {} --rpm 1000", server.base());
    assert_eq!(output_of(folder.batch(&arguments)).await.code, Some(0));
    let mut broken = lines(3);
    broken[1] = broken[1].replace("POST", "GET");
    rewrite(&folder, &broken);
    let refused = output_of(folder.batch(&arguments)).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("line 2 (\"r1\")"), "{refused:?}");
    let resent = output_of(folder.batch(&format!("{arguments} --changed resend"))).await;
    assert_eq!((resent.code, server.received()), (Some(1), 3), "{resent:?}");
    assert_eq!(folder.results()["r1"]["error"]["code"], "invalid_line");
}

#[tokio::test]
async fn output_without_hashes_is_resumed_with_one_warning() {
    let folder = Folder::with(&raw(&["a", "b", "c"]));
    let server = echo().await;
    let arguments = format!("--base-url {} --rpm 1000", server.base());
    let earlier = ["line-1", "line-2"].map(|id| {
        format!(r#"{{"id":"batch_req_1","custom_id":"{id}","response":{{"status_code":200,"request_id":"r","body":{{}}}},"error":null}}"#) + "\n"
    });
    fs::write(folder.path("out.jsonl"), earlier.concat()).expect("the output is written");
    let resumed = output_of(folder.batch(&arguments)).await;
    assert_eq!((resumed.code, server.received()), (Some(0), 1), "{resumed:?}");
    let warnings: Vec<_> = resumed.stderr.lines().collect();
    assert_eq!(warnings.len(), 1, "{resumed:?}");
    assert!(warnings[0].contains("out.jsonl: 2 results without a request hash"), "{resumed:?}");
    assert_eq!(folder.results()["line-3"]["request_hash"].as_str().map(str::len), Some(32));

    // Lines with a hash are still compared.
    rewrite(&folder, &raw(&["new", "a", "b", "c"]));
    let refused = output_of(folder.batch(&arguments)).await;
    assert_eq!((refused.code, server.received()), (Some(2), 1), "{refused:?}");
    assert!(refused.stderr.contains("1 line has changed"), "{refused:?}");
}

/// Runs the command with this input on a pipe.
#[cfg(unix)]
async fn piped(folder: &Folder, rest: &str, lines: &[String]) -> super::rig::CommandOutput {
    let mut command = super::rig::paceline();
    command.current_dir(folder.path("")).env("OPENAI_API_KEY", KEY).stdin(Stdio::piped());
    command.args(["batch", "/dev/stdin", "-o", "out.jsonl"]).args(rest.split_whitespace());
    let mut child = command.spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A run that is rejected reads no input.
    let _ = stdin.write_all(lines.join("\n").as_bytes()).await;
    drop(stdin);
    ended(child).await
}

/// A pipe can be read only once, so its lines are compared while they are read.
#[cfg(unix)]
#[tokio::test]
async fn changed_line_from_pipe_stops_run() {
    let folder = Folder::with(&[]);
    let server = echo().await;
    let arguments = format!("--base-url {} --rpm 1000 --max-in-flight 1", server.base());
    let first = piped(&folder, &arguments, &raw(&["a", "b"])).await;
    assert_eq!((first.code, server.received()), (Some(0), 2), "{first:?}");
    let stopped = piped(&folder, &arguments, &raw(&["a", "new", "b"])).await;
    assert_eq!((stopped.code, server.received()), (Some(2), 2), "{stopped:?}");
    assert!(stopped.stderr.contains("line 2 (\"line-2\")"), "{stopped:?}");
    assert_eq!(answered(&folder), pairs(&[("line-1", "a"), ("line-2", "b")]));
    let resend = format!("{arguments} --changed resend");
    let refused = piped(&folder, &resend, &raw(&["a", "new", "b"])).await;
    assert_eq!((refused.code, server.received()), (Some(2), 2), "{refused:?}");
    assert!(refused.stderr.contains("reads the input twice, which a pipe can't"), "{refused:?}");
    assert_eq!(answered(&folder), pairs(&[("line-1", "a"), ("line-2", "b")]));
}
