//! A Redis Cluster for the tests: three masters on free ports of 127.0.0.1, with a replica each if
//! requested.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use redis::{Cmd, Connection, FromRedisValue, cmd};

use paceline_testing::servers::Redis;

/// Three masters that share the slots evenly.
#[derive(Debug)]
pub(super) struct RedisCluster {
    masters: Vec<Node>,
    replicas: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    redis: Redis,
    /// The port of the cluster bus.
    bus: u16,
    id: String,
}

impl RedisCluster {
    pub(super) fn start() -> Self {
        let masters: Vec<_> = (0..MASTERS).map(|_| Node::start()).collect();
        for (at, node) in masters.iter().enumerate() {
            let (first, last) = (at * SLOTS / MASTERS, (at + 1) * SLOTS / MASTERS - 1);
            node.ask::<()>(cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(first).arg(last));
            node.meet(&masters[0]);
        }
        let cluster = Self { masters, replicas: Vec::new() };
        cluster.wait_for("cluster_known_nodes:3");
        cluster.wait_for("cluster_slots_assigned:16384");
        cluster.wait_for("cluster_state:ok");
        cluster
    }

    /// Starts a cluster with a replica of each master, which takes over about two seconds after a
    /// failure.
    pub(super) fn with_replicas() -> Self {
        let mut cluster = Self::start();
        cluster.replicas = (0..MASTERS).map(|_| Node::start()).collect();
        cluster.replicas.iter().for_each(|replica| replica.meet(&cluster.masters[0]));
        cluster.wait_for("cluster_known_nodes:6");
        for (replica, master) in cluster.replicas.iter().zip(&cluster.masters) {
            let follow = || replica.try_ask::<()>(cmd("CLUSTER").arg("REPLICATE").arg(&master.id));
            until("the replica knows its master", || follow().is_ok());
        }
        let follows = |replica: &Node| {
            let role = replica.ask::<String>(cmd("INFO").arg("replication"));
            role.contains("master_link_status:up")
        };
        until("the replicas are up to date", || cluster.replicas.iter().all(follows));
        // Masters vote only for replicas that they know.
        let knows = |master: &Node| {
            let nodes = master.ask::<String>(cmd("CLUSTER").arg("NODES"));
            nodes.matches(" slave ").count() == MASTERS
        };
        until("the masters know the replicas", || cluster.masters.iter().all(knows));
        cluster.wait_for("cluster_state:ok");
        cluster
    }

    /// Returns the URL of all masters, including stopped ones.
    pub(super) fn url(&self) -> String {
        let addresses: Vec<_> =
            self.masters.iter().map(|node| node.address().to_string()).collect();
        format!("redis-cluster://{}", addresses.join(","))
    }

    /// Returns the slot of a key.
    pub(super) fn slot(&self, key: &str) -> u16 {
        self.masters[0].ask(cmd("CLUSTER").arg("KEYSLOT").arg(key))
    }

    /// Returns the number of the master of a slot.
    pub(super) fn master_of(&self, slot: u16) -> usize {
        let mut owner = None;
        until("all nodes agree on the owner of the slot", || {
            let views = self.masters.iter().filter_map(|node| node.owner_of(slot));
            let views: Vec<_> = views.collect();
            owner = views.first().cloned().flatten();
            owner.is_some() && views.iter().all(|view| *view == owner)
        });
        self.masters.iter().position(|node| Some(&node.id) == owner.as_ref()).expect("a master")
    }

    /// Moves a slot and its keys to another master, key by key, as `redis-cli --cluster reshard`
    /// does; meanwhile both masters serve the slot.
    pub(super) fn move_slot(&self, slot: u16, to: usize) {
        let (from, to) = (&self.masters[self.master_of(slot)], &self.masters[to]);
        let set = |node: &Node, state: &str, id: &str| {
            node.ask::<()>(cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(state).arg(id));
        };
        set(to, "IMPORTING", &from.id);
        set(from, "MIGRATING", &to.id);
        while let Some(key) = from.keys(slot).first() {
            let (host, port) = (to.address().ip().to_string(), to.address().port());
            from.ask::<()>(cmd("MIGRATE").arg(host).arg(port).arg(key).arg(0).arg(5_000));
        }
        [to, from].into_iter().for_each(|node| set(node, "NODE", &to.id));
        let others = self.masters.iter().filter(|node| node.id != to.id && node.id != from.id);
        others.for_each(|node| set(node, "NODE", &to.id));
    }

    /// Kills a master without a shutdown.
    pub(super) fn kill(&mut self, master: usize) {
        self.masters[master].redis.server().kill();
    }

    /// Restarts a killed master, with its slots but without their keys.
    pub(super) fn restart(&mut self, master: usize) {
        self.masters[master].redis.restart();
        self.wait_for("cluster_state:ok");
    }

    /// Waits until the replica of a master has become master.
    pub(super) fn wait_for_failover(&self, master: usize) {
        let replica = &self.replicas[master];
        let role = || replica.ask::<String>(cmd("INFO").arg("replication"));
        until("a replica takes over", || {
            replica.info("cluster_state:ok") && role().contains("role:master")
        });
    }

    /// Waits until the replica of a master has all its writes. The key must be in a slot of the
    /// master.
    pub(super) fn wait_for_replica(&self, master: usize, key: &str) {
        let mut connection = self.masters[master].connect().unwrap();
        // `WAIT` covers the last write of this connection.
        let () = cmd("SET").arg(key).arg("").query(&mut connection).unwrap();
        let acknowledged: u64 = cmd("WAIT").arg(1).arg(0).query(&mut connection).unwrap();
        assert_eq!(acknowledged, 1);
    }

    /// Waits until all nodes report this cluster state.
    fn wait_for(&self, expected: &str) {
        let nodes = || self.masters.iter().chain(&self.replicas);
        until(expected, || nodes().all(|node| node.info(expected)));
    }
}

impl Node {
    fn start() -> Self {
        let bus = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let redis = Redis::with(&[
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &bus.to_string(),
            "--cluster-node-timeout",
            "1000",
            // The slots of a stopped master do not affect the others.
            "--cluster-require-full-coverage",
            "no",
            "--cluster-replica-validity-factor",
            "0",
            "--repl-diskless-sync-delay",
            "0",
        ]);
        let mut node = Self { redis, bus, id: String::new() };
        node.id = node.ask(cmd("CLUSTER").arg("MYID"));
        node
    }

    fn address(&self) -> SocketAddr {
        self.redis.url().trim_start_matches("redis://").parse().unwrap()
    }

    fn meet(&self, other: &Self) {
        let (host, port) = (other.address().ip().to_string(), other.address().port());
        self.ask::<()>(cmd("CLUSTER").arg("MEET").arg(host).arg(port).arg(other.bus));
    }

    fn info(&self, expected: &str) -> bool {
        self.try_ask::<String>(cmd("CLUSTER").arg("INFO")).is_ok_and(|info| info.contains(expected))
    }

    /// Returns the master of a slot as known to this node; `None` if the node is stopped.
    fn owner_of(&self, slot: u16) -> Option<Option<String>> {
        let nodes: String = self.try_ask(cmd("CLUSTER").arg("NODES")).ok()?;
        let owns = |line: &&str| {
            let mut ranges = line.split(' ').skip(8).filter(|range| !range.starts_with('['));
            ranges.any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                (first.parse::<u16>().unwrap()..=last.parse().unwrap()).contains(&slot)
            })
        };
        Some(nodes.lines().find(owns).and_then(|line| line.split(' ').next()).map(str::to_owned))
    }

    fn keys(&self, slot: u16) -> Vec<Vec<u8>> {
        self.ask(cmd("CLUSTER").arg("GETKEYSINSLOT").arg(slot).arg(1))
    }

    fn ask<T: FromRedisValue>(&self, command: &Cmd) -> T {
        self.try_ask(command).unwrap_or_else(|error| panic!("{:?}: {error}", self.address()))
    }

    fn try_ask<T: FromRedisValue>(&self, command: &Cmd) -> redis::RedisResult<T> {
        command.query(&mut self.connect()?)
    }

    fn connect(&self) -> redis::RedisResult<Connection> {
        redis::Client::open(self.redis.url())?.get_connection_with_timeout(PATIENCE)
    }
}

fn until(event: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{event}: not within {PATIENCE:?}");
        // Each check opens a connection, so leave the servers time for each other.
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

const MASTERS: usize = 3;

const SLOTS: usize = 16_384;

/// Long enough for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn moved_slot_keeps_keys_when_old_master_dies() {
    let mut cluster = RedisCluster::start();
    let client = redis::cluster::ClusterClient::new([cluster.masters[0].redis.url()]).unwrap();
    let mut connection = client.get_connection().unwrap();
    for key in ["{a}:1", "{a}:2", "b", "c"] {
        let () = cmd("SET").arg(key).arg(key).query(&mut connection).unwrap();
    }
    let slot = cluster.slot("{a}");
    let (from, to) = (cluster.master_of(slot), (cluster.master_of(slot) + 1) % MASTERS);
    cluster.move_slot(slot, to);
    assert_eq!(cluster.master_of(slot), to);
    let both: Vec<String> = cmd("MGET").arg(&["{a}:1", "{a}:2"]).query(&mut connection).unwrap();
    assert_eq!(both, ["{a}:1", "{a}:2"]);
    cluster.kill(from);
    assert_eq!(cluster.masters[to].ask::<String>(cmd("GET").arg("{a}:1")), "{a}:1");
    cluster.restart(from);
    assert_eq!(cluster.master_of(slot), to);
}

#[test]
fn replica_takes_over_from_dead_master() {
    let mut cluster = RedisCluster::with_replicas();
    let slot = cluster.slot("a");
    let master = cluster.master_of(slot);
    cluster.kill(master);
    cluster.wait_for_failover(master);
    cluster.replicas[master].ask::<()>(cmd("SET").arg("a").arg(1));
}
