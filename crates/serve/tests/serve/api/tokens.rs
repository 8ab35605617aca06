use serde_json::{Value, json};

use super::{ADMIN, Rig, send, with_json};

#[tokio::test]
async fn api_routes_require_matching_token() {
    let rig = Rig::with_tokens("", Some("client")).await;
    let send = async |method: &str, path: &str, token: Option<&str>| {
        let request = rig.request(method, path);
        let request = token.into_iter().fold(request, reqwest::RequestBuilder::bearer_auth);
        send(with_json(request, &json!({"keys": ["a"]}))).await
    };
    let id = "0".repeat(32);
    let of_client = [
        ("POST", "/v1/reserve".to_owned()),
        ("POST", "/v1/decide".to_owned()),
        ("GET", format!("/v1/reservations/{id}")),
        ("POST", format!("/v1/reservations/{id}/settle")),
        ("POST", format!("/v1/reservations/{id}/release")),
        ("POST", format!("/v1/reservations/{id}/renew")),
    ];
    for (method, path) in &of_client {
        send(method, path, None).await.assert_problem(401, "unauthorized");
        send(method, path, Some("guess")).await.assert_problem(401, "unauthorized");
        assert_ne!(send(method, path, Some("client")).await.status, 401);
        assert_ne!(send(method, path, Some(ADMIN)).await.status, 401);
    }
    let of_admin = [
        ("GET", "/v1/stats"),
        ("GET", "/v1/stats/a"),
        ("GET", "/v1/quotas"),
        ("GET", "/v1/quotas/a"),
        ("PUT", "/v1/quotas/a"),
        ("DELETE", "/v1/quotas/a"),
        ("POST", "/v1/reset"),
    ];
    for (method, path) in of_admin {
        send(method, path, None).await.assert_problem(401, "unauthorized");
        send(method, path, Some("client")).await.assert_problem(403, "forbidden");
        let status = send(method, path, Some(ADMIN)).await.status;
        assert!(![401, 403].contains(&status), "{method} {path}: {status}");
    }
    send("GET", "/openapi.json", None).await.assert_status(200);
}

#[tokio::test]
async fn stored_responses_are_separate_by_token() {
    let rig = Rig::with_tokens("quotas: {a: {rpm: 9}}", Some("client")).await;
    let send = async |token: Option<&str>| {
        let request = rig.request("POST", "/v1/reserve").header("idempotency-key", "k");
        let request = token.into_iter().fold(request, reqwest::RequestBuilder::bearer_auth);
        send(with_json(request, &json!({"keys": ["a"]}))).await
    };
    let first = send(Some("client")).await;
    assert_eq!(send(Some("client")).await.body, first.assert_status(201).body);
    assert_ne!(send(Some(ADMIN)).await.assert_status(201).body, first.body);
    send(None).await.assert_problem(401, "unauthorized");
    assert_eq!(rig.get("/v1/nothing").await.body.get("id"), None::<&Value>);
}
