//! Names of another scope's keys: a client that names another's key would use up its quota.

use reqwest::RequestBuilder;

use super::{Answering, assert_refused, naming, send, used};
use crate::proxy::rig::{Proxy, http};

const SCOPES: &str = "mode: reject\n\
    scopes: [model, api_key, {header: x-tenant, prefix: 'tenant:'}, {header: x-user, prefix: 'tenant:user:'}, \
    {key: account}]";

const QUOTAS: &str =
    "quotas: {'tenant:*': {rpd: 9}, 'api_key:*': {rpd: 99}, account: {rpd: 99}, m: {rpd: 99}}";

fn with_scopes(request: RequestBuilder) -> RequestBuilder {
    request.header("x-tenant", "me").header("x-user", "me").bearer_auth("sk-1")
}

#[tokio::test]
async fn model_named_like_a_key_of_another_scope_is_refused() {
    let up = Answering::start().await;
    let named = |model: &str| ("openai", "/v1/chat/completions", naming(model));
    let form =
        "--B\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\ntenant:victim\r\n--B--\r\n";
    for (provider, path, body) in [
        named("tenant:victim"),
        named(" tenant:victim "),
        named("models/tenant:victim"),
        named("tenant:"),
        named("tenant:user:victim"),
        named("api_key:5ff89d0000000000"),
        named("account"),
        named("rate/victim"),
        (
            "openai",
            "/v1/responses",
            "{\"mod\\u0065l\": \"t\\u0065nant:victim\", \"input\": \"Hi\"}".to_owned(),
        ),
        ("openai", "/v1/audio/transcriptions", form.to_owned()),
        ("gemini", "/v1beta/models/tenant%3Avictim:generateContent", "{}".to_owned()),
        ("bedrock", "/model/tenant%3Avictim/converse", "{}".to_owned()),
        ("azure", "/openai/deployments/tenant%3avictim/chat/completions", "{}".to_owned()),
        ("ollama", "/api/chat", naming("TENANT:victim")),
        ("ollama", "/api/chat", naming("library/tenant:victim")),
        // Ollama's name of it with the default tag, which the pattern of the tenants covers.
        ("ollama", "/api/chat", naming("tenant")),
    ] {
        let proxy = Proxy::with(&[("up", up.addr, provider)], SCOPES, QUOTAS).await;
        let post = http().post(proxy.url(&format!("/up{path}"))).body(body.clone());
        let post = match body.starts_with("--B") {
            true => post.header("content-type", "multipart/form-data; boundary=B"),
            false => post.header("content-type", "application/json"),
        };
        let case = format!("{provider} {path} {body}");
        assert_refused(with_scopes(post), &["the model", "another scope"], &case).await;
        let keys = ["tenant:victim", "tenant:latest", "tenant:me", "account"];
        assert_eq!(used(&proxy, &keys), [0; 4], "{case}");
    }
    assert_eq!(up.requests(), 0);
}

#[tokio::test]
async fn model_with_a_colon_is_sent() {
    let up = Answering::start().await;
    let proxy = Proxy::serving(up.addr, SCOPES, QUOTAS).await;
    for model in [
        "us.amazon.nova-micro-v1:0",
        "llama3:8b",
        "tenant",
        "tenants:a",
        "Tenant:a",
        "x/tenant:a",
        "rate",
    ] {
        assert_eq!(send(with_scopes(proxy.chat(model))).await.0, 200, "{model}");
    }
    // Without the scope, the prefix has no meaning.
    let proxy = Proxy::serving(up.addr, "", QUOTAS).await;
    assert_eq!(send(proxy.chat("tenant:a")).await.0, 200);
}

#[tokio::test]
async fn header_named_like_a_key_of_another_scope_is_refused() {
    let up = Answering::start().await;
    let proxy = Proxy::serving(up.addr, SCOPES, QUOTAS).await;
    let chat = |tenant| {
        let chat = proxy.chat("m").header("x-tenant", tenant).header("x-user", "me");
        chat.bearer_auth("sk-1")
    };
    assert_refused(chat("user:victim"), &["`x-tenant`", "`tenant:user:`"], "nested").await;
    assert_eq!(used(&proxy, &["tenant:user:victim", "account"]), [0, 0]);
    assert_eq!(send(chat("tenant:user:victim")).await.0, 200, "not the key of another scope");
    // A header without a prefix could name the key of any client.
    let scopes = "mode: reject\nscopes: [{header: x-tenant}, api_key, {key: account}]";
    let proxy = Proxy::serving(up.addr, scopes, QUOTAS).await;
    for tenant in ["api_key:5ff89d0000000000", "account", "rate/victim"] {
        let chat = proxy.chat("m").header("x-tenant", tenant);
        assert_refused(chat, &["`x-tenant`"], tenant).await;
    }
    assert_eq!(up.requests(), 1);
}

#[tokio::test]
async fn keys_of_rate_are_apart_from_those_of_the_proxy() {
    let up = Answering::start().await;
    let scopes = "mode: reject\nmax_requests: 3\nwindow_millis: 3600000\n\
                  scopes: [model, {header: x-tenant, prefix: 'tenant:'}]";
    let quotas = "quotas: {'tenant:*': {rpd: 5}, m: {rpd: 4}, 'user-*': {rpd: 2}}\nmargin: {percent: 0, lag: 0s}";
    let proxy = Proxy::serving(up.addr, scopes, quotas).await;
    let granted = async |key: &str| {
        let mut granted = 0;
        for _ in 0..9 {
            let post = http().post(proxy.url(&format!("/rate/{key}"))).send().await.unwrap();
            granted += usize::from(post.status() == 200);
        }
        granted
    };
    // Each key has the quota that names it, in a bucket of its own.
    for (key, limit) in
        [("tenant:a", 5), ("m", 4), ("user-1", 2), ("tenant%3Ab", 5), ("free", 3), ("rate%2Fm", 3)]
    {
        assert_eq!(granted(key).await, limit, "{key}");
    }
    assert_eq!(used(&proxy, &["tenant:a", "m", "user-1", "free"]), [0; 4]);
    assert_eq!(
        used(&proxy, &["rate/tenant:a", "rate/m", "rate/user-1", "rate/free"]),
        [5, 4, 2, 3]
    );
    for _ in 0..4 {
        assert_eq!(send(proxy.chat("m").header("x-tenant", "a")).await.0, 200);
    }
    assert_eq!(send(proxy.chat("m").header("x-tenant", "a")).await.0, 429);
    // A model without a quota stays unlimited.
    for _ in 0..4 {
        assert_eq!(send(proxy.chat("free").header("x-tenant", "b")).await.0, 200);
    }
    assert_eq!(used(&proxy, &["rate/m", "tenant:b"]), [4, 4]);
    // Models and keys of `/rate` share a quota among themselves only.
    proxy.limiter.quotas().set("pair-*", &paceline::Quota::new().rpd(2).shared()).unwrap();
    assert_eq!([granted("pair-1").await, granted("pair-2").await], [2, 0]);
    for (model, status) in [("pair-1", 200), ("pair-3", 200), ("pair-3", 429)] {
        assert_eq!(send(proxy.chat(model).header("x-tenant", "c")).await.0, status, "{model}");
    }
    // A quota that changes while the server runs applies to both.
    proxy.limiter.quotas().set("user-1", &paceline::Quota::new().rpd(5)).unwrap();
    assert_eq!(granted("user-1").await, 3);
}
