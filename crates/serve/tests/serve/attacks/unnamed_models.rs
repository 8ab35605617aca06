//! Requests that name no model, though they run one: the provider's default, which has limits of its own.

use super::{Answering, assert_refused, naming, send, used};
use crate::proxy::rig::{Proxy, http};

/// Posts a body: JSON, or the form of parts with the boundary `B`.
fn post(proxy: &Proxy, path: &str, body: &str) -> reqwest::RequestBuilder {
    let kind = match body.starts_with("--B") {
        true => "multipart/form-data; boundary=B",
        false => "application/json",
    };
    http().post(proxy.url(&format!("/up{path}"))).header("content-type", kind).body(body.to_owned())
}

#[tokio::test]
async fn request_without_a_model_is_refused() {
    let up = Answering::start().await;
    let messages = r#""messages": [{"role": "user", "content": "Hi"}]"#;
    let bodies = [
        format!("{{{messages}}}"),
        format!(r#"{{"model": null, {messages}}}"#),
        format!(r#"{{"model": "", {messages}}}"#),
        format!(r#"{{"model": "  ", {messages}}}"#),
        format!(r#"{{"model": "models/", {messages}}}"#),
        format!(r#"{{"models": ["m"], {messages}}}"#),
        "{}".to_owned(),
        String::new(),
    ];
    let paths = [
        ("vllm", "/v1/chat/completions"),
        ("vllm", "/v1/completions"),
        ("vllm", "/v1/embeddings"),
        ("vllm", "/v1/responses"),
        ("vllm", "/rerank"),
        ("vllm", "/v1/Chat/Completions"),
        ("vllm", "//v1/chat%2Fcompletions/"),
        ("vllm", "/v1/images/generations"),
        ("vllm", "/v1/moderations"),
        ("compatible", "/v1/chat/completions"),
        ("llama-cpp", "/v1/chat/completions"),
        ("openai", "/v1/chat/completions"),
        ("openai", "/v1/responses"),
        ("openai", "/v1/audio/speech"),
        ("openai", "/v1/images/generations"),
        ("anthropic", "/v1/messages"),
        ("azure", "/openai/v1/chat/completions"),
        ("ollama", "/api/chat"),
        ("ollama", "/api/generate"),
        ("cohere", "/v2/chat"),
        ("openrouter", "/api/v1/chat/completions"),
    ];
    for (provider, path) in paths {
        let proxy = Proxy::with(&[("up", up.addr, provider)], "", "").await;
        for body in &bodies {
            if provider == "openrouter" && body.contains("models\"") {
                continue;
            }
            let case = format!("{provider} {path} {body}");
            assert_refused(post(&proxy, path, body), &["`model`", "name a model"], &case).await;
        }
    }
    let proxy = Proxy::with(&[("up", up.addr, "vllm")], "", "").await;
    for value in ["", " "] {
        let form = format!(
            "--B\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\n{value}\r\n--B--\r\n"
        );
        let case = format!("form {value:?}");
        let form = post(&proxy, "/v1/audio/transcriptions", &form);
        assert_refused(form, &["`model`", "name a model"], &case).await;
    }
    assert_eq!(up.requests(), 0);
}

#[tokio::test]
async fn default_model_of_an_upstream_counts() {
    let up = Answering::start().await;
    let more = "quotas: {house: {rpd: 3}, m: {rpd: 9}}\nserve:\n  listen: '127.0.0.1:0'\n  allow_anonymous: true\n  \
                mode: reject\n  upstreams:\n";
    let upstream = format!(
        "    up: {{base_url: 'http://{}', provider: vllm, default_model: house}}\n",
        up.addr
    );
    let proxy = Proxy::of(&format!("{more}{upstream}")).await;
    let form = "--B\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx\r\n--B--\r\n";
    for (path, body) in [
        ("/v1/chat/completions", r#"{"messages": []}"#),
        ("/v1/completions", r#"{"model": "", "prompt": "Hi"}"#),
        ("/v1/audio/transcriptions", form),
    ] {
        assert_eq!(send(post(&proxy, path, body)).await.0, 200, "{path}");
    }
    assert_eq!(send(post(&proxy, "/v1/chat/completions", "{}")).await.0, 429);
    assert_eq!(send(post(&proxy, "/v1/chat/completions", &naming("m"))).await.0, 200);
    assert_eq!(send(post(&proxy, "/v1/files", form)).await.0, 200);
    assert_eq!(used(&proxy, &["house", "m", "unknown"]), [3, 1, 0]);
}

#[tokio::test]
async fn documented_default_of_a_provider_counts() {
    let up = Answering::start().await;
    for (provider, path, body, model) in [
        ("openai", "/v1/moderations", r#"{"input": "Hi"}"#, "omni-moderation-latest"),
        (
            "openai",
            "/v1/moderations",
            r#"{"model": null, "input": "Hi"}"#,
            "omni-moderation-latest",
        ),
        (
            "openai",
            "/v1/images/edits",
            r#"{"model": "", "prompt": "Hi"}"#,
            "gpt-image-2.5-sunburst",
        ),
        (
            "openai",
            "/v1/images/edits",
            "--B\r\ncontent-disposition: form-data; name=\"prompt\"\r\n\r\nHi\r\n--B--\r\n",
            "gpt-image-2.5-sunburst",
        ),
        ("cohere", "/v1/chat", r#"{"message": "Hi"}"#, "command-r-plus-08-2024"),
        (
            "openrouter",
            "/api/v1/chat/completions",
            r#"{"models": ["a/m", "b/m"], "messages": []}"#,
            "a/m",
        ),
        // The prompt that OpenAI keeps has a model of its own, which the request doesn't show.
        ("openai", "/v1/responses", r#"{"prompt": {"id": "pmpt_1"}, "input": "Hi"}"#, "unknown"),
    ] {
        let quotas = format!("quotas: {{'{model}': {{rpd: 1}}}}");
        let proxy = Proxy::with(&[("up", up.addr, provider)], "mode: reject", &quotas).await;
        let case = format!("{provider} {path} {body}");
        assert_eq!(send(post(&proxy, path, body)).await.0, 200, "{case}");
        assert_eq!(send(post(&proxy, path, body)).await.0, 429, "{case}");
    }
}

#[tokio::test]
async fn paths_without_a_model_are_forwarded() {
    let up = Answering::start().await;
    let paths = [
        "/v1/files",
        "/v1/files/f",
        "/v1/files/f/content",
        "/v1/uploads",
        "/v1/uploads/u/parts",
        "/v1/uploads/u/complete",
        "/v1/uploads/u/cancel",
        "/v1/batches",
        "/v1/batches/b",
        "/v1/batches/b/cancel",
        "/v1/models",
        "/v1/vector_stores",
        "/v1/vector_stores/v",
        "/v1/vector_stores/v/file_batches",
        "/v1/containers",
        "/v1/containers/c",
        "/v1/datasets",
        "/v1/datasets/d",
        "/v1/documents",
        "/v1/documents/d",
        "/v1/skills",
        "/v1/skills/s",
        "/v1/skills/s/versions",
        "/v1/voices",
        "/v1/voices/v",
        "/api/blobs/sha256:00",
    ];
    assert_eq!(paths.len(), 26);
    let others = [
        "/v1/threads",
        "/v1/threads/t/runs",
        "/v1/threads/t/messages",
        "/v1/conversations",
        "/v1/messages/batches",
        "/v1/messages/count_tokens",
        "/v1/responses/r/cancel",
        "/v1/fine_tuning/jobs",
        "/v1/vector_stores/v/search",
        "/completion",
    ];
    for provider in ["openai", "vllm"] {
        let proxy = Proxy::with(&[("up", up.addr, provider)], "", "").await;
        for path in paths {
            for body in ["{}", r#"{"model": ""}"#, "\0not JSON"] {
                assert_eq!(
                    send(post(&proxy, path, body)).await.0,
                    200,
                    "{provider} {path} {body:?}"
                );
            }
        }
        for path in others {
            assert_eq!(send(post(&proxy, path, "{}")).await.0, 200, "{provider} {path}");
        }
    }
}
