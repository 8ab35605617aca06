//! Shared limits and a bus, by configuration only.

use std::path::PathBuf;
use std::time::Duration;

use paceline::limiter::{Code, Measured, RateLimited};
use paceline::{Cost, Limiter};
use paceline_config::{self as config, Config};
use tempfile::TempDir;

use paceline_limiter::seam;
use paceline_testing::servers::{Nats, Redis};
use paceline_testing::tls_servers::{Authority, TlsRedis};
use paceline_testing::until;

/// Machines that use the same configuration file.
struct Fleet {
    folder: TempDir,
}

impl Fleet {
    fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("paceline.yaml"), text).unwrap();
        Self { folder }
    }

    fn machine(&self) -> Limiter {
        config::open(self.path("paceline.yaml")).unwrap().limiter
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn shared(redis: &str, more: &str) -> String {
    format!("cluster: {{redis: '{redis}', account: a, timeout: 2s, {more}}}\n")
}

/// Sends one request and returns true if it was admitted.
fn take(limiter: &Limiter) -> bool {
    limiter.try_acquire("m", &Cost::new()).map(|permit| permit.settle(&Cost::new())).is_ok()
}

#[tokio::test]
async fn machines_of_one_file_share_one_limit() {
    for mode in ["mode: exact", "mode: lease", "mode: exact, spread: true"] {
        let redis = Redis::start();
        let text = format!("quotas: {{m: {{rpd: 30}}}}\n{}", shared(&redis.url(), mode));
        let fleet = Fleet::of(&text);
        let machines = [(); 3].map(|()| fleet.machine());
        let mut taken = 0;
        for round in 0..30 {
            taken += u32::from(take(&machines[round % 3]));
        }
        // Closing returns the leased amounts that others have not used.
        let [a, b, c] = machines;
        a.close().await;
        b.close().await;
        while taken < 30 && take(&c) {
            taken += 1;
        }
        assert_eq!(taken, 30, "{mode}");
        assert!(!take(&c), "{mode}: the limit is exceeded by one");
        let refused = c.try_acquire("m", &Cost::new()).unwrap_err();
        assert_eq!(refused.code, Code::RpdExceeded, "{mode}");
    }
}

#[test]
fn accounts_have_separate_limits() {
    let redis = Redis::start();
    let of = |account: &str| {
        let cluster =
            shared(&redis.url(), "").replace("account: a", &format!("account: '{account}'"));
        Config::parse(&format!("quotas: {{m: {{rpd: 1}}}}\n{cluster}")).unwrap().limiter().unwrap()
    };
    let limiters = ["a", "b", "{a}", "a}:m", "ä"].map(of);
    assert!(limiters.iter().all(take) && !limiters.iter().any(take));
}

#[test]
fn unreachable_server_follows_on_failure_policy() {
    let mut redis = Redis::start();
    redis.server().kill();
    let url = redis.url().replace("redis://", "redis://:hunter2@");
    for (on_failure, first, second) in
        [("closed", false, false), ("open", true, true), ("local_share", true, false)]
    {
        let text = format!("quotas: {{m: {{rpd: 1}}}}\nbus: {{redis: '{url}'}}\n");
        let cluster = shared(&url, &format!("on_failure: {on_failure}"));
        let limiter = Config::parse(&format!("{text}{cluster}")).unwrap().limiter().unwrap();
        assert_eq!((take(&limiter), take(&limiter)), (first, second), "{on_failure}");
        assert!(!format!("{limiter:?}").contains("hunter2"));
    }
}

#[tokio::test]
async fn store_keeps_quotas_and_pauses_but_not_shared_usage() {
    for store in ["sqlite: state.db", "yaml: state.yaml"] {
        let redis = Redis::start();
        let text = format!(
            "quotas: {{m: {{rpd: 5}}, n: {{rpm: 9}}}}\nstore: {{{store}, flush: 10ms}}\n{}",
            shared(&redis.url(), "")
        );
        let fleet = Fleet::of(&text);
        let first = fleet.machine();
        assert!(take(&first) && take(&first) && take(&first));
        first.quotas().set("mine", &paceline::Quota::new().rpm(7)).unwrap();
        first.feedback().rate_limited("n", &RateLimited::new(Some(Duration::from_secs(600))));
        first.close().await;
        drop(first);
        let second = fleet.machine();
        assert!(take(&second), "{store}: counting twice would refuse this request");
        assert_eq!(second.stats("m").limits[0].used, 4, "{store}");
        assert!(take(&second), "{store}");
        assert!(!take(&second), "{store}");
        assert_eq!(second.quotas().of("mine").limits().len(), 1, "{store}");
        assert!(second.stats("n").cooling_until.is_some(), "{store}");
        second.close().await;
        drop(second);
        // Nor does the store contain the usage when it is read without the server.
        let alone = text.lines().filter(|line| !line.starts_with("cluster")).collect::<Vec<_>>();
        std::fs::write(fleet.path("paceline.yaml"), alone.join("\n")).unwrap();
        assert_eq!(fleet.machine().stats("m").limits[0].used, 0, "{store}");
    }
}

#[test]
fn refusals_are_announced_on_configured_bus() {
    let (redis, nats) = (Redis::start(), Nats::start());
    for bus in [format!("redis: '{}'", redis.url()), format!("nats: '{}'", nats.url())] {
        let fleet = Fleet::of(&format!("quotas: {{'m*': {{rpm: 100}}}}\nbus: {{{bus}}}\n"));
        let (here, there) = (fleet.machine(), fleet.machine());
        let received = there.subscribe();
        // Messages published before the subscription are lost.
        let mut keys = (0..).map(|n| format!("m{n}"));
        until(&bus, || {
            let key = keys.next().unwrap();
            here.feedback().rate_limited(&key, &RateLimited::new(Some(Duration::from_secs(60))));
            !received.is_empty()
        });
        until(&bus, || {
            there.state().stats().iter().any(|(_, stats)| stats.cooling_until.is_some())
        });
        until(&bus, || there.state().stats().iter().any(|(_, stats)| stats.limits[0].limit == 50));
    }
}

#[test]
fn bus_and_shared_limits_work_together() {
    let redis = Redis::start();
    let text = format!(
        "quotas: {{m: {{rpm: 100}}}}\nbus: {{redis: '{}'}}\n{}",
        redis.url(),
        shared(&redis.url(), "")
    );
    let fleet = Fleet::of(&text);
    let (here, there) = (fleet.machine(), fleet.machine());
    assert!((0..60).all(|_| take(&here)));
    until("the reduction is received", || {
        here.feedback().rate_limited("m", &RateLimited::new(Some(Duration::from_millis(1))));
        there.stats("m").limits[0].limit == 50
    });
    until("the cool-down ends", || there.stats("m").cooling_until.is_none());
    assert!(!take(&there), "60 of 50 are used in total");
}

#[test]
fn agent_id_is_configured_or_generated() {
    let redis = Redis::start();
    let text =
        format!("quotas: {{m: {{rpm: 100}}}}\nbus: {{redis: '{}', agent_id: one}}\n", redis.url());
    let config = Config::parse(&text).unwrap();
    let limiter = config.builder().build().unwrap();
    let agent = config.join(&limiter).unwrap().unwrap();
    assert_eq!(agent.id(), "one");
    let unnamed = Config::parse(&text.replace(", agent_id: one", "")).unwrap();
    let agents = [(); 2].map(|()| unnamed.join(&limiter).unwrap().unwrap());
    assert_ne!(agents[0].id(), agents[1].id(), "generated ids differ");
}

#[test]
fn configuration_names_certificate_files_relative_to_itself() {
    let authority = Authority::new();
    authority.issue("server", "127.0.0.1", 2200);
    authority.issue("client", "client", 2200);
    let redis = TlsRedis::start(&authority, "server", "yes", &[]);
    let (url, tls) = (
        format!("rediss://{}", redis.address()),
        "{ca: ca.pem, cert: client.pem, key: client-key.pem}",
    );
    let text = format!(
        "quotas: {{m: {{rpd: 1}}}}\ncluster: {{redis: '{url}', account: a, timeout: 2s, tls: {tls}}}\n\
         bus: {{redis: '{url}', tls: {tls}}}"
    );
    std::fs::write(authority.path("paceline.yaml"), text).unwrap();
    let one = config::open(authority.path("paceline.yaml")).unwrap().limiter;
    let other = config::open(authority.path("paceline.yaml")).unwrap().limiter;
    let is_connected = |limiter: &Limiter| {
        let status = limiter.state().backend_status().unwrap();
        let measured = seam::measurements(limiter);
        let bus =
            measured.iter().find(|measured| measured.name == "paceline_bus_connected").unwrap();
        status.connected && bus.value == Measured::Flag(true)
    };
    until("both are connected", || is_connected(&one) && is_connected(&other));
    assert!(one.try_acquire("m", &Cost::new()).is_ok());
    assert!(other.try_acquire("m", &Cost::new()).is_err());
}
