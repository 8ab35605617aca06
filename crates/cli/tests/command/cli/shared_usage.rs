//! `show`, `check` and `reset` with limits that are shared between machines.

use std::sync::Arc;

use paceline::cluster::Shared;
use paceline::limiter::Limiter;
use paceline::quota::{Algorithm, Cost, Quota};
use paceline_testing::servers::Redis;
use serde_json::Value;

use super::rig::{CommandOutput, TestHome};

/// Another machine with the same quotas, which has used 7 of 10 requests of `gpt-4o` and 3 of `tenant:7`.
async fn other_machine(url: &str) -> Limiter {
    let shared = Shared::builder(url, "team-a").connect().expect("a connection");
    let quota = || Quota::new().rpd(10).with_algorithm(Algorithm::SlidingWindow);
    let limiter = Limiter::builder()
        .quota("gpt-4o", quota())
        .quota("tenant:*", quota())
        .backend(Arc::clone(&shared) as _)
        .build()
        .expect("a limiter");
    for (key, requests) in [("gpt-4o", 7), ("tenant:7", 3)] {
        let cost = Cost::new().requests(requests);
        limiter.acquire(key, &cost).await.expect("it fits").settle(&cost);
    }
    limiter
}

fn home(url: &str) -> TestHome {
    let home = TestHome::new();
    let quota = "{rpd: 10, algorithm: sliding_window}";
    let text = format!(
        "quotas: {{gpt-4o: {quota}, \"tenant:*\": {quota}}}\n\
         cluster: {{redis: '{url}', account: team-a, timeout: 1s}}\n"
    );
    home.write("t.yaml", &text);
    home
}

async fn run(home: &Arc<TestHome>, arguments: &str) -> CommandOutput {
    let (home, arguments) = (Arc::clone(home), format!("{arguments} --config t.yaml"));
    tokio::task::spawn_blocking(move || home.run(&arguments)).await.expect("it runs")
}

fn used(output: &CommandOutput) -> Vec<(String, u64)> {
    let shown = output.json();
    let used = |key: &Value| {
        assert!(key["as_of"].is_string(), "{key}");
        let used = key["limits"][0]["used"].as_u64().expect("an amount");
        (key["key"].as_str().expect("a key").to_owned(), used)
    };
    shown["keys"].as_array().expect("keys").iter().map(used).collect()
}

#[tokio::test]
async fn commands_ask_the_store_of_shared_limits() {
    let redis = Redis::start();
    let _other = other_machine(&redis.url()).await;
    let home = Arc::new(home(&redis.url()));

    let shown = run(&home, "show --json").await;
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{shown:?}");
    assert_eq!(used(&shown), [("gpt-4o".to_owned(), 7)]);
    assert_eq!(shown.json()["outage"], Value::Null);
    let shown = run(&home, "show tenant:7 --json").await;
    assert_eq!(used(&shown), [("tenant:7".to_owned(), 3)]);
    let text = run(&home, "show gpt-4o").await.stdout;
    assert!(text.contains("7 / 10") && !text.contains("shared usage"), "{text}");

    for (arguments, code, available) in [
        ("check gpt-4o 0 --requests 3", 0, 3),
        ("check gpt-4o 0 --requests 4", 1, 3),
        ("check tenant:7 0 --requests 8", 1, 7),
    ] {
        let checked = run(&home, &format!("{arguments} --json")).await;
        assert_eq!((checked.code, checked.stderr.as_str()), (Some(code), ""), "{checked:?}");
        assert_eq!(checked.json()["limits"][0]["available"], available, "{arguments}");
    }
    // Nothing was taken.
    assert_eq!(used(&run(&home, "show gpt-4o --json").await), [("gpt-4o".to_owned(), 7)]);
}

#[tokio::test]
async fn reset_applies_to_shared_limits_of_all_machines() {
    let redis = Redis::start();
    let other = other_machine(&redis.url()).await;
    let home = Arc::new(home(&redis.url()));
    for (arguments, expected) in [("reset tenant:7", (7, 0)), ("reset --all", (0, 0))] {
        let reset = run(&home, arguments).await;
        assert_eq!((reset.code, reset.stderr.as_str()), (Some(0), ""), "{reset:?}");
        other.state().refresh(&["gpt-4o", "tenant:7"]).await;
        let used = |key| other.stats(key).limits[0].used;
        assert_eq!((used("gpt-4o"), used("tenant:7")), expected, "{arguments}");
    }
    let unknown = run(&home, "reset gpt4o").await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    let expected = format!(
        "paceline: gpt4o: no such key in {} for the account team-a; did you mean gpt-4o?\n",
        redis.url()
    );
    assert_eq!(unknown.stderr, expected);
}

#[tokio::test]
async fn unavailable_store_of_shared_limits_is_error() {
    let home = Arc::new(home("redis://:hunter2@127.0.0.1:1"));
    for arguments in [
        "show",
        "show --watch",
        "check gpt-4o 5",
        "check gpt-4o 5 --json",
        "reset gpt-4o",
        "reset --all",
    ] {
        let output = run(&home, arguments).await;
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{arguments}: {output:?}");
        let expected = "paceline: the limits shared at redis://***@127.0.0.1:1 for the account team-a are \
                        unavailable: connection refused: no server listens at this address; start the server, \
                        or correct the host and the port\n";
        assert_eq!(output.stderr, expected, "{arguments}");
    }
}

#[tokio::test]
async fn store_that_does_not_answer_or_admit_is_error() {
    let mut frozen = Redis::start();
    frozen.server().freeze();
    let locked = Redis::start();
    let mut admin = redis::Client::open(locked.url()).unwrap().get_connection().unwrap();
    redis::cmd("CONFIG").arg("SET").arg("requirepass").arg("hunter2").exec(&mut admin).unwrap();
    for (url, cause) in [(frozen.url(), "respond in time"), (locked.url(), "password")] {
        let checked = run(&Arc::new(home(&url)), "check gpt-4o 5").await;
        assert_eq!((checked.code, checked.stdout.as_str()), (Some(2), ""), "{checked:?}");
        let expected = format!(
            "paceline: the limits shared at {url} for the account team-a are unavailable: "
        );
        let is_named = checked.stderr.starts_with(&expected) && checked.stderr.contains(cause);
        assert!(is_named && checked.stderr.lines().count() == 1, "{}", checked.stderr);
    }
}

/// The last known usage is shown with its age.
#[cfg(unix)]
#[tokio::test]
async fn watched_usage_has_its_age_while_the_store_is_away() {
    let mut redis = Redis::start();
    let _other = other_machine(&redis.url()).await;
    let home = home(&redis.url());
    let mut command = home.paceline("show gpt-4o --watch --json --config t.yaml");
    let watched = tokio::task::spawn_blocking(move || {
        let mut process = paceline_testing::process::InteractiveProcess::start(&mut command);
        let mut next = || -> Value {
            serde_json::from_str(&process.read_line().expect("a line")).expect("JSON")
        };
        let first = next();
        redis.server().kill();
        let later = std::iter::repeat_with(next).find(|shown| !shown["outage"].is_null());
        (first, later.expect("an outage"))
    });
    let (first, later) = watched.await.expect("it ends");
    assert_eq!(
        (&first["outage"], &first["keys"][0]["limits"][0]["used"]),
        (&Value::Null, &7.into())
    );
    let outage = later["outage"].as_str().expect("a cause");
    assert!(!outage.is_empty());
    assert_eq!(later["keys"][0]["limits"][0]["used"], 7);
    let times = [&later["keys"][0]["as_of"], &later["at"]]
        .map(|time| time.as_str().expect("a time").to_owned());
    assert!(times[0] < times[1], "{times:?}: {outage}");
}
