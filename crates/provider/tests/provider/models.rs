//! Models read from the paths and bodies of requests.

use paceline_provider::{AZURE, BEDROCK, COMPATIBLE, OPENAI, Profile};

#[test]
fn model_is_read_from_body_path_or_deployment() {
    for (url, body, model) in [
        (
            "https://x.openai.azure.com/openai/deployments/mine/chat/completions?api-version=1",
            "{}",
            "mine",
        ),
        ("/openai/deployments/mine/chat/completions", r#"{"model":"gpt-4o"}"#, "mine"),
        ("/openai/v1/responses", r#"{"model":"mine"}"#, "mine"),
        ("/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "{}", "gemini-2.5-flash"),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@20250101:rawPredict",
            "{}",
            "claude-x@20250101",
        ),
        ("/model/us.amazon.nova-micro-v1%3A0/converse", "{}", "us.amazon.nova-micro-v1:0"),
        (
            "/model/arn:aws:bedrock:us-east-1:1:inference-profile/abc/invoke",
            "not JSON",
            "arn:aws:bedrock:us-east-1:1:inference-profile/abc",
        ),
    ] {
        let estimate = Profile::find(url).read_request(url, body.as_bytes());
        assert_eq!(estimate.model.as_deref(), Some(model), "{url}");
    }
    // The path takes precedence.
    for (path, body, model) in [
        ("/v1beta/models/m:embedContent", r#"{"model":"models/other"}"#, Some("m")),
        ("/v1beta/interactions", r#"{"model":"models/gemini-3"}"#, Some("gemini-3")),
        ("/v1/models/meta/llama-3/predictions", "{}", Some("meta/llama-3")),
        ("/serving-endpoints/mine/invocations", "{}", Some("mine")),
        ("/v1/engines/davinci/completions", "{}", Some("davinci")),
        ("/ml/v1/text/chat", r#"{"model_id":"ibm/granite"}"#, Some("ibm/granite")),
        ("/v1/models/ft:gpt-4o:org", "", None),
        ("/v1/chat/completions", r#"{"model":"ft:gpt-4o:org::id"}"#, Some("ft:gpt-4o:org::id")),
    ] {
        assert_eq!(
            COMPATIBLE.read_request(path, body.as_bytes()).model.as_deref(),
            model,
            "{path}"
        );
    }
    assert_eq!(OPENAI.read_request("/v1/models/gpt-4o", b"").model, None, "requests no tokens");
    assert_eq!(BEDROCK.read_request("/model/%ff/converse", b"{}").model, None);
}

/// Azure has quotas per deployment.
#[test]
fn azure_deployment_in_path_is_the_model_of_every_operation() {
    let form = "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nother\r\n--x--\r\n";
    let json = r#"{"model":"other","messages":[],"input":"x","prompt":"x"}"#;
    for (operation, body) in [
        ("chat/completions", json),
        ("completions", json),
        ("responses", json),
        ("embeddings", json),
        ("images/generations", json),
        ("images/edits", form),
        ("audio/speech", json),
        ("audio/transcriptions", form),
        ("audio/translations", "model=other&file=x"),
        ("extensions/chat/completions", json),
        ("chat/completions", "not JSON"),
        ("chat/completions", ""),
    ] {
        for path in
            ["/openai/deployments/my%2Down", "/openai/Deployments/my-own", "/gw/deployments/my-own"]
        {
            let url = format!("https://x.openai.azure.com{path}/{operation}?api-version=1");
            for profile in [AZURE, COMPATIBLE] {
                let model = profile.read_request(&url, body.as_bytes()).model;
                assert_eq!(model.as_deref(), Some("my-own"), "{url}");
                assert_eq!(profile.read_head(&url, 9).model, model, "{url}");
            }
        }
        let url = format!("https://x.openai.azure.com/openai/v1/{operation}");
        let stated = AZURE.read_request(&url, body.as_bytes()).model;
        assert_eq!(stated.as_deref(), body.contains("other").then_some("other"), "{url}");
    }
}
