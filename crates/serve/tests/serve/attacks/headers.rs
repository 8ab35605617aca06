//! Headers that name a client: missing, given twice, or sent on to the provider.

use super::{Answering, assert_refused, send, used};
use crate::proxy::rig::{Proxy, TestUpstream, field, http};

const TENANT: &str = "mode: reject\nscopes: [model, {header: x-tenant, prefix: 'tenant:'}]";

const QUOTAS: &str = "quotas: {'tenant:*': {rpd: 2}}";

#[tokio::test]
async fn request_without_the_header_of_a_scope_is_refused() {
    let up = Answering::start().await;
    for provider in ["openai", "anthropic", "gemini"] {
        let proxy = Proxy::with(&[("up", up.addr, provider)], TENANT, QUOTAS).await;
        assert_refused(proxy.chat("m"), &["`x-tenant`"], provider).await;
        for tenant in ["", " "] {
            assert_refused(proxy.chat("m").header("x-tenant", tenant), &["`x-tenant`"], provider)
                .await;
        }
        let binary = reqwest::header::HeaderValue::from_bytes(b"\xff").unwrap();
        assert_refused(proxy.chat("m").header("x-tenant", binary), &["`x-tenant`"], provider).await;
        assert_eq!(used(&proxy, &["tenant:", "tenant:\u{fffd}"]), [0, 0]);
        assert_eq!(up.requests(), 0);
    }
    // Requests that aren't charged have no tenant.
    let proxy = Proxy::serving(up.addr, TENANT, QUOTAS).await;
    assert_eq!(send(http().get(proxy.url("/up/v1/models"))).await.0, 200);
}

#[tokio::test]
async fn request_without_the_header_counts_under_its_default() {
    let up = Answering::start().await;
    let scopes =
        "mode: reject\nscopes: [model, {header: x-tenant, prefix: 'tenant:', default: nobody}]";
    let proxy = Proxy::serving(up.addr, scopes, QUOTAS).await;
    for status in [200, 200, 429] {
        assert_eq!(send(proxy.chat("m")).await.0, status);
    }
    assert_eq!(send(proxy.chat("m").header("x-tenant", "a")).await.0, 200);
    assert_eq!(used(&proxy, &["tenant:nobody", "tenant:a", "tenant:"]), [2, 1, 0]);
}

#[tokio::test]
async fn header_given_twice_is_refused() {
    let up = Answering::start().await;
    let scopes = "mode: reject\nscopes: [model, api_key, {header: x-tenant, prefix: 'tenant:', default: nobody}]";
    let proxy = Proxy::serving(up.addr, scopes, QUOTAS).await;
    for name in ["x-tenant", "authorization", "x-api-key", "api-key", "x-goog-api-key"] {
        for values in [["a", "b"], ["a", "a"], ["", "a"]] {
            let chat = values.iter().fold(proxy.chat("m"), |chat, value| chat.header(name, *value));
            assert_refused(chat, &[&format!("`{name}`"), "once"], name).await;
        }
    }
    // Also of a request that isn't charged: the provider might use the other credential.
    let get = http().get(proxy.url("/up/v1/models"));
    let get = get.header("authorization", "Bearer a").header("authorization", "Bearer b");
    assert_refused(get, &["`authorization`", "once"], "GET").await;
    let keys = proxy.url("/up/v1/chat/completions?key=a&key=b");
    assert_refused(http().post(keys).body(super::naming("m")), &["`key`", "once"], "query").await;
    assert_eq!(up.requests(), 0);
}

#[tokio::test]
async fn header_of_a_scope_is_not_forwarded() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, TENANT, QUOTAS).await;
    let chat = proxy.chat("m").header("x-tenant", "secret").header("x-other", "kept");
    let get = http()
        .get(proxy.url("/up/v1/models"))
        .header("x-tenant", "secret")
        .header("x-other", "kept");
    for request in [chat, get] {
        let sent = tokio::spawn(request.send());
        let request = up.request().await;
        assert_eq!(field(&request.head, "x-other"), Some("kept"));
        assert!(!request.head.contains("secret"), "{}", request.head);
        request.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
}
