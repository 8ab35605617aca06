use paceline_config::{self as config, Config, LoadOptions, Override};

const TEXT: &str = "
bus: {redis: 'redis://:hunter2@127.0.0.1:6379/0'}
cluster: {redis: 'rediss://app:hunter2@cache:6380', account: a}
";

#[test]
fn passwords_are_readable_but_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    std::fs::write(&path, TEXT).unwrap();
    let bus = Override::new("--bus", &["bus"], "{nats: 'nats://hunter2@h'}");
    let loaded = config::load(&LoadOptions::new().with_path(&path).with_override(bus)).unwrap();
    assert!(loaded.config.cluster.as_ref().unwrap().redis.expose().contains("hunter2"));
    for shown in [
        format!("{loaded:?}"),
        format!("{:#?}", loaded.config),
        loaded.show(),
        loaded.to_json().to_string(),
    ] {
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("nats://***@h"), "{shown}");
    }
}

#[test]
fn errors_contain_no_passwords() {
    for url in [
        "redis://:hunter2@h:bad",
        "http://:hunter2@h",
        "redis://:hunter2 @h",
        "redis://:hunter2@",
        "redis-cluster://:hunter2@h:1,h:bad",
        "redis-sentinel://a:hunter2@h:1,b:hunter2@h:2",
    ] {
        for text in [
            format!("bus: {{redis: '{url}'}}"),
            format!("bus: '{url}'"),
            format!("bus: {{'{url}': 1}}"),
            format!("cluster: {{redis: ['{url}'], account: a}}"),
            format!("cluster: {{redis: '{url}'}}"),
            format!("cluster: {{redis: 'redis://h', account: a, mode: '{url}'}}"),
            format!("share: '{url}'"),
            format!(
                "quotas: {{a: {{limits: [{{dimension: '{url}', limit: 1, window: '{url}'}}]}}}}"
            ),
            format!("providers: [{{name: '{url}'}}]"),
            format!("'{url}'"),
            format!("waiting: {{max_wait: '{url}'}}"),
            format!("providers: ['{url}']"),
            format!("providers: [{{name: a, base_url: '{url}'}}]"),
        ] {
            let error = Config::parse(&text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter2"), "{text}: {shown}");
        }
    }
}

#[test]
fn debug_output_of_load_options_shows_no_secret() {
    let variables =
        [("PACELINE_BUS", "{redis: 'redis://:hunter2@h'}"), ("OPENAI_API_KEY", "hunter2")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let flag = Override::new("--bus", &["bus"], "{redis: 'redis://:hunter2@h'}");
    let shown = format!("{:?}", LoadOptions::new().with_environment(variables).with_override(flag));
    assert!(!shown.contains("hunter2") && !shown.contains("OPENAI"), "{shown}");
    assert!(shown.contains("PACELINE_BUS") && shown.contains("--bus"), "{shown}");
}
