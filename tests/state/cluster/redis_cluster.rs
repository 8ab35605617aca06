//! Shared limits in a Redis Cluster: slots that move, and masters that are killed.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use paceline::cluster::{OnFailure, Shared, SharedBuilder};
use paceline::limiter::{Backend, Code, Limiter};
use paceline::quota::{Cost, Margin, Quota};

use super::redis_cluster_server::RedisCluster;
use super::shared::{closed, limiter};
use paceline_testing::until;

/// Returns three machines with one shared limit, for requests under several keys.
fn machines(builder: &SharedBuilder) -> [(Limiter, Arc<Shared>); 3] {
    [(); 3].map(|()| {
        let shared = builder.clone().connect().unwrap();
        let backend = Arc::clone(&shared) as Arc<dyn Backend>;
        let all = Limiter::builder().margin(Margin::NONE).quota("all", Quota::new().rpd(LIMIT));
        let each = all.quota("model-*", Quota::new().rpd(10 * LIMIT).tpd(10 * LIMIT));
        (each.backend(backend).build().unwrap(), shared)
    })
}

/// Sends requests until the limit is exceeded and counts them. Requests refused for an unavailable
/// server are retried.
fn take_all(limiter: &Limiter, taken: &AtomicUsize) {
    for round in 0.. {
        let model = format!("model-{}", round % 3);
        match limiter.acquire_all(&[&*model, "all"], &Cost::new().tokens(1)).try_now() {
            Ok(permit) => {
                taken.fetch_add(1, Ordering::Relaxed);
                permit.settle(&Cost::new().tokens(1));
            }
            Err(refused) if refused.code == Code::RpdExceeded => return,
            Err(refused) => assert_eq!(refused.code, Code::Unavailable, "{refused}"),
        }
    }
}

#[test]
fn slot_moved_during_requests_changes_no_decision() {
    for spread in [false, true] {
        let cluster = RedisCluster::start();
        let builder = closed(&cluster.url());
        let builder = if spread { builder.spread() } else { builder };
        let machines = machines(&builder);
        let (taken, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        let slot =
            cluster.slot(if spread { "paceline:{account/all}" } else { "paceline:{account}:all" });
        let mut moves = 0;
        thread::scope(|scope| {
            let takers =
                machines.each_ref().map(|(limiter, _)| scope.spawn(|| take_all(limiter, &taken)));
            let mover = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    cluster.move_slot(slot, (cluster.master_of(slot) + 1) % 3);
                    moves += 1;
                    let before = taken.load(Ordering::Relaxed);
                    until("requests go on", || {
                        done.load(Ordering::Relaxed) || taken.load(Ordering::Relaxed) > before + 30
                    });
                }
            });
            for taker in takers {
                taker.join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
            mover.join().unwrap();
        });
        assert_eq!(taken.into_inner() as u64, LIMIT, "spread: {spread}, {moves} moves");
        assert!(moves > 1, "the slot moved during requests");
        let statuses = machines.each_ref().map(|(_, shared)| shared.status());
        println!("spread: {spread}: {moves} moves, {statuses:?}");
    }
}

#[test]
fn unresponsive_host_does_not_hide_the_others() {
    let cluster = RedisCluster::start();
    let hole = TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = cluster.url().replace("redis-cluster://", "");
    let url = format!("redis-cluster://{},{hosts}", hole.local_addr().unwrap());
    let shared = closed(&url).connect().unwrap();
    until("the cluster is found", || shared.status().connected);
    assert!(limiter(&shared, Quota::new().rpd(1)).try_acquire("k", &Cost::new()).is_ok());
}

#[test]
fn dead_master_affects_only_accounts_of_own_slots() {
    let mut cluster = RedisCluster::start();
    let master = |account: &str| cluster.master_of(cluster.slot(&format!("{{{account}}}")));
    let dead = master("account");
    let other = (0..).map(|n| format!("other-{n}")).find(|other| master(other) != dead).unwrap();
    let [here, there] = ["account", &*other].map(|account| {
        let builder = Shared::builder(cluster.url(), account).on_failure(OnFailure::Closed);
        builder.timeout(std::time::Duration::from_secs(2)).connect().unwrap()
    });
    let limiters = [&here, &there].map(|shared| limiter(shared, Quota::new().rpd(LIMIT)));
    let take = |limiter: &Limiter| limiter.try_acquire("k", &Cost::new()).map(drop);
    assert!(limiters.iter().all(|limiter| take(limiter).is_ok()));
    cluster.kill(dead);
    assert_eq!(take(&limiters[0]).unwrap_err().code, Code::Unavailable);
    let granted = (0..).take_while(|_| take(&limiters[1]).is_ok()).count();
    assert_eq!(
        (granted as u64, there.status().degraded_closed),
        (LIMIT - 1, 0),
        "the other account works"
    );
    cluster.restart(dead);
    until("the master is back", || take(&limiters[0]).is_ok());
    // One was taken before and one just now; the server knows only what the limiter reports again.
    let granted = (0..).take_while(|_| take(&limiters[0]).is_ok()).count();
    assert_eq!(granted as u64, LIMIT - 2, "the master returned empty without granting quota twice");
}

#[test]
fn replica_continues_with_usage_of_master() {
    let mut cluster = RedisCluster::with_replicas();
    let slot = cluster.slot("{account}");
    let master = cluster.master_of(slot);
    let shared = closed(&cluster.url()).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(LIMIT));
    let take = || limiter.try_acquire("k", &Cost::new()).map(drop).is_ok();
    assert!((0..LIMIT / 2).all(|_| take()));
    cluster.wait_for_replica(master, "{account}:last");
    cluster.kill(master);
    cluster.wait_for_failover(master);
    until("the replica has taken over", take);
    let rest = (0..).take_while(|_| take()).count();
    assert_eq!(rest as u64, LIMIT / 2 - 1, "the replica knows the usage");
}

const LIMIT: u64 = 300;
