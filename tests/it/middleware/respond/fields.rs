//! The RateLimit fields, read by a parser of structured fields.

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use paceline::limiter::{RateLimited, Reduction};
use paceline::middleware::{Classified, ScopeKey};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Window};
use sfv::{BareItem, List, ListEntry, Parser};
use tower::Layer;

use super::*;

/// Returns the members of a list: names with parameters in order.
fn members(headers: &HeaderMap, name: &str) -> Vec<(String, Vec<(String, String)>)> {
    let list: List = Parser::new(field(headers, name)).parse().unwrap();
    let shown = |value: &BareItem| match value {
        BareItem::Integer(number) => number.to_string(),
        BareItem::String(text) => format!("{:?}", text.as_str()),
        other => panic!("{other:?}"),
    };
    let read = |entry: ListEntry| {
        let ListEntry::Item(item) = entry else { panic!("{entry:?}") };
        let BareItem::String(name) = &item.bare_item else { panic!("{item:?}") };
        let params = item.params.iter();
        let params = params.map(|(key, value)| (key.as_str().to_owned(), shown(value)));
        (name.as_str().to_owned(), params.collect())
    };
    list.into_iter().map(read).collect()
}

/// Returns the members of a list in one line each.
fn lines(headers: &HeaderMap, name: &str) -> Vec<String> {
    let line = |(name, params): (String, Vec<(String, String)>)| {
        let params = params.iter().map(|(key, value)| format!(" {key}={value}"));
        name + &params.collect::<String>()
    };
    members(headers, name).into_iter().map(line).collect()
}

const POLICY: &str = "ratelimit-policy";

#[tokio::test(start_paused = true)]
async fn each_limit_is_a_policy_and_service_limit_of_same_name() {
    let second = Limit::new(Dimension::custom("im\"ages"), 7, Window::SECOND).unwrap();
    let short = Window::new(Duration::from_millis(250)).unwrap();
    let short = Limit::new(Dimension::Requests, 90, short).unwrap();
    let quota =
        Quota::new().rpm(10).tpm(600).rpd(u64::MAX).concurrency(3).limit(second).limit(short);
    let limiter = limiter(quota);
    let (status, headers, _) = ask(&mut guarded(&limiter, hello)).await;
    assert_eq!(status, 200);
    let policies = [
        "k-rpm q=10 w=60",
        r#"k-tpm q=600 qu="tokens" w=60"#,
        "k-rpd q=999999999999999 w=86400",
        r#"k-concurrency q=3 qu="concurrent-requests""#,
        r#"k-im_ages-per-1s q=7 qu="im_ages" w=1"#,
        "k-requests-per-250ms q=90",
    ];
    assert_eq!(lines(&headers, POLICY), policies);
    let limits = [
        "k-rpm r=9 t=54",
        "k-tpm r=600 t=60",
        "k-rpd r=999999999999999 t=86400",
        "k-concurrency r=2",
        "k-im_ages-per-1s r=7 t=1",
        "k-requests-per-250ms r=89 t=1",
    ];
    assert_eq!(lines(&headers, "ratelimit"), limits);
}

#[tokio::test(start_paused = true)]
async fn remaining_never_exceeds_pace_of_limit() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let quota = Quota::new().rpm(10).with_algorithm(algorithm);
        let limiter = builder().quota("k", quota).build().unwrap();
        let mut service = guarded(&limiter, hello);
        for left in (0..10).rev() {
            let (_, headers, _) = ask(&mut service).await;
            let [(_, limit)] = members(&headers, "ratelimit").try_into().unwrap();
            let [r, t] = [0, 1].map(|at| limit[at].1.parse::<u64>().unwrap());
            assert_eq!(r, left, "{algorithm:?}");
            assert!(r * 60 <= t * 10 && t <= 60, "{algorithm:?}: r={r} t={t}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_reports_wait_as_window_of_exceeded_limit() {
    let limiter = limiter(Quota::new().rpm(10).rpd(1_000));
    let mut service = guarded(&limiter, hello);
    for _ in 0..10 {
        ask(&mut service).await;
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let (status, headers, _) = ask(&mut service).await;
    assert_eq!((status, field(&headers, "retry-after")), (429, "5"));
    // 1,000 per day is one in 86.4 s: 10 in 864 s, of which 1.5 s have passed; 990 left is within
    // the pace.
    assert_eq!(lines(&headers, "ratelimit"), ["k-rpm r=0 t=5", "k-rpd r=990 t=85536"]);
}

#[tokio::test(start_paused = true)]
async fn scopes_are_named_without_showing_secrets() {
    let quota = Quota::new().rpm(10).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("*", quota).build().unwrap();
    let other = Scope::header(HeaderName::from_static("x-other")).named("x-api-key");
    let layer = respond(&limiter).scope(api_key()).scope(other).scope("account").scope("account");
    let mut service = layer.layer(service_returning(hello));
    let request = get(&[("x-api-key", "s3cr3t")]);
    let headers = send(&mut service, request).await.into_parts().0.headers;
    assert_eq!(
        lines(&headers, "ratelimit"),
        ["x-api-key-rpm r=9 t=54", "x-api-key2-rpm r=9 t=54", "account-rpm r=9 t=54"]
    );

    let hidden = |_: &Request<String>| {
        let classified = Classified::new("s3cr3t", Cost::new()).scope("s3cr3t2");
        classified.scope(ScopeKey::named("user:s3cr3t3")).scope(ScopeKey::public("so \"\\ é"))
    };
    let mut service = respond(&limiter).classify(hidden).layer(service_returning(hello));
    let headers = send(&mut service, get(&[])).await.into_parts().0.headers;
    assert_eq!(
        lines(&headers, POLICY),
        ["rpm q=10 w=60", "2-rpm q=10 w=60", "user-rpm q=10 w=60", "so __ __-rpm q=10 w=60"]
    );
}

#[tokio::test(start_paused = true)]
async fn ratelimit_fields_of_inner_service_are_kept() {
    let limiter = limiter(Quota::new().rpm(10));
    let with_fields = || {
        let mut response = hello();
        let value = "\"own\";r=1;t=2".parse().unwrap();
        response.headers_mut().insert(HeaderName::from_static("ratelimit"), value);
        response
    };
    let (_, headers, _) = ask(&mut guarded(&limiter, with_fields)).await;
    let values: Vec<_> = headers.get_all("ratelimit").iter().collect();
    assert_eq!(values, ["\"own\";r=1;t=2", "\"k-rpm\";r=9;t=54"]);
}

#[tokio::test(start_paused = true)]
async fn response_without_limits_has_no_fields() {
    let (status, headers, _) = ask(&mut guarded(&builder().build().unwrap(), hello)).await;
    assert_eq!((status, headers.len()), (200, 0));
}

#[tokio::test(start_paused = true)]
async fn policies_follow_changed_limits() {
    let builder = builder().quota("k", Quota::new().rpm(10)).reduction(Reduction::default());
    let limiter = builder.build().unwrap();
    let mut service = guarded(&limiter, hello);
    for rpm in [10, 20, 10] {
        limiter.quotas().set("k", &Quota::new().rpm(rpm)).unwrap();
        let (status, headers, _) = ask(&mut service).await;
        let expected = format!("k-rpm q={rpm} w=60");
        assert_eq!((status, lines(&headers, POLICY)), (200, vec![expected]));
    }
    // A provider refusal reduces the limit, which then recovers in steps.
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(1))));
    let mut seen = Vec::new();
    for seconds in [0, 2, 40, 40, 400] {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let (status, headers, _) = ask(&mut service).await;
        let limit = limiter.stats("k").limits[0].limit;
        let expected = format!("k-rpm q={limit} w=60");
        assert_eq!(lines(&headers, POLICY), [expected], "after {seconds} s");
        seen.push((status, limit));
    }
    assert_eq!((seen[0], seen[4]), ((429, 5), (200, 10)));
    assert!(seen[1].1 < seen[2].1 && seen[2].1 < seen[3].1, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn policies_of_many_keys_under_one_quota_have_separate_names() {
    let limiter = builder().quota("*", Quota::new().rpm(1)).build().unwrap();
    let named = |request: &Request<String>| {
        Classified::new(ScopeKey::public(&request.uri().path()[1..]), Cost::new())
    };
    let mut service = respond(&limiter).classify(named).layer(service_returning(hello));
    for round in 0..2 {
        for number in 0..200 {
            let request = Request::get(format!("/n{number}")).body(String::new()).unwrap();
            let (parts, _) = send(&mut service, request).await.into_parts();
            let expected = format!("n{number}-rpm q=1 w=60");
            let status = if round == 0 { 200 } else { 429 };
            assert_eq!(
                (parts.status.as_u16(), lines(&parts.headers, POLICY)),
                (status, vec![expected])
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_of_several_keys_reports_limits_of_each() {
    let build = || {
        let builder = builder().quota("a", Quota::new().rpm(9)).quota("b", Quota::new().rpm(1));
        builder.quota("c", Quota::new().tpm(7)).build().unwrap()
    };
    let expected = ["a-rpm r=8 t=60", "b-rpm r=0 t=60", "c-tpm r=7 t=60"];
    for keys in [&["a", "b", "c"][..], &["a", "b", "a", "c"]] {
        let layer = keys.iter().fold(respond(&build()), |layer, &key| layer.scope(key));
        let mut service = layer.layer(service_returning(hello));
        assert_eq!(ask(&mut service).await.0, 200);
        let (status, headers, _) = ask(&mut service).await;
        assert_eq!(
            (status, lines(&headers, "ratelimit")),
            (429, expected.map(String::from).to_vec())
        );
    }
}
