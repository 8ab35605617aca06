use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use paceline::limiter::{QuotaOrigin, UnknownKey};
use paceline::{Cost, Limiter, Quota};
use paceline_config::{self as config, Applied, Config, ReloadStatus, Reloader};
use paceline_limiter::seam;

use super::parse_valid;

/// Creates a limiter from the first text and applies the second.
fn apply(before: &str, after: &str) -> (Limiter, Applied) {
    let (before, mut after) = (parse_valid(before), parse_valid(after));
    let limiter = before.builder().build().unwrap();
    let applied = after.apply(&before, &limiter);
    (limiter, applied)
}

fn amount(limiter: &Limiter, key: &str) -> Option<u64> {
    limiter.quotas().of(key).limits().first().map(|limit| limit.amount())
}

#[test]
fn reload_adds_changes_and_removes_quotas() {
    let before = "quotas: {a: {rpm: 1}, b: {rpm: 2}, 'c*': {rpm: 3}, 'd+': {regex: true, rpm: 4}}";
    let after = "quotas: {a: {rpm: 1}, b: {rpm: 9}, 'e+': {regex: true, rpm: 5}}";
    let (limiter, applied) = apply(before, after);
    let amounts = ["a", "b", "cc", "dd", "ee"].map(|key| amount(&limiter, key));
    assert_eq!(amounts, [Some(1), Some(9), None, None, Some(5)]);
    assert_eq!(applied.changed, ["quotas.b", "quotas.\"e+\"", "quotas.c*", "quotas.\"d+\""]);
    assert!(applied.needs_restart.is_empty());
}

#[test]
fn reload_keeps_earlier_usage() {
    let before = parse_valid("quotas: {a: {rpm: 5}}");
    let limiter = before.builder().build().unwrap();
    for _ in 0..5 {
        limiter.try_acquire("a", &Cost::new()).unwrap().settle(&Cost::new());
    }
    let mut more = parse_valid("quotas: {a: {rpm: 6}}");
    more.apply(&before, &limiter);
    limiter.try_acquire("a", &Cost::new()).unwrap().settle(&Cost::new());
    assert!(limiter.try_acquire("a", &Cost::new()).is_err());
}

#[test]
fn reload_keeps_quotas_set_by_program_unless_file_changes() {
    let before = parse_valid("quotas: {a: {rpm: 1}, b: {rpm: 2}}");
    let limiter = before.builder().build().unwrap();
    limiter.quotas().set("a", &Quota::new().rpm(7)).unwrap();
    limiter.quotas().set("mine", &Quota::new().rpm(8)).unwrap();
    let mut other = parse_valid("quotas: {b: {rpm: 3}}");
    other.apply(&before, &limiter);
    assert_eq!(["a", "b", "mine"].map(|key| amount(&limiter, key)), [Some(7), Some(3), Some(8)]);
    let mut again = parse_valid("quotas: {a: {rpm: 4}, b: {rpm: 3}}");
    again.apply(&other, &limiter);
    assert_eq!(amount(&limiter, "a"), Some(4));
    let origin =
        |name| limiter.quotas().list().into_iter().find(|quota| quota.name == name).unwrap().origin;
    assert_eq!((origin("a"), origin("mine")), (QuotaOrigin::Configured, QuotaOrigin::Set));
}

#[tokio::test]
async fn reload_applies_policies() {
    let after = "{unknown_key: refuse, waiting: {max_waiting: 0}, reduction: {factor: 0.25}}";
    let (limiter, applied) =
        apply("quotas: {a: {rpm: 1}}", &format!("{{quotas: {{a: {{rpm: 1}}}}, {}", &after[1..]));
    assert_eq!(applied.changed, ["unknown_key", "waiting.max_waiting", "reduction"]);
    assert!(limiter.try_acquire("other", &Cost::new()).is_err());
    limiter.try_acquire("a", &Cost::new()).unwrap().settle(&Cost::new());
    let full = limiter.acquire("a", &Cost::new()).await.unwrap_err();
    assert!(full.to_string().contains("wait"), "{full}");
}

#[test]
fn reload_applies_order_of_queues() {
    let (_, applied) = apply(
        "waiting: {bands: {a: batch, 'b*': 5}, fair_by: tenant}",
        "waiting: {bands: {'b*': 5, a: batch}, weights: {'tenant:a': 2}, max_starvation: 5s}",
    );
    let changed = ["waiting.bands", "waiting.fair_by", "waiting.weights", "waiting.max_starvation"];
    assert_eq!(applied.changed, changed);
    assert_eq!(applied.needs_restart, [""; 0]);
}

/// Returns the order in which a request of each key is granted, under a full key `m`.
async fn granted_order(limiter: &Limiter, keys: [&'static str; 3]) -> Vec<&'static str> {
    let open = limiter.acquire("m", &Cost::new()).await.unwrap();
    let order = std::cell::RefCell::new(Vec::new());
    let wait = async |key: &'static str| {
        let permit = limiter.acquire_all(&["m", key], &Cost::new()).await.unwrap();
        order.borrow_mut().push(key);
        permit.release();
    };
    let [first, second, third] = keys.map(wait);
    let release = async {
        tokio::task::yield_now().await;
        open.release();
    };
    tokio::join!(first, second, third, release);
    order.into_inner()
}

#[tokio::test]
async fn reload_changes_order_of_later_requests() {
    let text =
        |bands: &str| format!("{{quotas: {{m: {{concurrency: 1}}}}, waiting: {{bands: {bands}}}}}");
    let keys = ["tenant:night", "other", "tenant:chat"];
    let limiter = Config::parse(&text("{}")).unwrap().builder().build().unwrap();
    assert_eq!(granted_order(&limiter, keys).await, keys);
    let bands = text("{'tenant:chat': interactive, 'tenant:*': batch}");
    let (limiter, _) = apply(&text("{}"), &bands);
    assert_eq!(granted_order(&limiter, keys).await, ["tenant:chat", "other", "tenant:night"]);
    let limiter = Config::parse(&bands).unwrap().builder().build().unwrap();
    assert_eq!(granted_order(&limiter, keys).await, ["tenant:chat", "other", "tenant:night"]);
}

#[test]
fn reload_adds_providers_and_reports_needed_restarts() {
    let (limiter, applied) = apply("providers: [anthropic]", "providers: [anthropic, openai]");
    assert_eq!(amount(&limiter, "gpt-4o"), Some(500));
    assert_eq!((applied.changed, applied.needs_restart), (vec!["providers".to_owned()], vec![]));
    for (before, after, path) in [
        ("providers: [openai]", "providers: []", "providers"),
        ("providers: [openai, groq]", "providers: [groq, openai]", "providers"),
        ("{}", "share: 0.5", "share"),
        ("{}", "margin: {percent: 3}", "margin"),
        ("{}", "retry: {attempts: 2}", "retry"),
        ("{}", "waiting: {max_wait: 1s}", "waiting.max_wait"),
        ("{}", "store: {yaml: a}", "store"),
        ("store: {yaml: a}", "store: {yaml: a, flush: 2s}", "store"),
        ("{}", "bus: {redis: 'redis://h'}", "bus"),
        ("bus: {redis: 'redis://h'}", "bus: {redis: 'redis://h', agent_id: b}", "bus"),
        ("{}", "cluster: {redis: 'redis://h', account: a}", "cluster"),
        (
            "cluster: {redis: 'redis://h', account: a}",
            "cluster: {redis: 'redis://h', account: a, lease: 1s}",
            "cluster",
        ),
        (
            "quotas: {'a': {regex: true}, 'b': {regex: true}}",
            "quotas: {'b': {regex: true}, 'a': {regex: true}}",
            "quotas (the order of regular expressions)",
        ),
    ] {
        assert_eq!(apply(before, after).1.needs_restart, [path], "{before} -> {after}");
    }
    let example = super::EXAMPLE;
    assert_eq!(apply(example, example).1, Applied::default());
}

#[test]
fn watched_file_applies_valid_and_refuses_invalid_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    fs::write(&path, "quotas: {a: {rpm: 1}}").unwrap();
    let loaded = config::check(&path).unwrap();
    let limiter = loaded.config.builder().build().unwrap();
    let (sender, statuses) = mpsc::channel();
    let sender = move |status: &ReloadStatus| sender.send(status.clone()).unwrap();
    let reloading = Reloader::start_with(&loaded, &limiter, |config| config, sender).unwrap();
    let next = || statuses.recv_timeout(Duration::from_secs(60)).expect("the change is seen");

    fs::write(&path, "quotas: {a: {rpm: 2}}\nshare: 0.5\n").unwrap();
    assert_eq!((next().needs_restart, amount(&limiter, "a")), (vec!["share".to_owned()], Some(2)));

    fs::write(&path, "quotas: {a: {rpm: -1}}").unwrap();
    let refused = next().refused.expect("the file is refused").to_string();
    assert!(refused.contains("t.yaml:1:19: quotas.a.rpm: must be a whole number"), "{refused}");
    assert_eq!(amount(&limiter, "a"), Some(2));
    fs::write(&path, "").unwrap();
    assert!(
        next()
            .refused
            .expect("the file is refused")
            .to_string()
            .ends_with("the file is empty; write `{}` for the defaults")
    );

    let other = folder.path().join("next.yaml");
    fs::write(&other, "quotas: {a: {rpm: 3}}").unwrap();
    fs::rename(&other, &path).unwrap();
    let status = next();
    assert_eq!((status.reloads, amount(&limiter, "a")), (2, Some(3)));
    assert!(status.refused.is_none() && status.needs_restart.is_empty());
    assert_eq!(reloading.status().config.quotas, status.config.quotas);
}

/// A limiter whose file is watched, with adjustments by the program.
struct WatchedLimiter {
    path: PathBuf,
    limiter: Limiter,
    statuses: mpsc::Receiver<ReloadStatus>,
    reloading: Arc<Reloader>,
    _folder: tempfile::TempDir,
}

impl WatchedLimiter {
    fn start(text: &str, adjust: fn(Config) -> Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.yaml");
        fs::write(&path, text).unwrap();
        let loaded = config::check(&path).unwrap();
        let limiter = adjust(loaded.config.clone()).builder().build().unwrap();
        let (sender, statuses) = mpsc::channel();
        let sender = move |status: &ReloadStatus| sender.send(status.clone()).unwrap();
        let reloading = Reloader::start_with(&loaded, &limiter, adjust, sender).unwrap();
        Self { path, limiter, statuses, reloading: Arc::new(reloading), _folder: folder }
    }

    /// Replaces the file by this text and returns the reported status.
    fn replace_file(&self, text: &str) -> ReloadStatus {
        let next = self.path.with_extension("next");
        fs::write(&next, text).unwrap();
        fs::rename(&next, &self.path).unwrap();
        self.statuses.recv_timeout(Duration::from_secs(60)).expect("the change is seen")
    }
}

#[test]
fn file_truncated_before_first_limit_is_refused() {
    let watched = WatchedLimiter::start("# A comment.\nquotas:\n  a: {rpm: 1}\n", |config| config);
    for (text, why) in [
        ("# A comment.\n", "t.yaml: the file is empty; write `{}` for the defaults"),
        ("---\n", "t.yaml: the file is empty; write `{}` for the defaults"),
        (
            "# A comment.\nquotas:\n",
            "t.yaml: the configuration limits nothing; set `providers`, `quotas` or",
        ),
        ("{}", "t.yaml: the configuration limits nothing; set `providers`, `quotas` or"),
    ] {
        let refused = watched.replace_file(text).refused.expect(text).to_string();
        assert!(refused.contains(why), "{text}: {refused}");
        assert_eq!(amount(&watched.limiter, "a"), Some(1), "{text}");
    }
    // Quotas set by the program stay, so a file without limits is accepted.
    watched.limiter.quotas().set("mine", &Quota::new().rpm(7)).unwrap();
    let status = watched.replace_file("quotas: {}");
    assert!(status.refused.is_none(), "{status:?}");
    assert_eq!(["a", "mine"].map(|key| amount(&watched.limiter, key)), [None, Some(7)]);
}

#[test]
fn adjustments_of_program_apply_to_every_reload() {
    let first = |mut config: Config| {
        config.providers.insert(0, paceline::provider::GROQ);
        config.unknown_key = UnknownKey::Refuse;
        config
    };
    let watched = WatchedLimiter::start("quotas: {a: {rpm: 1}}", first);
    let status = watched.replace_file("quotas: {a: {rpm: 2}}\nproviders: [openai]\n");
    assert_eq!(status.changed, ["providers", "quotas.a"]);
    assert!(status.needs_restart.is_empty() && status.refused.is_none(), "{status:?}");
    let names: Vec<_> = status.config.providers.iter().map(|profile| profile.name()).collect();
    assert_eq!(names, ["groq", "openai"]);
    assert_eq!(["a", "gpt-4o"].map(|key| amount(&watched.limiter, key)), [Some(2), Some(500)]);
    assert!(watched.limiter.try_acquire("other", &Cost::new()).is_err());
    // Together with the adjustments of the program, this file has a limit.
    let status = watched.replace_file("share: 0.5");
    assert!(
        status.refused.is_none() && status.needs_restart == ["providers", "share"],
        "{status:?}"
    );
}

#[test]
fn needed_restart_is_reported_until_resolved() {
    let text =
        |fields: &str| format!("quotas: {{a: {{regex: true}}, b: {{regex: true}}}}\n{fields}");
    let watched = WatchedLimiter::start(&text("share: 0.5\nproviders: [groq]"), |config| config);
    let needs = |text: &str| watched.replace_file(text).needs_restart;
    assert_eq!(needs(&text("share: 1\nproviders: [groq, openai]")), ["share"]);
    assert_eq!(needs(&text("share: 1\nproviders: [groq]")), ["providers", "share"]);
    assert!(needs(&text("share: 0.5\nproviders: [groq, openai]")).is_empty());
    // From now on, the limiter tries `a` after `b`.
    let one = "quotas: {b: {regex: true}}\nshare: 0.5\nproviders: [groq, openai]";
    assert!(needs(one).is_empty());
    let order = "quotas (the order of regular expressions)";
    assert_eq!(needs(&text("share: 0.5\nproviders: [groq, openai]")), [order]);
}

#[test]
fn waiter_is_admitted_when_reload_raises_limit() {
    let watched = WatchedLimiter::start("quotas: {a: {rpd: 1}}", |config| config);
    let limiter = watched.limiter.clone();
    limiter.try_acquire("a", &Cost::new()).unwrap().settle(&Cost::new());
    let (cost, (done, granted)) = (Cost::new(), mpsc::channel());
    let waiting = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        done.send(runtime.block_on(limiter.acquire("a", &cost)).is_ok()).unwrap();
    });
    while watched.limiter.stats("a").waiting == 0 {
        std::thread::yield_now();
    }
    assert!(granted.try_recv().is_err());
    watched.replace_file("quotas: {a: {rpd: 2}}");
    assert_eq!(granted.recv_timeout(Duration::from_secs(60)), Ok(true));
    waiting.join().unwrap();
}

#[test]
fn listener_may_read_reload_status() {
    let watched = WatchedLimiter::start("quotas: {a: {rpm: 1}}", |config| config);
    let reloading = Arc::downgrade(&watched.reloading);
    let (sender, received) = mpsc::channel();
    watched.limiter.listen(move |_| {
        let status = reloading.upgrade().expect("reloading is alive").status();
        sender.send(status.reloads).unwrap();
    });
    assert_eq!(watched.replace_file("quotas: {a: {rpm: 2}}").reloads, 1);
    assert_eq!(received.try_recv(), Ok(0), "the reload was in progress");
}

#[cfg(unix)]
#[test]
fn pipe_is_read_once_and_not_watched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let pipe = path.clone();
    let writer = std::thread::spawn(move || fs::write(pipe, "quotas: {a: {rpm: 1}}"));
    let loaded = config::check(&path).unwrap();
    writer.join().unwrap().unwrap();
    let limiter = loaded.config.builder().build().unwrap();
    let (sender, statuses) = mpsc::channel();
    let sender = move |status: &ReloadStatus| sender.send(status.clone()).unwrap();
    let _reloading = Reloader::start_with(&loaded, &limiter, |config| config, sender).unwrap();
    assert!(statuses.recv().is_err(), "the sender is dropped");
}

#[test]
fn reloading_does_not_keep_the_limiter_alive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    fs::write(&path, "quotas: {a: {rpm: 1}}").unwrap();
    let loaded = config::check(&path).unwrap();
    let limiter = loaded.config.builder().build().unwrap();
    let weak = limiter.downgrade();
    seam::attach(&limiter, Arc::new(Reloader::start(&loaded, &limiter).unwrap()));
    drop(limiter);
    assert!(weak.upgrade().is_none());
}
