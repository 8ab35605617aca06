use super::{messages_of, problems_of};

/// Asserts that the text is refused with one problem that starts like this.
#[track_caller]
fn refuses(text: &str, problem: &str) {
    let messages = messages_of(text);
    assert_eq!(messages.len(), 1, "{text}\nshould have one problem:\n{}", messages.join("\n"));
    assert!(
        messages[0].starts_with(problem),
        "{text}
    gives
    {}
    and should give
    {problem}",
        messages[0]
    );
}

#[test]
fn unknown_fields_are_refused_with_position_and_suggestion() {
    refuses(
        "quotas:\n  gpt-4o: {rpm: 5, tmp: 9}",
        "2:20: quotas.gpt-4o.tmp: unknown field \"tmp\" (did you mean `tpm`?); allowed: rpm, tpm,",
    );
    refuses("quota: {}", "1:1: quota: unknown field \"quota\" (did you mean `quotas`?)");
    refuses(
        "providers: [open-ai]",
        "1:13: providers[0]: unknown value \"open-ai\" (did you mean `openai`?); allowed: openai,",
    );
    refuses(
        "unknown_key: deny",
        "1:14: unknown_key: unknown value \"deny\"; allowed: allow, refuse",
    );
}

#[test]
fn wrong_types_are_refused_with_expected_type() {
    let whole = "must be a whole number from 0 to 18446744073709551615, not";
    for (value, shown) in [
        ("-5", "-5"),
        ("1.5", "1.5"),
        ("1e3", "1e3"),
        ("18446744073709551616", "18446744073709551616"),
        ("'5'", "\"5\""),
        ("5k", "\"5k\""),
        ("1_000", "\"1_000\""),
        ("true", "true"),
        ("[5]", "a list"),
        ("{a: 5}", "a map"),
        (".nan", "NaN"),
    ] {
        let text = format!("quotas: {{gpt-4o: {{rpm: {value}}}}}");
        refuses(&text, &format!("1:24: quotas.gpt-4o.rpm: {whole} {shown}"));
    }
    refuses("quotas: [a]", "1:9: quotas: must be a map of names to values, not a list");
    refuses("quotas: {a: }", "1:11: quotas.a: must be a map of rpm, tpm,");
    refuses("waiting: 5", "1:10: waiting: must be a map of max_waiting, max_wait, not 5");
    refuses("providers: openai", "1:12: providers: must be a list, not \"openai\"");
    refuses("providers: [5]", "1:13: providers[0]: must be a name or a map, not");
    refuses("- a\n", "1:1: must be a map of providers, quotas,");
    refuses("5", "1:1: must be a map of");
    refuses("share: half", "1:8: share: must be a number, not \"half\"");
    refuses("store: {sqlite: 5}", "1:17: store.sqlite: must be a string (put it in quotes), not 5");
    refuses("quotas: {'a*': {shared: 1}}", "1:25: quotas.a*.shared: must be true or false, not 1");
}

#[test]
fn durations_need_a_unit_and_have_bounds() {
    refuses("waiting: {max_wait: 5}", "1:21: waiting.max_wait: must be a duration with units");
    refuses("waiting: {max_wait: 1.5s}", "1:21: waiting.max_wait: must be a duration");
    refuses("waiting: {max_wait: -1s}", "1:21: waiting.max_wait: must be a duration");
    refuses("waiting: {max_wait: 1y}", "1:21: waiting.max_wait: must be a duration");
    refuses("waiting: {max_wait: 400d}", "1:21: waiting.max_wait: must be at most 366d");
    refuses(
        "store: {yaml: a, flush: 0s}",
        "1:25: store.flush: must be from 10ms to 3600s, not 0ns",
    );
    refuses(
        "reduction: {recovery_interval: 999ms}",
        "1:32: reduction.recovery_interval: must be from",
    );
    refuses("margin: {lag: 2h}", "1:15: margin.lag: must be from 0ns to 3600s, not 7200s");
}

#[test]
fn numbers_have_bounds() {
    for share in ["0", "-0.5", "1.01", ".nan", ".inf", "1e-400"] {
        refuses(&format!("share: {share}"), "1:8: share: must be above 0 and at most 1, not");
    }
    refuses(
        "quotas: {a: {share: 2}}",
        "1:21: quotas.a.share: must be above 0 and at most 1, not 2",
    );
    refuses("reduction: {factor: 1}", "1:21: reduction.factor: must be above 0 and below 1, not 1");
    refuses("reduction: {factor: 0}", "1:21: reduction.factor: must be above 0 and below 1, not 0");
    refuses(
        "reduction: {recovery_factor: 1}",
        "1:30: reduction.recovery_factor: must be from 1.01",
    );
    refuses("retry: {attempts: 0}", "1:19: retry.attempts: must be from 1 to 100, not 0");
    refuses(
        "quotas: {a: {rpm: 1, margin: {percent: 100}}}",
        "1:40: quotas.a.margin.percent: must be from 0 to 99, not 100",
    );
    refuses("margin: {percent: 100}", "1:19: margin.percent: must be from 0 to 99, not 100");
    refuses("margin: {percent: 300}", "1:19: margin.percent: must be a whole number from 0 to 255");
}

/// Returns a file with a limit of these fields.
fn limit(fields: &str) -> String {
    format!("quotas:\n  a:\n    limits:\n    - {{{fields}}}")
}

#[test]
fn invalid_limits_are_refused() {
    let base = "dimension: tokens, limit: 5";
    let refuses_limit = |fields: &str, problem: &str| refuses(&limit(fields), problem);
    refuses_limit("limit: 5, window: 1s", "4:7: quotas.a.limits[0]: `dimension` is missing");
    refuses_limit(base, "4:7: quotas.a.limits[0]: `window` is missing");
    for (fields, problem) in [
        (
            "window: 60s, zone: UTC",
            "zone: only allowed with a window of day, week or month, not 1m",
        ),
        ("window: day", "window: a calendar window needs a `zone`"),
        ("window: day, zone: Mars/Base", "zone: unknown time zone \"Mars/Base\""),
        ("window: day, zone: UTC, burst: 5", "burst: not allowed with a calendar"),
        ("window: day, zone: UTC, algorithm: sliding_window", "algorithm: not allowed with"),
        ("window: 1m, burst: 5, algorithm: fixed_window", "burst: only a token bucket has a burst"),
        ("window: 1m, burst: 0", "burst: must be at least 1"),
        ("window: 0s", "window: must be from 1ms to 366d, not 0s"),
        ("window: 367d", "window: must be at most 366d"),
        ("window: fortnight", "window: must be a duration"),
        ("window: 1m, algorithm: leaky", "algorithm: unknown value \"leaky\"; allowed: token_"),
    ] {
        let messages = messages_of(&limit(&format!("{base}, {fields}")));
        let start = format!("quotas.a.limits[0].{problem}");
        assert!(messages.len() == 1 && messages[0].contains(&start), "{fields}: {messages:?}");
    }
    let flight = limit("dimension: concurrency, limit: 5, window: 1m");
    refuses(&flight, "4:50: quotas.a.limits[0].window: not allowed for requests in flight");
    let slip = limit("dimension: token, limit: 5, window: 1m");
    refuses(&slip, "4:19: quotas.a.limits[0].dimension: unknown dimension \"token\" (did you mean");
    let twice = "quotas: {a: {rpm: 5, limits: [{dimension: requests, limit: 7, window: 60s}]}}";
    refuses(twice, "1:31: quotas.a.limits[0]: duplicate limit of this dimension and window");
}

#[test]
fn invalid_names_are_refused() {
    refuses("quotas: {'': {rpm: 5}}", "1:10: quotas.\"\": a key must not be empty");
    refuses("quotas: {a: {shared: true}}", "1:22: quotas.a.shared: only allowed for a glob");
    refuses(
        "quotas: {'(': {regex: true}}",
        "1:10: quotas.\"(\": invalid regular expression: unclosed",
    );
    refuses("quotas: {'regex:a': {rpm: 5}}", "1:10: quotas.regex:a: write the expression without");
    refuses("unknown_key: {regex: true}", "1:22: unknown_key.regex: not allowed here");
    refuses("providers: [groq, groq]", "1:19: providers[1]: duplicate provider \"groq\"");
    refuses(
        "providers: [{name: groq, like: openai}]",
        "1:20: providers[0].name: provider name `groq`: a built-in provider has it",
    );
}

#[test]
fn store_and_bus_accept_exactly_one_backend() {
    refuses("store: {sqlite: a, yaml: b}", "1:26: store.yaml: not allowed together with `sqlite`");
    refuses("store: {flush: 1s}", "1:8: store: no file given; set `sqlite` or `yaml`");
    refuses("store: {sqlite: ''}", "1:17: store.sqlite: must be the path of a file");
    refuses("store: {sqlite: ~/a.db}", "1:17: store.sqlite: `~` is not expanded");
    refuses("bus: {}", "1:6: bus: no server given; set `nats` or `redis`");
    refuses(
        "bus: {nats: 'http://h'}",
        "1:13: bus.nats: must be a URL with one of the schemes nats, tls, ws, wss",
    );
    for url in
        ["h:6379", "redis://", "redis://h:99999", "'redis://h:x'", "redis//h", "'redis://a b'"]
    {
        refuses(&format!("bus: {{redis: {url}}}"), "1:14: bus.redis: must be a URL with a scheme");
    }
    refuses("cluster: {account: a}", "1:10: cluster: `redis` is missing");
    refuses(
        "cluster: {redis: 'redis://h', account: ''}",
        "1:40: cluster.account: must not be empty",
    );
    let long = "a".repeat(129);
    refuses(
        &format!("cluster: {{redis: 'redis://h', account: {long}}}"),
        "1:40: cluster.account: must be at most 128 bytes long",
    );
    refuses("bus: {nats: 'nats://h', agent_id: ''}", "1:35: bus.agent_id: must not be empty");
}

#[test]
fn cluster_settings_have_bounds() {
    let cluster = |more: &str| format!("cluster: {{redis: 'redis://h', account: a, {more}}}");
    let refuses = |more: &str, problem: &str| {
        refuses(&cluster(more), &format!("1:{}: cluster.{problem}", 44 + more.find(' ').unwrap()))
    };
    refuses("timeout: 0s", "timeout: must be from 1ms to 60s, not 0ns");
    refuses("lease: 99ms", "lease: must be from 100ms to 60s, not 99ms");
    refuses("lease: 2m", "lease: must be from 100ms to 60s, not 120s");
    refuses("reservation_ttl: 999ms", "reservation_ttl: must be from 1s to 3600s, not 999ms");
    refuses("mode: both", "mode: unknown value \"both\"; allowed: exact, lease");
    refuses(
        "on_failure: halt",
        "on_failure: unknown value \"halt\"; allowed: closed, open, local_",
    );
    refuses("spread: yes", "spread: must be true or false, not \"yes\"");
}

#[test]
fn several_hosts_are_accepted_for_clusters_and_sentinels() {
    let refuses = |url: &str, problem: &str| {
        let text = format!("cluster: {{redis: '{url}', account: a}}");
        refuses(&text, &format!("1:18: cluster.redis: {problem}"));
    };
    for url in ["redis://h:1,h:2", "redis://h,i", "rediss://h:1,h:2", "redis-cluster//h", "h:1"] {
        refuses(url, "must be a URL with a scheme, a host and optionally a port");
    }
    for hosts in ["", "h:1,", ",h:1", "h:1,,h:2", "h:1,h:x", "h:1,h:99999"] {
        let hosts = format!("redis-cluster://{hosts}");
        refuses(&hosts, "must be a URL with a scheme and hosts, each optionally with a port");
    }
    refuses("unix:///tmp/s", "must be a URL with a scheme, a host");
    refuses(
        "nats://h",
        "must be a URL with one of the schemes redis, rediss, redis-cluster, redis-sentinel",
    );
    for url in ["redis-sentinel://h:1,h:2", "redis-sentinel://h:1/", "redis-sentinel://h:1/?a=b"] {
        refuses(url, "must end with the name of the master");
    }
    for url in ["redis-cluster://u:p@[::1]:1,h,i:2", "redis-sentinel://:p@h:1,i/main"] {
        super::good(&format!("cluster: {{redis: '{url}', account: a}}"));
    }
}

#[test]
fn all_problems_are_reported_in_file_order() {
    let text = "\
quotas:
  a: {rpm: -1, tmp: 5}
  b: {limits: [{dimension: tokens, limit: 5}, {dimension: tokens, limit: 5, window: 0s}]}
waiting: {max_wait: 5}
share: 2
a_section: {}
waiting: {}
";
    let places: Vec<_> = problems_of(text)
        .iter()
        .map(|problem| {
            let at = problem.origin.position().unwrap();
            (at.line, problem.path.clone())
        })
        .collect();
    let expected = [
        (2, "quotas.a.rpm"),
        (2, "quotas.a.tmp"),
        (3, "quotas.b.limits[0]"),
        (3, "quotas.b.limits[1].window"),
        (4, "waiting.max_wait"),
        (5, "share"),
        (6, "a_section"),
        (7, "waiting"),
    ];
    assert_eq!(places, expected.map(|(line, path)| (line, path.to_owned())));
}

#[test]
fn invalid_value_is_not_also_reported_as_missing() {
    refuses("store: {sqlite: 5}", "1:17: store.sqlite: must be a string");
    refuses("cluster: {redis: 5, account: a}", "1:18: cluster.redis: must be a string");
    let first = "quotas: {a: {limits: [{dimension: 5, limit: 1, window: 1m}, \
                 {dimension: tokens, limit: 1, window: 9y}]}}";
    let paths: Vec<_> = problems_of(first).into_iter().map(|problem| problem.path).collect();
    assert_eq!(paths, ["quotas.a.limits[0].dimension", "quotas.a.limits[1].window"]);
}
