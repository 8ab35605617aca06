//! The keys that a request is charged to.

use std::future::ready;
use std::time::Duration;

use http::Request;
use paceline::middleware::{Ask, Classified, PeekBody, RateLimitLayer};
use paceline::provider::{AZURE, COMPATIBLE_USAGE, OLLAMA, OLLAMA_CLOUD, OPENAI, Profile};
use paceline::quota::{Cost, Dimension, Quota, Usage};
use tower::{Layer, ServiceExt};

use super::inner::{Frames, Strict};
use super::{USAGE, available, builder, chat, client_returning, echo, is_ready, limiter, send};

const TWO: &[&str] = &["gpt-4o", "team"];

/// Returns the requests left, out of ten each, of `gpt-4o` and `team`.
async fn left(layer: impl FnOnce(RateLimitLayer) -> RateLimitLayer, body: &str) -> [u64; 2] {
    let ten = |key: &str| (key.to_owned(), Quota::new().rpm(10));
    let quotas = TWO.iter().map(|key| ten(key));
    let limiter = quotas.fold(builder(), |b, (key, quota)| b.quota(key, quota)).build().unwrap();
    let layer = layer(RateLimitLayer::new(limiter.clone()));
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    let request = Request::post("/v1/chat/completions").body(body.to_owned()).unwrap();
    drop(send(&mut client, request).await);
    let left = |key: &str| available(&limiter, key).first().copied().unwrap_or(10);
    [left(TWO[0]), left(TWO[1])]
}

const CHAT: &str = r#"{"model": "gpt-4o", "messages": []}"#;

#[tokio::test(start_paused = true)]
async fn request_is_charged_to_model() {
    assert_eq!(left(|layer| layer, CHAT).await, [9, 10]);
}

#[tokio::test(start_paused = true)]
async fn key_of_layer_takes_precedence_over_model() {
    assert_eq!(left(|layer| layer.key("team"), CHAT).await, [10, 9]);
    assert_eq!(left(|layer| layer.key("team").provider(OPENAI), CHAT).await, [10, 9]);
    assert_eq!(left(|layer| layer.key("team"), "no JSON").await, [10, 9]);
}

#[tokio::test(start_paused = true)]
async fn key_of_layer_takes_precedence_over_classify() {
    let limiter = limiter(Quota::new().rpm(10));
    let layer = RateLimitLayer::new(limiter.clone())
        .classify(|_: &u64| Classified::new("other", Cost::new()))
        .observe(|_: &u64| None)
        .key("k");
    layer.layer(echo()).oneshot(1).await.unwrap();
    assert_eq!(available(&limiter, "k"), [9]);
}

#[tokio::test(start_paused = true)]
async fn model_counts_by_its_provider_beside_other_scopes() {
    let quotas = builder().provider(OPENAI).provider(AZURE).quota("*", Quota::new().tpm(1_000));
    let limiter = quotas.build().unwrap();
    // The usage of an earlier run is restored before a request shows that the key is a model.
    let earlier = Usage { input: 400, ..Usage::default() };
    ["mine", "account"].iter().for_each(|key| limiter.record(key, &earlier));
    let layer = RateLimitLayer::new(limiter.clone()).provider(AZURE).scope("account");
    let used = |key: &str| limiter.stats(key).get(&Dimension::Tokens).unwrap().used;
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    let request = Request::post("/openai/deployments/mine/chat/completions");
    drop(send(&mut client, request.body(CHAT.to_owned()).unwrap()).await);
    let before = ["mine", "account"].map(used);
    assert!(before.iter().all(|used| *used > 400), "{before:?}");
    tokio::time::advance(Duration::from_secs(6)).await;
    // A bucket refills a tenth of its limit in a tenth of its window.
    assert_eq!(["mine", "account"].map(used), [before[0] - 100, before[1]]);
    limiter.quotas().set("mine", &Quota::new().tpm(2_000)).unwrap();
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(["mine", "account"].map(used), [before[0] - 200, before[1]]);
}

/// A body that is not in memory.
struct Streamed;

impl PeekBody for Streamed {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(None)
    }
}

#[tokio::test(start_paused = true)]
async fn azure_deployment_in_path_is_the_key_of_body_and_stream() {
    let quotas =
        builder().quota("mine", Quota::new().rpm(10)).quota("gpt-4o", Quota::new().rpm(10));
    let limiter = quotas.build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).provider(AZURE);
    let path = "/openai/deployments/mine/chat/completions";
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    let request = Request::post(path).body(CHAT.to_owned()).unwrap();
    drop(send(&mut client, request).await);
    assert_eq!((available(&limiter, "mine"), available(&limiter, "gpt-4o")), (vec![9], vec![10]));
    // The body is not in memory.
    let inner = |_: Request<Streamed>| ready(Ok(Frames::from(USAGE).into_response()));
    let request = Request::post(path).body(Streamed).unwrap();
    drop(layer.layer(Strict::new(inner)).oneshot(request).await.unwrap());
    assert_eq!((available(&limiter, "mine"), available(&limiter, "gpt-4o")), (vec![8], vec![10]));
}

#[tokio::test(start_paused = true)]
async fn request_without_model_uses_key_unknown() {
    for body in ["{}", "no JSON", ""] {
        let limiter = builder().quota("unknown", Quota::new().rpm(10)).build().unwrap();
        let layer = RateLimitLayer::new(limiter.clone());
        let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
        let request = Request::post("/v1/chat/completions").body(body.to_owned()).unwrap();
        drop(send(&mut client, request).await);
        assert_eq!(available(&limiter, "unknown"), [9], "{body:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn model_without_quota_is_unlimited() {
    let limiter = builder().provider(COMPATIBLE_USAGE).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone());
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    let begin = limiter.now();
    for _ in 0..1_000 {
        drop(send(&mut client, chat("my-model")).await);
    }
    assert_eq!((limiter.now(), available(&limiter, "my-model")), (begin, vec![]));
}

#[tokio::test(start_paused = true)]
async fn typical_cost_follows_requests_of_layer() {
    let limiter = limiter(Quota::new().tpm(1_000));
    let layer = super::tokens(&limiter).key("k");
    layer.layer(echo()).oneshot(100).await.unwrap();
    limiter.acquire("k", &Cost::new().tokens(850)).await.unwrap();
    // 50 are left, below the typical 100.
    assert!(!is_ready(&mut layer.layer(echo())).await);
    let mut small = layer.clone().reject().layer(echo());
    for _ in 0..20 {
        tower::Service::call(small.ready().await.unwrap(), 1).await.unwrap();
    }
    // A modified copy of a layer learns separately; clones learn together.
    assert!(!is_ready(&mut layer.layer(echo())).await);
    assert!(is_ready(&mut super::tokens(&limiter).key("k").layer(echo())).await);
}

/// Returns the requests (of ten) and tokens (of a thousand) left of `gpt-4o`, `team` and `other`.
async fn left_after(
    layer: impl FnOnce(RateLimitLayer) -> RateLimitLayer,
    ask: Ask,
) -> Vec<(u64, u64)> {
    const KEYS: [&str; 3] = ["gpt-4o", "team", "other"];
    let quota = || Quota::new().rpm(10).tpm(1_000);
    let builder =
        KEYS.iter().fold(builder().provider(COMPATIBLE_USAGE), |b, key| b.quota(*key, quota()));
    let limiter = builder.build().unwrap();
    let layer = layer(RateLimitLayer::new(limiter.clone()));
    let mut client = client_returning(&layer, || Frames::from("{}").into_response());
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(ask);
    drop(send(&mut client, request).await);
    let left = |key: &&str| match available(&limiter, key)[..] {
        [requests, tokens] => (requests, tokens),
        _ => (10, 1_000),
    };
    KEYS.iter().map(left).collect()
}

#[tokio::test(start_paused = true)]
async fn ask_takes_precedence_over_request_and_layer() {
    let cost = || Cost::new().requests(2).tokens(7);
    let all = [(10, 1_000); 3];
    let ask = Ask::new().key("other").cost(cost());
    let other = [all[0], all[1], (8, 993)];
    assert_eq!(left_after(|layer| layer, ask.clone()).await, other);
    assert_eq!(left_after(|layer| layer.key("team"), ask).await, other);
    assert_eq!(
        left_after(|layer| layer, Ask::new().cost(cost())).await,
        [(8, 993), all[1], all[2]]
    );
    let estimated = left_after(|layer| layer, Ask::new()).await;
    assert_eq!(left_after(|layer| layer, Ask::new().key("other")).await[2], estimated[0]);
}

#[tokio::test(start_paused = true)]
async fn deadline_of_ask_replaces_max_wait_of_layer() {
    let limiter = builder().quota("gpt-4o", Quota::new().rpm(1)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).reject();
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    drop(send(&mut client, chat("gpt-4o")).await);
    let begin = limiter.now();
    for (seconds, granted) in [(59, false), (61, true)] {
        let mut request = chat("gpt-4o");
        request.extensions_mut().insert(Ask::new().deadline(begin + seconds * super::S));
        let service = client.ready().await.unwrap();
        assert_eq!(tower::Service::call(service, request).await.is_ok(), granted, "{seconds}");
    }
    assert!(limiter.now() - begin >= 60 * super::S);
}

#[tokio::test(start_paused = true)]
async fn classify_closure_reads_ask_from_extensions() {
    let limiter = builder().quota("*", Quota::new().tpm(100)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone())
        .classify(|request: &Request<String>| {
            Classified::new("k", Cost::new().tokens(9)).with_extensions(request.extensions())
        })
        .key("layer");
    let service =
        layer.layer(super::Strict::new(|_| async { Ok(Frames::from("{}").into_response()) }));
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(Ask::new().key("vip").cost(Cost::new().tokens(30)));
    drop(service.oneshot(request).await.unwrap());
    let keys: Vec<_> = limiter.state().snapshot().into_iter().map(|key| key.key).collect();
    assert_eq!((keys, available(&limiter, "vip")), (vec!["vip".to_owned()], vec![70]));
}

/// For an unknown provider at least the estimate is charged, or the cost that the request sets.
#[tokio::test(start_paused = true)]
async fn cost_of_ask_replaces_estimate_as_minimum_charge() {
    let limiter = builder().quota("gpt-4o", Quota::new().tpm(1_000)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone());
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(Ask::new().cost(Cost::new().tokens(15)));
    let response = send(&mut client, request).await;
    assert_eq!(super::held(&limiter, "gpt-4o"), [15]);
    super::read(response).await.unwrap();
    assert_eq!(available(&limiter, "gpt-4o"), [1_000 - 21]);
}

#[tokio::test(start_paused = true)]
async fn request_is_charged_to_key_and_every_scope() {
    let team = |layer: RateLimitLayer| layer.scope("team");
    assert_eq!(left(team, CHAT).await, [9, 9]);
    assert_eq!(left(|layer| layer.scope("team").key("gpt-4o"), "{}").await, [9, 9]);
    assert_eq!(left(|layer| layer.key("other").key("gpt-4o").scope("team"), "{}").await, [9, 9]);
    // The key of an `Ask` replaces only the request's own key.
    let ask = Ask::new().key("other").cost(Cost::new());
    assert_eq!(left_after(team, ask).await, [(10, 1_000), (9, 1_000), (9, 1_000)]);
}

#[tokio::test(start_paused = true)]
async fn refusing_scope_prevents_all_charges() {
    let limiter = builder().quota("gpt-4o", Quota::new().rpm(5)).quota("team", Quota::new().rpm(1));
    let limiter = limiter.build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).scope("team").reject();
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    drop(send(&mut client, chat("gpt-4o")).await);
    let service = client.ready().await.unwrap();
    let error = tower::Service::call(service, chat("gpt-4o")).await.unwrap_err();
    assert_eq!(error.key(), Some("team"));
    assert_eq!((available(&limiter, "gpt-4o"), available(&limiter, "team")), (vec![4], vec![0]));
}

/// Returns the keys of a limiter with these quotas after these requests, and the used requests of the first.
async fn keys_after(
    profile: Profile,
    quotas: &[(&str, Quota)],
    models: &[&str],
) -> (Vec<String>, u64) {
    let quotas = quotas.iter().cloned();
    let limiter = quotas.fold(builder(), |builder, (name, quota)| builder.quota(name, quota));
    let limiter = limiter.build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).provider(profile);
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    for model in models {
        super::read(send(&mut client, chat(model)).await).await.unwrap();
    }
    let used = |key: &String| limiter.stats(key).limits.first().map_or(0, |limit| limit.used);
    let keys: Vec<_> = limiter.state().keys().iter().map(ToString::to_string).collect();
    let keys: Vec<_> = keys.into_iter().filter(|key| used(key) > 0).collect();
    let first = keys.first().map_or(0, used);
    (keys, first)
}

/// Ollama's models have several names, in requests as in quotas.
#[tokio::test(start_paused = true)]
async fn spellings_of_a_model_of_ollama_share_its_quota() {
    const ALL: [&str; 4] = [
        "llama3.2",
        "Llama3.2:latest",
        "library/llama3.2",
        "registry.ollama.ai/library/LLAMA3.2:latest",
    ];
    let rpd = || Quota::new().rpd(10);
    let key = |name: &str, used| (vec![name.to_owned()], used);
    for profile in [OLLAMA, OLLAMA_CLOUD, OLLAMA.like("gpu-7", None).unwrap()] {
        for name in ALL.iter().chain(&["Library/Llama3.2"]) {
            let quotas = [(*name, rpd()), ("*", rpd()), ("llama3.2:1b", rpd())];
            assert_eq!(keys_after(profile, &quotas, &ALL).await, key(name, 4), "{name}");
        }
    }
    // A pattern may cover one of the names only.
    for (pattern, name) in [
        ("llama*", "llama3.2"),
        ("Llama3*", "Llama3.2"),
        ("llama3.2:*", "llama3.2:latest"),
        ("*:LATEST", "llama3.2:LATEST"),
        ("library/*", "library/llama3.2"),
        ("Library/L*:latest", "Library/Llama3.2:latest"),
        ("regex:library/.*", "library/llama3.2"),
    ] {
        let quotas = [(pattern, rpd())];
        assert_eq!(keys_after(OLLAMA, &quotas, &ALL).await, key(name, 4), "{pattern}");
    }
    let shared = [("Llama*", rpd().shared())];
    assert_eq!(keys_after(OLLAMA, &shared, &ALL).await, key("Llama*", 4));
    // Other tags are other models, and other providers have other rules.
    let quotas = [("llama3.2:latest", rpd()), ("*", rpd())];
    let (keys, _) = keys_after(OLLAMA, &quotas, &["llama3.2", "llama3.2:1b", "me/llama3.2"]).await;
    assert_eq!(keys, ["llama3.2:1b", "llama3.2:latest", "me/llama3.2"]);
    let (keys, _) = keys_after(OPENAI, &quotas, &["llama3.2", "llama3.2:latest"]).await;
    assert_eq!(keys, ["llama3.2", "llama3.2:latest"]);
}

/// Also where a registry has a port, which isn't a tag.
#[tokio::test(start_paused = true)]
async fn quota_of_a_model_of_ollama_is_found_by_its_own_name() {
    let rpd = || Quota::new().rpd(10);
    for place in ["", "library/", "registry.ollama.ai/library/", "me/", "localhost:5000/ns/"] {
        for model in ["llama3", "Llama3", "llama3:8b", "LLAMA3:8B"] {
            for tag in ["", ":latest", ":LATEST"] {
                let name = format!("{place}{model}{tag}");
                let quotas = [(name.as_str(), rpd()), ("*", rpd())];
                let expected = (vec![name.clone()], 1);
                assert_eq!(keys_after(OLLAMA, &quotas, &[&name]).await, expected, "{name}");
            }
        }
    }
    // A path of one's own is another model, also beside a quota whose name differs in capitals only.
    let quotas = [("User/llama3:latest", rpd()), ("llama3", rpd()), ("*", rpd())];
    let (keys, _) = keys_after(OLLAMA, &quotas, &["user/Llama3", "LLAMA3", "me/llama3"]).await;
    assert_eq!(keys, ["User/llama3:latest", "llama3", "me/llama3"]);
}

#[tokio::test(start_paused = true)]
async fn quota_of_another_spelling_applies_while_it_exists() {
    let limiter = builder().quota("*", Quota::new().rpd(10)).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).provider(OLLAMA);
    let mut client = client_returning(&layer, || Frames::from(USAGE).into_response());
    let mut key = async || {
        super::read(send(&mut client, chat("M")).await).await.unwrap();
        ["m", "M", "library/m"].map(|key| limiter.stats(key).limits[0].used)
    };
    assert_eq!(key().await, [1, 0, 0]);
    limiter.quotas().set("library/m", &Quota::new().rpd(5)).unwrap();
    assert_eq!(key().await, [1, 0, 1]);
    limiter.quotas().set("M", &Quota::new().rpd(5)).unwrap();
    assert_eq!(key().await, [1, 1, 1], "the first of several");
    limiter.quotas().set("m", &Quota::new().rpd(5)).unwrap();
    assert_eq!(key().await, [2, 1, 1]);
    ["m", "M", "library/m"].iter().for_each(|name| assert!(limiter.quotas().remove(name)));
    assert_eq!(key().await, [3, 1, 1]);
}
