//! Layers count by the prices of their configuration, also after it has changed.

use std::fs;

use http::{Request, Response};
use paceline::Limiter;
use paceline::limiter::Code;
use paceline::middleware::{Http, RateLimitLayer, Retries};
use paceline::price::Prices;
use paceline_config::{self as config, Reloader};
use tower::{BoxError, Layer, ServiceExt, service_fn};

use super::parse_valid;

#[test]
fn reload_applies_prices() {
    let (before, mut after) =
        (parse_valid("{}"), parse_valid("prices: {models: {m: {input: 1, output: 2}}}"));
    let limiter = before.builder().build().unwrap();
    let applied = after.apply(&before, &limiter);
    assert_eq!((applied.changed, applied.needs_restart), (vec!["prices".to_owned()], vec![]));
    let most = || {
        let price = before.prices.current().of(paceline::provider::OPENAI, "m");
        price.map(|price| price.most(1_000, 1_000))
    };
    assert_eq!(most(), Some(3_000));
    // A third configuration, and prices that the program sets.
    let mut third = parse_valid("prices: {models: {m: {input: 1, output: 4}}}");
    assert_eq!(third.apply(&after, &limiter).changed, ["prices"]);
    assert_eq!(most(), Some(5_000));
    third.prices.replace(Prices::none());
    let mut fourth = parse_valid("share: 1\nprices: {models: {m: {input: 1, output: 4}}}");
    assert_eq!(fourth.apply(&third, &limiter).changed, [""; 0]);
    assert_eq!(most(), None);
    let mut fifth = parse_valid("prices: {models: {m: {input: 2, output: 4}}}");
    assert_eq!(fifth.apply(&fourth, &limiter).changed, ["prices"]);
    assert_eq!(most(), Some(6_000));
}

/// Returns the money that a request of `m` reserves, or the code of its refusal.
async fn reserved(
    layer: RateLimitLayer<Http, Http, Retries>,
    limiter: &Limiter,
) -> Result<u64, Code> {
    let used = || limiter.stats("m").limits[0].used;
    let before = used();
    let inner = service_fn(|_: Request<String>| async {
        // Without an answer, the request is charged what it has reserved.
        Ok::<_, BoxError>(Response::new(String::new()))
    });
    let body = r#"{"model": "m", "max_tokens": 1000, "messages": []}"#.to_owned();
    let request = Request::post("/v1/chat/completions").body(body).unwrap();
    let sent = layer.layer(inner).oneshot(request).await;
    sent.map(|_| used() - before).map_err(|error| error.refused().expect("a refusal").code)
}

#[tokio::test]
async fn layers_follow_the_prices_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    let file = "providers: [openai]\nquotas: {m: {usd_per_day: 5}}\n";
    fs::write(&path, file).unwrap();
    let loaded = config::check(&path).unwrap();
    let limiter = loaded.config.builder().build().unwrap();
    let reloading = Reloader::start(&loaded, &limiter).unwrap();
    let layer = loaded.config.layer(&limiter);
    assert_eq!(reserved(layer.clone(), &limiter).await, Err(Code::UnknownPrice));
    for dollars in [1, 2] {
        let prices = format!("prices: {{models: {{m: {{input: 0, output: {dollars}}}}}}}\n");
        fs::write(&path, format!("{file}{prices}")).unwrap();
        reloading.reload();
        // A layer of the changed configuration, and the one from before.
        let fresh = reloading.status().config.layer(&limiter);
        for layer in [fresh, layer.clone()] {
            assert_eq!(reserved(layer, &limiter).await, Ok(dollars * 1_000));
        }
    }
    fs::write(&path, file).unwrap();
    reloading.reload();
    assert_eq!(reserved(layer, &limiter).await, Err(Code::UnknownPrice));
}

#[tokio::test]
async fn opened_file_gives_a_layer_with_its_prices() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    let prices = "prices: {models: {m: {input: 0, output: 3}}}";
    fs::write(&path, format!("providers: [openai]\nquotas: {{m: {{usd_per_day: 5}}}}\n{prices}"))
        .unwrap();
    let opened = config::open(&path).unwrap();
    assert_eq!(reserved(opened.layer(), &opened.limiter).await, Ok(3_000));
}
