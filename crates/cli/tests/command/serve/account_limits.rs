//! Limits that a provider states by its API.

use super::process::Served;
use crate::cli::rig::TestHome;
use paceline_testing::upstream::{TestUpstream, http, json};

#[tokio::test]
async fn limits_of_account_are_read_at_start_with_the_admin_key() {
    let mut up = TestUpstream::start().await;
    let config = format!(
        "providers: [{{name: anthropic, base_url: 'http://{}', limits_from: provider}}]",
        up.addr
    );
    let served = Served::start_in(TestHome::new(), &config, |command| {
        command.env("ANTHROPIC_ADMIN_KEY", "sk-ant-admin-secret");
    });
    let request = up.request().await;
    assert_eq!(request.line(), "GET /v1/organizations/rate_limits HTTP/1.1");
    assert_eq!(request.field("x-api-key"), Some("sk-ant-admin-secret"));
    assert_eq!(request.field("anthropic-version"), Some("2023-06-01"));
    let limits = r#"{"type": "requests_per_minute", "value": 4000}"#;
    let group = format!(r#"{{"models": ["claude-a", "claude-b"], "limits": [{limits}]}}"#);
    let first = format!(r#"{{"data": [{group}], "next_page": "a+b="}}"#);
    request.answer("200 OK", "", &first).await;
    let request = up.request().await;
    assert_eq!(request.line(), "GET /v1/organizations/rate_limits?page=a%2Bb%3D HTTP/1.1");
    request.answer("200 OK", "", r#"{"data": [], "next_page": null}"#).await;
    let quotas = loop {
        let listed = json(http().get(served.url("/v1/quotas")).send().await.unwrap()).await;
        match listed["quotas"].as_array().unwrap() {
            quotas if quotas.is_empty() => tokio::task::yield_now().await,
            quotas => break quotas.clone(),
        }
    };
    let names: Vec<_> = quotas.iter().map(|quota| quota["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["claude-a", "claude-b"]);
    assert_eq!(quotas[0]["origin"], "provider");
}

#[test]
fn missing_admin_key_is_named_at_start() {
    let home = TestHome::new();
    home.write("paceline.yaml", "providers: [{name: anthropic, limits_from: provider}]");
    let output = home.run("serve --config paceline.yaml --port 0");
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("set ANTHROPIC_ADMIN_KEY"), "{output:?}");
}
