//! Refused settings of stores, buses and shared limits.

use super::refusals::assert_refused;

#[test]
fn store_and_bus_accept_exactly_one_backend() {
    assert_refused(
        "store: {sqlite: a, yaml: b}",
        "1:26: store.yaml: not allowed together with `sqlite`",
    );
    assert_refused("store: {flush: 1s}", "1:8: store: no file given; set `sqlite` or `yaml`");
    assert_refused("store: {sqlite: ''}", "1:17: store.sqlite: must be the path of a file");
    assert_refused("store: {sqlite: ~/a.db}", "1:17: store.sqlite: `~` is not expanded");
    assert_refused("bus: {}", "1:6: bus: no server given; set `nats` or `redis`");
    assert_refused(
        "bus: {nats: 'http://h'}",
        "1:13: bus.nats: must be a URL with one of the schemes nats, tls, ws, wss",
    );
    for url in
        ["h:6379", "redis://", "redis://h:99999", "'redis://h:x'", "redis//h", "'redis://a b'"]
    {
        assert_refused(
            &format!("bus: {{redis: {url}}}"),
            "1:14: bus.redis: must be a URL with a scheme",
        );
    }
    assert_refused("cluster: {account: a}", "1:10: cluster: `redis` is missing");
    assert_refused(
        "cluster: {redis: 'redis://h', account: ''}",
        "1:40: cluster.account: must not be empty",
    );
    let long = "a".repeat(129);
    assert_refused(
        &format!("cluster: {{redis: 'redis://h', account: {long}}}"),
        "1:40: cluster.account: must be at most 128 bytes long",
    );
    assert_refused(
        "bus: {nats: 'nats://h', agent_id: ''}",
        "1:35: bus.agent_id: must not be empty",
    );
}

#[test]
fn cluster_settings_have_bounds() {
    let cluster = |more: &str| format!("cluster: {{redis: 'redis://h', account: a, {more}}}");
    let assert_cluster_refused = |more: &str, problem: &str| {
        assert_refused(
            &cluster(more),
            &format!("1:{}: cluster.{problem}", 44 + more.find(' ').unwrap()),
        )
    };
    assert_cluster_refused("timeout: 0s", "timeout: must be from 1ms to 60s, not 0ns");
    assert_cluster_refused("lease: 99ms", "lease: must be from 100ms to 60s, not 99ms");
    assert_cluster_refused("lease: 2m", "lease: must be from 100ms to 60s, not 120s");
    assert_cluster_refused(
        "reservation_ttl: 999ms",
        "reservation_ttl: must be from 1s to 3600s, not 999ms",
    );
    assert_cluster_refused("mode: both", "mode: unknown value \"both\"; allowed: exact, lease");
    assert_cluster_refused(
        "on_failure: halt",
        "on_failure: unknown value \"halt\"; allowed: closed, open, local_",
    );
    assert_cluster_refused("spread: yes", "spread: must be true or false, not \"yes\"");
}

#[test]
fn several_hosts_are_accepted_for_clusters_and_sentinels() {
    let assert_url_refused = |url: &str, problem: &str| {
        let text = format!("cluster: {{redis: '{url}', account: a}}");
        assert_refused(&text, &format!("1:18: cluster.redis: {problem}"));
    };
    for url in ["redis://h:1,h:2", "redis://h,i", "rediss://h:1,h:2", "redis-cluster//h", "h:1"] {
        assert_url_refused(url, "must be a URL with a scheme, a host and optionally a port");
    }
    for hosts in ["", "h:1,", ",h:1", "h:1,,h:2", "h:1,h:x", "h:1,h:99999"] {
        let hosts = format!("redis-cluster://{hosts}");
        assert_url_refused(
            &hosts,
            "must be a URL with a scheme and hosts, each optionally with a port",
        );
    }
    assert_url_refused("unix://s", "must be a URL with the absolute path of a socket");
    assert_url_refused(
        "nats://h",
        "must be a URL with one of the schemes redis, rediss, redis-cluster, rediss-cluster,",
    );
    for url in ["redis-sentinel://h:1,h:2", "rediss-sentinel://h:1/", "redis-sentinel://h:1/?a=b"] {
        assert_url_refused(url, "must end with the name of the master");
    }
    for url in [
        "redis-cluster://u:p@[::1]:1,h,i:2",
        "redis-sentinel://:p@h:1,i/main",
        "rediss-cluster://h:1,i:2",
        "valkeys-sentinel://h:1,i/main",
        "valkey://h/2",
        "unix:///tmp/s?db=1",
    ] {
        super::parse_valid(&format!("cluster: {{redis: '{url}', account: a}}"));
    }
}

#[test]
fn client_certificate_and_key_are_set_together() {
    for section in ["cluster: {redis: 'rediss://h', account: a,", "bus: {nats: 'tls://h',"] {
        let name = section.split(':').next().unwrap();
        for (fields, problem) in [
            ("cert: c.pem", "tls: `cert` needs the private key; set `key`"),
            ("key: k.pem", "tls: `key` needs the certificate; set `cert`"),
            ("ca: ''", "tls.ca: must be the path of a file"),
        ] {
            let text = format!("{section} tls: {{{fields}}}}}");
            let error = super::parse_messages(&text).join("\n");
            assert!(error.contains(&format!("{name}.{problem}")), "{error}");
        }
        super::parse_valid(&format!("{section} tls: {{ca: a.pem, cert: c.pem, key: k.pem}}}}"));
    }
}
