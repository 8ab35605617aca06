//! The live page in a browser.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use paceline::limiter::{KeySnapshot, LearnedLimit};
use paceline::provider::UtilizationReading;
use paceline::quota::{Cost, Dimension};
use paceline_serve::Tokens;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Chromium, Rig};

const QUOTAS: &str = "
quotas:
  gpt-4o: {rpm: 500, tpm: 30000, rpd: 10000, concurrency: 20}
  claude-sonnet-4: {rpm: 50, itpm: 40000, otpm: 8000}
  '<img src=x onerror=alert(1)>': {rpm: 10}
";

/// Reads the exact values of each key from the page, as announced by screen readers.
const SHOWN: &str = "return [...document.querySelectorAll('#rows > [role=row]')].map(row => [
    row.querySelector('bdi').textContent,
    [...row.querySelectorAll('[role=meter]')].map(meter => [
        meter.getAttribute('aria-label').split(' / ')[0],
        meter.getAttribute('aria-valuetext').split(', resets')[0],
    ]),
    row.querySelector('.queue').textContent,
])";

/// The expected values, from the limiter.
fn expected_row(rig: &Rig, key: &str) -> Value {
    let stats = rig.limiter.stats(key);
    let number = |n: u64| {
        let digits = n.to_string();
        let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
        groups.iter().map(|group| std::str::from_utf8(group).unwrap()).collect::<Vec<_>>().join(",")
    };
    let limits = stats.limits.iter().map(|limit| {
        let name = match limit.dimension.as_str() {
            "concurrency" => "in flight".to_owned(),
            name => name.replace('_', " "),
        };
        let (used, held, of) = (number(limit.used), number(limit.held), number(limit.limit));
        json!([name, format!("{used} used, {held} held of {of}")])
    });
    json!([key, limits.collect::<Vec<_>>(), number(stats.waiting as u64)])
}

/// Waits until the page shows the current state.
async fn wait_for_update(rig: &Rig, browser: &Chromium) {
    rig.clock.advance(Duration::from_secs(1));
    let now = rig.limiter.now().as_nanos() / 1_000_000;
    browser.until(&format!("document.documentElement.dataset.at >= {now}")).await;
}

/// Spawns clients of `/rate` that run until `stop` is set.
fn clients(rig: &Rig, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let client = |number: u64| {
        let (client, stop) = (rig.client.clone(), Arc::clone(stop));
        let url = rig.url(&format!("/rate/user-{number}"));
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let response = client.post(&url).send().await.unwrap();
                assert!([200, 429].contains(&response.status().as_u16()), "{response:?}");
            }
        })
    };
    (1..=3).map(client).collect()
}

/// Spawns two threads that acquire as fast as possible until `stop` is set.
fn load(rig: &Rig, stop: &Arc<AtomicBool>) -> Vec<std::thread::JoinHandle<()>> {
    let keys = ["gpt-4o", "claude-sonnet-4", "<img src=x onerror=alert(1)>"];
    let threads = [0_u64, 1].map(|offset| {
        let (limiter, stop) = (rig.limiter.clone(), Arc::clone(stop));
        std::thread::spawn(move || {
            for number in offset.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let key = keys[(number % 3) as usize];
                let tokens = number % 90;
                let cost = Cost::new().tokens(tokens).input_tokens(tokens).output_tokens(3);
                drop(limiter.try_acquire(key, &cost));
            }
        })
    });
    threads.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_matches_the_limiter_under_load() {
    let (rig, browser) = (Rig::start(QUOTAS).await, Chromium::start().await);
    browser.set_viewport(1280, "light").await;
    browser.open(&rig.url("/")).await;
    browser.until("document.getElementById('state').dataset.state === 'live'").await;
    let stop = Arc::new(AtomicBool::new(false));
    let (threads, clients) = (load(&rig, &stop), clients(&rig, &stop));
    for _ in 0..20 {
        wait_for_update(&rig, &browser).await;
    }
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for client in clients {
        client.await.unwrap();
    }
    let cost = Cost::new().tokens(10);
    let _open = [0, 1].map(|_| rig.limiter.try_acquire("gpt-4o", &cost));
    let mut waits = [0, 1].map(|_| rig.limiter.acquire("claude-sonnet-4", &Cost::new()));
    let _ended = waits.each_mut().map(|wait| wait.arrive());
    wait_for_update(&rig, &browser).await;

    let shown = browser.run(SHOWN).await;
    let shown = shown.as_array().unwrap();
    assert_eq!(shown.len(), 6);
    let debug: Value =
        serde_json::from_str(&rig.get("/debug").await.text().await.unwrap()).unwrap();
    for row in shown {
        let key = row[0].as_str().unwrap();
        assert_eq!(*row, expected_row(&rig, key));
        let Some(name) = key.strip_prefix("rate/") else { continue };
        let instance = &debug["Instances"][name];
        let (used, waiting) = (&instance["NumApprovedThisWindow"], &instance["NumWaiting"]);
        let requests =
            row[1].as_array().unwrap().iter().find(|limit| limit[0] == "requests").unwrap();
        assert!(
            requests[1].as_str().unwrap().starts_with(&format!("{used} used,")),
            "{row} {instance}"
        );
        assert_eq!(row[2], waiting.to_string(), "{row} {instance}");
    }
    let totals = rig.limiter.state().totals();
    let sum = browser.run("return document.querySelector('.denied .note span').textContent").await;
    let sum: String = sum.as_str().unwrap().chars().filter(char::is_ascii_digit).collect();
    assert_eq!(sum, format!("{}5", totals.denied), "denied in 5 min");
    browser.screenshot("3-keys-1280-light").await;
    assert_eq!(browser.log().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spending_is_shown_as_money() {
    let quotas = "quotas: {'tenant:*': {usd_per_day: 50}, account: {usd_per_day: 0.25}}";
    let (rig, browser) = (Rig::start(quotas).await, Chromium::start().await);
    browser.set_viewport(1280, "light").await;
    browser.open(&rig.url("/")).await;
    browser.until("document.getElementById('state').dataset.state === 'live'").await;
    // A day is closed for a moment around its start.
    rig.clock.advance(Duration::from_secs(1));
    let cost = |micro_dollars| Cost::new().custom("usd", micro_dollars);
    rig.limiter.try_acquire("tenant:7", &cost(12_500_000)).unwrap().settle(&cost(12_500_000));
    let _open = rig.limiter.try_acquire("account", &cost(1_200)).unwrap();
    wait_for_update(&rig, &browser).await;
    let shown = browser.run(SHOWN).await;
    let row = |key: &str| {
        shown.as_array().unwrap().iter().find(|row| row[0] == key).map(|row| row[1].clone())
    };
    let tenant = json!([["money", "$12.50 used, $0.00 held of $50.00"]]);
    assert_eq!(row("tenant:7"), Some(tenant), "{shown}");
    let account = json!([["money", "$0.00 used, $0.0012 held of $0.25"]]);
    assert_eq!(row("account"), Some(account), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn learned_limits_are_below_the_name_of_the_key() {
    let (browser, rig) = (Chromium::start().await, Rig::start(QUOTAS).await);
    let mut key = KeySnapshot::new("gpt-4o", Vec::new());
    key.learned = vec![LearnedLimit::new(Dimension::Concurrency, 8.0, rig.limiter.now(), 1)];
    rig.limiter.state().absorb(&[key]);
    let permit = rig.limiter.try_acquire("gpt-4o", &paceline::Cost::new()).unwrap();
    permit.observe_utilization(&[UtilizationReading::new("5h", 0.42)]);
    browser.open(&rig.url("/")).await;
    browser.until("document.getElementById('state').dataset.state === 'live'").await;
    let shown = "return [...document.querySelectorAll('.learned')].map(text => text.innerText)";
    let text = "learned 8 requests in flight, a first estimate, 0s ago, by an earlier run; 5h window 42 % used";
    let mut shown: Vec<String> = serde_json::from_value(browser.run(shown).await).unwrap();
    shown.retain(|text| !text.is_empty());
    assert_eq!(shown, [text]);
    assert_eq!(browser.log().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_fits_all_widths_schemes_and_key_counts() {
    let browser = Chromium::start().await;
    for (name, quotas, count) in [
        ("0", "unknown_key: {rpm: 60}", 0),
        ("3", QUOTAS, 3),
        ("1000", "unknown_key: {rpm: 60}", 1000),
    ] {
        let rig = Rig::start(quotas).await;
        browser.set_viewport(1280, "light").await;
        browser.open(&rig.url("/")).await;
        browser.until("document.getElementById('state').dataset.state === 'live'").await;
        for second in 0..40_u64 {
            for number in 0..count.max(1) * 2 {
                let key = match count {
                    0 => break,
                    3 => ["gpt-4o", "claude-sonnet-4"][number as usize % 2].to_owned(),
                    _ => format!(
                        "user-{}-with-a-rather-long-name-{}",
                        number % 1000,
                        "x".repeat(number as usize % 90)
                    ),
                };
                if (number * 7 + second * 13) % 11 < 3 + second % 5 {
                    let cost = Cost::new().tokens(300).input_tokens(200).output_tokens(100);
                    drop(rig.limiter.try_acquire(&key, &cost));
                }
            }
            if second == 30 && count > 0 {
                let refusal = paceline::limiter::RateLimited::new(Some(Duration::from_secs(40)));
                let key = if count == 3 { "gpt-4o" } else { "user-1-with-a-rather-long-name-x" };
                rig.limiter.feedback().rate_limited(key, &refusal);
            }
            wait_for_update(&rig, &browser).await;
        }
        for (width, scheme) in
            [(1280, "light"), (1280, "dark"), (768, "light"), (360, "light"), (360, "dark")]
        {
            browser.set_viewport(width, scheme).await;
            wait_for_update(&rig, &browser).await;
            let wide = "return [document.documentElement.scrollWidth, innerWidth]";
            assert_eq!(browser.run(wide).await, json!([width, width]), "{name} keys, {width} px");
            browser.screenshot(&format!("{name}-keys-{width}-{scheme}")).await;
        }
        assert_eq!(browser.log().await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_is_usable_by_keyboard() {
    let rig = Rig::start("quotas: {'user-*': {rpm: 60}}").await;
    for number in 0..120 {
        drop(rig.limiter.try_acquire(&format!("user-{number:03}"), &Cost::new()));
    }
    let browser = Chromium::start().await;
    browser.set_viewport(1280, "light").await;
    browser.open(&rig.url("/")).await;
    browser.until("document.querySelectorAll('#rows > [role=row]').length === 50").await;
    let focus = "return document.activeElement.id || document.activeElement.className";
    let mut reached = Vec::new();
    for _ in 0..5 {
        browser.press(TAB).await;
        reached.push(browser.run(focus).await.as_str().unwrap().to_owned());
        let outline = "return getComputedStyle(document.activeElement).outlineStyle";
        assert_ne!(browser.run(outline).await, "none", "{reached:?}");
    }
    assert_eq!(reached, ["skip", "filter", "sort", "keys", "after"]);
    browser.press(ENTER).await;
    browser.until("document.getElementById('where').textContent === 'Keys 51 to 100 of 120'").await;
    browser.run("document.getElementById('filter').focus()").await;
    browser.press("R-11").await;
    browser.until("document.querySelectorAll('#rows > [role=row]').length === 10").await;
    let count = browser.run("return document.getElementById('count').textContent").await;
    assert_eq!(count, "10 of 120 match");
    assert_eq!(
        browser.run("return document.getElementById('announcement').textContent").await,
        count
    );
    assert_eq!(browser.log().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_shows_a_lost_connection() {
    let (rig, browser) = (Rig::start(QUOTAS).await, Chromium::start().await);
    browser.open(&rig.url("/")).await;
    browser.until("document.getElementById('state').dataset.state === 'live'").await;
    rig.server.shutdown().await.unwrap();
    browser
        .until(
            "document.getElementById('state').textContent.startsWith('Disconnected; reconnecting')",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_asks_for_a_token_once_per_tab() {
    let mut tokens = Tokens::default();
    tokens.admin = Some("let-me-look".to_owned());
    tokens.client = Some("a-client".to_owned());
    let rig = Rig::start_with_tokens(QUOTAS, tokens).await;
    for path in ["/live/events", "/metrics"] {
        assert_eq!(rig.get(path).await.status(), 401, "{path}");
    }
    let browser = Chromium::start().await;
    browser.open(&rig.url("/")).await;
    browser.until("document.activeElement.id === 'token'").await;
    browser.press(&format!("wrong{ENTER}")).await;
    browser
        .until("document.getElementById('login-error').textContent.includes('Wrong token')")
        .await;
    browser.screenshot("token").await;
    // The client token is not sufficient, and is not stored.
    browser.press(&format!("a-client{ENTER}")).await;
    browser
        .until("document.getElementById('login-error').textContent.includes('the admin token')")
        .await;
    let login = "return [document.getElementById('login').hidden, document.activeElement.id,
        sessionStorage.length]";
    assert_eq!(browser.run(login).await, json!([false, "token", 0]));
    browser.press(&format!("let-me-look{ENTER}")).await;
    let live = "document.getElementById('state').dataset.state === 'live'";
    browser.until(live).await;
    assert_eq!(browser.run("return document.getElementById('login').hidden").await, true);
    browser.open(&rig.url("/")).await;
    browser.until(live).await;
    // The token is neither in the URL nor in the page.
    let page = browser.run("return location.href + document.documentElement.outerHTML").await;
    assert!(!page.as_str().unwrap().contains("let-me-look"));
}

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
