use super::Rig;

#[tokio::test]
async fn page_policy_allows_only_own_events() {
    let rig = Rig::start("quotas: {k: {rpm: 1}}").await;
    let response = rig.get("/").await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    let policy = header("content-security-policy");
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    for directive in [
        "default-src 'none'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.split("; ").any(|item| item == directive), "{directive} in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'));
    for response in [response, rig.get("/live/events").await, rig.get("/metrics").await] {
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert_eq!(response.headers()["referrer-policy"], "no-referrer");
        assert_eq!(response.headers()["x-frame-options"], "DENY");
    }
}

#[tokio::test]
async fn page_is_self_contained_and_builds_no_markup() {
    let rig = Rig::start("quotas: {k: {rpm: 1}}").await;
    let page = rig.get("/").await.text().await.unwrap();
    // The SVG namespace is not a link.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", " src=", "@import", "url(", "//cdn", "integrity="] {
        assert!(!page.contains(outside), "{outside}");
    }
    for markup in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
        assert!(!page.contains(markup), "{markup}");
    }
}
