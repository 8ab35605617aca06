//! The section `serve` of the configuration file.

use std::time::Duration;

use paceline::provider::{ANTHROPIC, OPENAI};
use paceline_config::{self as config, Applied, Config, LoadOptions, Override};
use paceline_serve::{KeySource, Serve, ServeError, ServeMode, Server, Tokens};
use serde_json::Value;

/// The example of the docs, which has every section.
const EXAMPLE: &str = include_str!("../../../../crates/config/src/example.yaml");

fn parse(text: &str) -> Config {
    paceline_serve::parse(text).unwrap_or_else(|error| panic!("{text}\nis refused:\n{error}"))
}

fn serve_section(text: &str) -> Serve {
    Serve::of(&parse(text)).unwrap().clone()
}

/// Asserts that the text has one error, which starts with `problem`.
#[track_caller]
fn assert_refused(text: &str, problem: &str) {
    let error = paceline_serve::parse(text).expect_err(text).to_string();
    assert_eq!(error.lines().count(), 1, "{text}\nshould have one problem:\n{error}");
    assert!(error.starts_with(&format!("config:{problem}")), "{text}\nfails with\n{error}");
}

/// Applies the text `after` to a limiter built from `before`.
fn apply(before: &str, after: &str) -> Applied {
    let before = parse(before);
    parse(after).apply(&before, &before.builder().build().unwrap())
}

#[test]
fn example_serve_section_is_read() {
    let serve = serve_section(EXAMPLE);
    assert_eq!(serve.listen.to_string(), "127.0.0.1:8080");
    let key = &serve.keys[0];
    assert!(key.regex.is_some() && key.pattern == "user-.*");
    assert_eq!((key.max_requests_per_window, key.max_requests_in_queue), (Some(10), Some(50)));
    assert_eq!(key.window, Some(Duration::from_secs(1)));
    let profiles: Vec<_> = serve.upstreams.iter().map(|upstream| upstream.profile).collect();
    assert_eq!(profiles, [OPENAI, ANTHROPIC]);
    let (name, prefix) = ("x-tenant".parse().unwrap(), "tenant:".into());
    let tenant = KeySource::Header { name, prefix, default: None };
    assert_eq!(serve.scopes, [KeySource::Model, tenant]);
    assert_eq!(serve.mode, ServeMode::Wait);
}

#[test]
fn serve_section_omitted_fields_have_defaults() {
    for text in ["{}", "serve: {}", "serve: ~"] {
        let serve = serve_section(text);
        assert_eq!(serve.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(serve.scopes, [KeySource::Model]);
    }
}

#[test]
fn serve_section_errors_have_line_and_column() {
    assert_refused(
        "serve: {port: 80}",
        "1:9: serve.port: unknown field \"port\"; allowed: listen, allow_anonymous,",
    );
    assert_refused(
        "serve: {mode: drop}",
        "1:15: serve.mode: unknown value \"drop\"; allowed: wait, reject",
    );
    let key = "serve: {keys: [{key_pattern: a, window_millis: 9}]}";
    assert_refused(key, "1:48: serve.keys[0].window_millis: must be from 10 to 3600000, not 9");
    assert_refused(
        "serve: {listen: '127.0.0.1:70000'}",
        "1:17: serve.listen: must be an IP address and a port",
    );
    let key = "serve: {keys: [{key_pattern: '[', key_pattern_is_regex: true}]}";
    assert_refused(key, "1:30: serve.keys[0].key_pattern: invalid regular expression");
    let upstream = |name, provider| {
        format!("serve: {{upstreams: {{{name}: {{base_url: 'http://h', provider: {provider}}}}}}}")
    };
    assert_refused(
        &upstream("a/b", "openai"),
        "1:21: serve.upstreams.\"a/b\": must be a path segment",
    );
    assert_refused(
        &upstream("a", "acme"),
        "1:57: serve.upstreams.a.provider: unknown provider `acme`",
    );
    for (url, problem) in [
        ("https://a:b@h/v1", "must not contain a user name"),
        ("https://h/v1?key=b", "must not contain a query or a fragment"),
        (
            "https://h/v1/chat/completions",
            "must end before the endpoint, which requests add; remove `/chat/completions`",
        ),
        (
            "https://h/v1/messages/",
            "must end before the endpoint, which requests add; remove `/messages`",
        ),
        (
            "https://h/v1beta/models/gemini-2.5-pro:generateContent",
            "must end before the endpoint, which requests add; remove \
             `/models/gemini-2.5-pro:generateContent`",
        ),
    ] {
        let text = format!("serve: {{upstreams: {{a: {{base_url: '{url}', provider: openai}}}}}}");
        assert_refused(&text, &format!("1:35: serve.upstreams.a.base_url: {problem}"));
    }
    assert_refused(
        "serve: {bounds: {body: 100, buffered: 199}}",
        "1:39: serve.bounds.buffered: must be at least twice `body`",
    );
    assert_refused(
        "serve: {bounds: {proxy_keys: 0}}",
        "1:30: serve.bounds.proxy_keys: must be at least 1, not 0",
    );
    assert_refused(
        "serve: {trusted_proxies: ['::1', proxy.local]}",
        "1:34: serve.trusted_proxies[1]: must be an IP address, such as 127.0.0.1 or ::1",
    );
    assert_refused(
        "serve: {scopes: [{header: 'a b'}]}",
        "1:27: serve.scopes[0].header: must be a header name",
    );
    assert_refused(
        "serve: {upstreams: {a: {base_url: 'http://h', provider: vllm, default_model: ''}}}",
        "1:78: serve.upstreams.a.default_model: must not be empty",
    );
}

#[test]
fn scopes_whose_keys_are_the_same_are_refused() {
    let header = |fields| format!("serve: {{scopes: [{fields}]}}");
    for (fields, error) in [
        ("model, {header: x-a}", "serve.scopes[1]"),
        ("{header: x-a, prefix: 't:'}, {header: x-b, prefix: 't:'}", "serve.scopes[0]"),
        ("api_key, {header: x-a, prefix: 'api_key:'}", "serve.scopes[1]"),
        ("{header: Authorization, prefix: 'a:'}", "is needed by the provider"),
        ("{header: x-a, prefix: 'a:', default: ''}", "serve.scopes[0].default: must not be empty"),
        ("{key: a, default: b}", "must be {header, prefix, default}, or {key: NAME}"),
    ] {
        let error_of = paceline_serve::parse(&header(fields)).unwrap_err().to_string();
        assert!(error_of.contains(error), "{fields}: {error_of}");
    }
    for fields in [
        "{header: x-a}, api_key, {key: account}",
        "model, {header: x-a, prefix: 't:'}, {header: x-b, prefix: 't:u:', default: nobody}",
    ] {
        assert!(paceline_serve::parse(&header(fields)).is_ok(), "{fields}");
    }
}

#[test]
fn base_url_may_end_in_any_other_path() {
    for url in
        ["https://h", "https://h/v1/", "https://h/models", "https://h/chat", "http://completions"]
    {
        parse(&format!("serve: {{upstreams: {{a: {{base_url: '{url}', provider: openai}}}}}}"));
    }
}

#[test]
fn serve_section_errors_omit_passwords() {
    for url in ["redis://:hunter2@h:bad", "http://:hunter2@h", "redis://:hunter2@"] {
        for text in [
            format!(
                "serve: {{listen: '{url}', upstreams: {{a: {{base_url: '{url}', provider: '{url}'}}}}}}"
            ),
            "serve: {upstreams: {a: {base_url: 'http://k:hunter2@h', provider: openai}}}"
                .to_owned(),
            "serve: {upstreams: {a: {base_url: 'http://h/?k=hunter2', provider: openai}}}"
                .to_owned(),
        ] {
            let error = paceline_serve::parse(&text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter2"), "{text}: {shown}");
        }
    }
}

#[test]
fn flags_and_variables_override_serve_section() {
    let variables = [
        ("PACELINE_SERVE__UPSTREAMS__Mine__BASE_URL", "http://h"),
        ("PACELINE_SERVE__UPSTREAMS__Mine__PROVIDER", "openai"),
    ];
    let listen = |value| {
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let options = LoadOptions::new().with_sections(paceline_serve::sections());
        let flag = Override::new("--listen", &["serve", "listen"], value);
        config::load(&options.with_environment(variables).with_override(flag))
    };
    let loaded = listen("127.0.0.1:0").unwrap();
    assert_eq!(Serve::of(&loaded.config).unwrap().upstreams[0].name, "Mine");
    let shown = loaded.to_json();
    let shown = |path: &str| {
        let row = shown.as_array().unwrap().iter().find(|row| row["path"] == path).unwrap();
        (row["value"].clone(), row["origin"].clone())
    };
    assert_eq!(shown("serve.listen"), ("127.0.0.1:0".into(), "--listen".into()));
    assert_eq!(shown("serve.mode"), ("wait".into(), "built-in".into()));
    let error = listen("here").unwrap_err().to_string();
    assert!(error.starts_with("--listen: serve.listen: must be an IP address"), "{error}");
}

#[test]
fn schema_describes_serve_section() {
    let schema = config::schema_with(&paceline_serve::sections());
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    for (name, object) in schema["$defs"].as_object().unwrap() {
        let Some(properties) = object["properties"].as_object() else { continue };
        assert_eq!(object["additionalProperties"], false, "{name}");
        for (field, schema) in properties {
            assert!(schema["description"].is_string(), "{name}.{field} has no description");
        }
    }
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let valid = |text: &str| validator.is_valid(&serde_yaml::from_str::<Value>(text).unwrap());
    for text in [EXAMPLE, "serve: {}", "serve: ~", "serve: {scopes: [], keys: [{key_pattern: a}]}"]
    {
        assert!(valid(text) && paceline_serve::parse(text).is_ok(), "{text}");
    }
    for text in [
        "serve: {mode: drop}",
        "serve: {keys: [{key_pattern: a, window_millis: 9}]}",
        "serve: {scopes: [tenant]}",
        "serve: 5",
    ] {
        assert!(!valid(text) && paceline_serve::parse(text).is_err(), "{text}");
    }
}

#[test]
fn rate_limits_and_log_switches_are_reloaded() {
    assert_eq!(apply(EXAMPLE, EXAMPLE), Applied::default());
    let before = "serve: {max_requests: 1, drain: 1s, log: {log4xx: false}}";
    let reloadable =
        "serve: {max_requests: 2, keys: [{key_pattern: a}], drain: 1s, log: {log4xx: true}}";
    let applied = apply(before, reloadable);
    assert_eq!((applied.changed, applied.needs_restart.len()), (vec!["serve".to_owned()], 0));
    for restart in ["drain: 2s", "drain: 1s, log: {level: warn}", "drain: 1s, mode: reject"] {
        let applied = apply(before, &format!("serve: {{max_requests: 1, {restart}}}"));
        assert_eq!((applied.changed.len(), applied.needs_restart), (0, vec!["serve".to_owned()]));
    }
}

#[test]
fn upstream_providers_follow_listed_providers() {
    const QUOTAS: &str = "quotas: {gpt-4o: {rpm: 5}}";
    const SERVE: &str = "serve: {upstreams: {
        a: {base_url: 'http://h', provider: openai}, b: {base_url: 'http://h', provider: openai},
        c: {base_url: 'http://h', provider: anthropic}}}";
    let served = paceline_serve::limiter(&parse(&format!("{QUOTAS}\n{SERVE}"))).unwrap();
    let named = parse(&format!("{QUOTAS}\nproviders: [openai, anthropic]")).limiter().unwrap();
    let alone = parse(QUOTAS).limiter().unwrap();
    let profile =
        |limiter: &paceline::Limiter, key| Some(limiter.quotas().rules_of(key)?.name().to_owned());
    for key in ["gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5", "tenant"] {
        assert_eq!(served.quotas().of(key), named.quotas().of(key), "{key}");
        assert_eq!(profile(&served, key), profile(&named, key), "{key}");
    }
    assert_eq!(profile(&alone, "gpt-4o"), None);
    let mixed =
        paceline_serve::limiter(&parse(&format!("providers: [anthropic]\n{SERVE}"))).unwrap();
    assert_eq!(profile(&mixed, "tenant").as_deref(), Some("anthropic"));
}

#[tokio::test]
async fn bind_without_serve_section_is_an_error() {
    let config = Config::parse("serve: {listen: '127.0.0.1:0'}").unwrap();
    assert!(matches!(paceline_serve::limiter(&config), Err(ServeError::MissingSection)));
    let limiter = config.builder().build().unwrap();
    let bound = Server::bind(config, limiter, Tokens::default()).await;
    assert!(matches!(bound, Err(ServeError::MissingSection)));
}
