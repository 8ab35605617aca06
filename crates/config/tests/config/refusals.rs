use super::{parse_messages, parse_problems};

/// Asserts that the text is refused with a single problem that starts with `problem`.
#[track_caller]
pub(super) fn assert_refused(text: &str, problem: &str) {
    let messages = parse_messages(text);
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
    assert_refused(
        "quotas:\n  gpt-4o: {rpm: 5, tmp: 9}",
        "2:20: quotas.gpt-4o.tmp: unknown field \"tmp\" (did you mean `tpm`?); allowed: rpm, tpm,",
    );
    assert_refused("quota: {}", "1:1: quota: unknown field \"quota\" (did you mean `quotas`?)");
    assert_refused(
        "providers: [open-ai]",
        "1:13: providers[0]: unknown value \"open-ai\" (did you mean `openai`?); allowed: openai,",
    );
    assert_refused(
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
        assert_refused(&text, &format!("1:24: quotas.gpt-4o.rpm: {whole} {shown}"));
    }
    assert_refused("quotas: [a]", "1:9: quotas: must be a map of names to values, not a list");
    assert_refused("quotas: {a: }", "1:11: quotas.a: must be a map of rpm, tpm,");
    assert_refused("waiting: 5", "1:10: waiting: must be a map of max_waiting, max_wait, bands,");
    assert_refused("providers: openai", "1:12: providers: must be a list, not \"openai\"");
    assert_refused("providers: [5]", "1:13: providers[0]: must be a name or a map, not");
    assert_refused("- a\n", "1:1: must be a map of providers, quotas,");
    assert_refused("5", "1:1: must be a map of");
    assert_refused("share: half", "1:8: share: must be a number, not \"half\"");
    assert_refused(
        "store: {sqlite: 5}",
        "1:17: store.sqlite: must be a string (put it in quotes), not 5",
    );
    assert_refused(
        "quotas: {'a*': {shared: 1}}",
        "1:25: quotas.a*.shared: must be true or false, not 1",
    );
}

#[test]
fn durations_need_a_unit_and_have_bounds() {
    assert_refused(
        "waiting: {max_wait: 5}",
        "1:21: waiting.max_wait: must be a duration with units",
    );
    assert_refused("waiting: {max_wait: 1.5s}", "1:21: waiting.max_wait: must be a duration");
    assert_refused("waiting: {max_wait: -1s}", "1:21: waiting.max_wait: must be a duration");
    assert_refused("waiting: {max_wait: 1y}", "1:21: waiting.max_wait: must be a duration");
    assert_refused("waiting: {max_wait: 400d}", "1:21: waiting.max_wait: must be at most 366d");
    assert_refused(
        "store: {yaml: a, flush: 0s}",
        "1:25: store.flush: must be from 10ms to 3600s, not 0ns",
    );
    assert_refused(
        "reduction: {recovery_interval: 999ms}",
        "1:32: reduction.recovery_interval: must be from",
    );
    assert_refused("margin: {lag: 2h}", "1:15: margin.lag: must be from 0ns to 3600s, not 7200s");
}

#[test]
fn numbers_have_bounds() {
    assert_refused(
        "quotas: {a: {utilization: 90}}",
        "1:27: quotas.a.utilization: must be above 0 and at most 1, not 90",
    );
    for share in ["0", "-0.5", "1.01", ".nan", ".inf", "1e-400"] {
        assert_refused(
            &format!("share: {share}"),
            "1:8: share: must be above 0 and at most 1, not",
        );
    }
    assert_refused(
        "quotas: {a: {share: 2}}",
        "1:21: quotas.a.share: must be above 0 and at most 1, not 2",
    );
    assert_refused(
        "reduction: {factor: 1}",
        "1:21: reduction.factor: must be above 0 and below 1, not 1",
    );
    assert_refused(
        "reduction: {factor: 0}",
        "1:21: reduction.factor: must be above 0 and below 1, not 0",
    );
    assert_refused(
        "reduction: {recovery_factor: 1}",
        "1:30: reduction.recovery_factor: must be from 1.01",
    );
    assert_refused(
        "reduction: {enabled: false, adaptive: true}",
        "1:39: reduction.adaptive: limits are measured only with enabled: true",
    );
    assert_refused("retry: {attempts: 0}", "1:19: retry.attempts: must be from 1 to 100, not 0");
    assert_refused(
        "quotas: {a: {rpm: 1, margin: {percent: 100}}}",
        "1:40: quotas.a.margin.percent: must be from 0 to 99, not 100",
    );
    assert_refused("margin: {percent: 100}", "1:19: margin.percent: must be from 0 to 99, not 100");
    assert_refused(
        "margin: {percent: 300}",
        "1:19: margin.percent: must be a whole number from 0 to 255",
    );
}

/// Returns a file with a limit of these fields.
#[test]
fn invalid_orders_of_queues_are_refused() {
    let band = "must be interactive, normal, batch or a whole number from -128 to 127, not";
    for (value, shown) in [
        ("urgent", "\"urgent\""),
        ("128", "128"),
        ("-129", "-129"),
        ("1.5", "1.5"),
        ("'1'", "\"1\""),
    ] {
        let text = format!("waiting: {{bands: {{'tenant:a': {value}}}}}");
        assert_refused(&text, &format!("1:31: waiting.bands.tenant:a: {band} {shown}"));
    }
    for (fields, problem) in [
        ("bands: {'': batch}", "1:19: waiting.bands.\"\": a key must not be empty"),
        ("bands: {a: [batch]}", &format!("1:22: waiting.bands.a: {band}")[..34]),
        ("weights: {a: 0}", "1:24: waiting.weights.a: must be at least 1, not 0"),
        (
            "weights: {a: -1}",
            "1:24: waiting.weights.a: must be a whole number from 0 to 4294967295, not -1",
        ),
        ("weights: {'': 1}", "1:21: waiting.weights.\"\": a key must not be empty"),
        ("fair_by: ''", "1:20: waiting.fair_by: must be a kind of keys, the part before the colon"),
        ("fair_by: 'tenant:'", "1:20: waiting.fair_by: must be a kind of keys"),
        (
            "max_starvation: 0s",
            "1:27: waiting.max_starvation: must be from 10ms to 86400s, not 0ns",
        ),
        ("max_starvation: 30", "1:27: waiting.max_starvation: must be a duration"),
        ("band: {}", "1:11: waiting.band: unknown field \"band\" (did you mean `bands`?)"),
    ] {
        assert_refused(&format!("waiting: {{{fields}}}"), problem);
    }
    assert_refused("quotas: {a: {weight: 0}}", "1:22: quotas.a.weight: must be at least 1, not 0");
    assert_refused(
        "waiting: {bands: {'regex:(': batch}}",
        "1:19: waiting.bands.\"regex:(\": invalid regular expression",
    );
}

#[test]
fn invalid_money_is_refused() {
    for (text, problem) in [
        (
            "quotas: {a: {usd_per_day: 0.0000001}}",
            "1:27: quotas.a.usd_per_day: 0.0000001: has more than six decimals; the smallest amount is 0.000001",
        ),
        (
            "quotas: {a: {usd_per_day: -1}}",
            "1:27: quotas.a.usd_per_day: -1: not an amount of dollars",
        ),
        ("quotas: {a: {usd_per_day: much}}", "1:27: quotas.a.usd_per_day: "),
        ("prices: {file: missing.json}", "1:16: prices.file: cannot read missing.json: "),
        ("prices: {models: {m: {input: 1}}}", "1:22: prices.models.m: `output` is missing"),
        (
            "prices: {models: {'': {input: 1, output: 1}}}",
            "1:19: prices.models.\"\": the name of a model",
        ),
    ] {
        assert_refused(text, problem);
    }
    let text = limit("dimension: tokens, limit: 2.5, window: 60s");
    assert_refused(
        &text,
        "4:34: quotas.a.limits[0].limit: must be a whole number; only `usd` has decimals",
    );
}

fn limit(fields: &str) -> String {
    format!("quotas:\n  a:\n    limits:\n    - {{{fields}}}")
}

#[test]
fn invalid_limits_are_refused() {
    let base = "dimension: tokens, limit: 5";
    let assert_limit_refused =
        |fields: &str, problem: &str| assert_refused(&limit(fields), problem);
    assert_limit_refused("limit: 5, window: 1s", "4:7: quotas.a.limits[0]: `dimension` is missing");
    assert_limit_refused(base, "4:7: quotas.a.limits[0]: `window` is missing");
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
        let messages = parse_messages(&limit(&format!("{base}, {fields}")));
        let start = format!("quotas.a.limits[0].{problem}");
        assert!(messages.len() == 1 && messages[0].contains(&start), "{fields}: {messages:?}");
    }
    let in_flight = limit("dimension: concurrency, limit: 5, window: 1m");
    assert_refused(
        &in_flight,
        "4:50: quotas.a.limits[0].window: not allowed for requests in flight",
    );
    let typo = limit("dimension: token, limit: 5, window: 1m");
    assert_refused(
        &typo,
        "4:19: quotas.a.limits[0].dimension: unknown dimension \"token\" (did you mean",
    );
    let twice = "quotas: {a: {rpm: 5, limits: [{dimension: requests, limit: 7, window: 60s}]}}";
    assert_refused(twice, "1:31: quotas.a.limits[0]: duplicate limit of this dimension and window");
}

#[test]
fn invalid_names_are_refused() {
    assert_refused("quotas: {'': {rpm: 5}}", "1:10: quotas.\"\": a key must not be empty");
    assert_refused("quotas: {a: {shared: true}}", "1:22: quotas.a.shared: only allowed for a glob");
    assert_refused(
        "quotas: {'(': {regex: true}}",
        "1:10: quotas.\"(\": invalid regular expression: unclosed",
    );
    assert_refused(
        "quotas: {'regex:a': {rpm: 5}}",
        "1:10: quotas.regex:a: write the expression without",
    );
    assert_refused("unknown_key: {regex: true}", "1:22: unknown_key.regex: not allowed here");
    assert_refused("providers: [groq, groq]", "1:19: providers[1]: duplicate provider \"groq\"");
    assert_refused(
        "providers: [{name: groq, like: openai}]",
        "1:20: providers[0].name: provider name `groq`: a built-in provider has it",
    );
}

#[test]
fn account_limits_need_a_provider_that_states_them() {
    for (fields, problem) in [
        (
            "name: groq, limits_from: provider",
            "limits_from: provider groq: no API states the limits",
        ),
        ("name: openai, limits_from: provider", "project: OpenAI states the limits of a project"),
        ("name: openai, limits_from: file", "limits_from: unknown value \"file\""),
        ("name: openai, project: proj_a", "project: needs `limits_from: provider`"),
        (
            "name: anthropic, limits_from: provider, project: a",
            "project: provider anthropic has no",
        ),
        (
            "name: anthropic, limits_from: provider, workspace: 'a b'",
            "workspace: must be an identifier",
        ),
        ("name: anthropic, limits_from: provider, refresh: 1s", "refresh: must be from 10s to 1d"),
    ] {
        let text = format!("providers: [{{{fields}}}]");
        let error = paceline_config::Config::parse(&text).unwrap_err().to_string();
        assert!(error.contains(&format!("providers[0].{problem}")), "{fields}: {error}");
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
    let places: Vec<_> = parse_problems(text)
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
    assert_refused("store: {sqlite: 5}", "1:17: store.sqlite: must be a string");
    assert_refused("cluster: {redis: 5, account: a}", "1:18: cluster.redis: must be a string");
    let cluster = "cluster: {redis: 'redis://h', account: a}";
    for total in ["usd_total: 5", "tokens_total: 5", "requests_total: 5"] {
        let message = "1:13: quotas.a: a limit that never resets is not possible with `cluster`";
        assert_refused(&format!("quotas: {{a: {{{total}}}}}\n{cluster}"), message);
    }
    let first = "quotas: {a: {limits: [{dimension: 5, limit: 1, window: 1m}, \
                 {dimension: tokens, limit: 1, window: 9y}]}}";
    let paths: Vec<_> = parse_problems(first).into_iter().map(|problem| problem.path).collect();
    assert_eq!(paths, ["quotas.a.limits[0].dimension", "quotas.a.limits[1].window"]);
}

#[test]
fn mode_of_quota_that_contradicts_its_wait_is_refused() {
    assert_refused(
        "quotas: {a: {mode: reject, max_wait: 5s}}",
        "1:20: quotas.a.mode: `reject` waits for nothing, and `max_wait` is above 0s; remove one",
    );
    assert_refused(
        "quotas: {a: {mode: wait, max_wait: 0s}}",
        "1:20: quotas.a.mode: `wait` waits, and a `max_wait` of 0s doesn't; remove one of them",
    );
    assert_refused("quotas: {a: {mode: refuse}}", "1:20: quotas.a.mode: unknown value \"refuse\"");
}
