use std::fs;

use paceline_config::section::{Check, FieldPath, HumanDuration, OrderedMap, Section, Sections};
use paceline_config::{self as config, Config, LoadOptions, ReloadOutcome, Reloader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A section of another crate, with a field applied live and a map.
#[derive(Debug, Clone, PartialEq)]
struct Crawler {
    threads: u32,
    pauses: Vec<(String, u128)>,
}

/// Settings of the crawler.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct CrawlerFields {
    /// The number of threads.
    threads: u32,
    /// The pause after a request, by host.
    pauses: OrderedMap<HumanDuration>,
}

impl Default for CrawlerFields {
    fn default() -> Self {
        Self { threads: 4, pauses: OrderedMap::default() }
    }
}

impl Section for Crawler {
    const NAME: &'static str = "crawler";

    const MAP_FIELDS: &'static [&'static str] = &["pauses"];

    type Fields = CrawlerFields;

    fn check(fields: &CrawlerFields, steps: &FieldPath, check: &mut Check<'_>) -> Self {
        if fields.threads == 0 {
            check.report(&steps.key("threads"), "must be at least 1, not 0");
        }
        if fields.threads > 4 && check.providers().is_empty() {
            check.report(steps, "needs `providers`");
        }
        let pauses = fields.pauses.0.iter();
        let pauses =
            pauses.map(|(host, HumanDuration(pause))| (host.clone(), pause.as_millis())).collect();
        Self { threads: fields.threads, pauses }
    }

    fn followed_from(&self, previous: &Self) -> Self {
        Self { threads: self.threads, ..previous.clone() }
    }
}

/// A section with the reserved name, whose changes need a restart.
#[derive(Debug, Clone, PartialEq)]
struct Own(OwnFields);

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct OwnFields {
    /// Any text.
    name: String,
}

impl Section for Own {
    const NAME: &'static str = "serve";

    type Fields = OwnFields;

    fn check(fields: &OwnFields, _: &FieldPath, _: &mut Check<'_>) -> Self {
        Self(fields.clone())
    }
}

fn sections() -> Sections {
    Sections::new().with::<Own>().with::<Crawler>()
}

fn parse_valid(text: &str) -> Config {
    Config::parse_with(text, &sections()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn parse_messages(text: &str, sections: &Sections) -> Vec<String> {
    let error = Config::parse_with(text, sections).expect_err(text).to_string();
    error.lines().map(|line| line.replacen("config:", "", 1)).collect()
}

#[test]
fn registered_section_has_configured_value_or_defaults() {
    let config = parse_valid("crawler: {threads: 2, pauses: {B: 2s, a: 1s}}");
    let pauses = vec![("B".to_owned(), 2_000), ("a".to_owned(), 1_000)];
    assert_eq!(config.section::<Crawler>(), Some(&Crawler { threads: 2, pauses }));
    for text in ["{}", "crawler: {}", "crawler: ~"] {
        let defaults = Crawler { threads: 4, pauses: Vec::new() };
        assert_eq!(parse_valid(text).section::<Crawler>(), Some(&defaults), "{text}");
    }
}

#[test]
fn unregistered_serve_section_is_not_read() {
    for text in ["serve: {a: [1, {b: ~}]}", "serve: 5", "serve: text", "serve: ~", "serve: [a]"] {
        let config = Config::parse(&format!("{text}\nshare: 0.5")).unwrap();
        assert_eq!(config.section::<Own>(), None, "{text}");
    }
    let unknown = parse_messages("crawler: {}\nshare: 0.5", &Sections::new());
    assert!(unknown[0].starts_with("1:1: crawler: unknown field \"crawler\"; allowed: "));
    assert!(unknown[0].ends_with(", cluster, serve"), "{unknown:?}");
}

#[test]
fn errors_of_all_sections_are_reported_in_file_order() {
    let text = "\
share: 2
crawler: {threads: 0, pause: {}}
serve: {name: 5, nmae: a}
quotas: {a: {rpm: -1}}
crawlr: {}
";
    let starts = [
        "1:8: share: must be above 0",
        "2:20: crawler.threads: must be at least 1, not 0",
        "2:23: crawler.pause: unknown field \"pause\" (did you mean `pauses`?); allowed: threads, pauses",
        "3:15: serve.name: must be a string (put it in quotes), not 5",
        "3:18: serve.nmae: unknown field \"nmae\" (did you mean `name`?)",
        "4:19: quotas.a.rpm: must be a whole number",
        "5:1: crawlr: unknown field \"crawlr\" (did you mean `crawler`?); allowed: providers,",
    ];
    let messages = parse_messages(text, &sections());
    assert_eq!(messages.len(), starts.len(), "{messages:#?}");
    for (message, start) in messages.iter().zip(starts) {
        assert!(message.starts_with(start), "{message}\nshould start with\n{start}");
    }
}

#[test]
fn section_check_knows_configured_providers() {
    let text = "crawler: {threads: 5}";
    assert_eq!(parse_messages(text, &sections()), ["1:10: crawler: needs `providers`"]);
    parse_valid(&format!("{text}\nproviders: [openai]"));
}

#[test]
fn variables_override_a_section_and_both_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    fs::write(&path, "crawler: {threads: 2}").unwrap();
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let variables = [variable("PACELINE_CRAWLER__PAUSES__A", "1s")];
    let options = LoadOptions::new().with_path(&path).with_environment(variables);
    let loaded = config::load(&options.clone().with_sections(sections())).unwrap();
    let crawler = loaded.config.section::<Crawler>().unwrap();
    assert_eq!((crawler.threads, &*crawler.pauses), (2, &[("A".to_owned(), 1_000)][..]));
    let shown = loaded.to_json();
    for row in [
        json!({"path": "crawler.pauses.A", "value": "1s", "origin": "PACELINE_CRAWLER__PAUSES__A"}),
        json!({"path": "crawler.threads", "value": 2, "origin": format!("{}:1", path.display())}),
    ] {
        assert!(shown.as_array().unwrap().contains(&row), "{row} is not in {shown}");
    }
    let unknown = config::load(&options).unwrap_err().to_string();
    assert!(
        unknown.contains("PACELINE_CRAWLER__PAUSES__A: unknown section; allowed: "),
        "{unknown}"
    );
}

#[test]
fn list_file_replaces_a_list() {
    #[derive(Debug, Clone, PartialEq)]
    struct Listed(Vec<(String, Option<u32>)>);

    #[derive(Default, Deserialize, Serialize, JsonSchema)]
    #[serde(default)]
    struct ListedFields {
        list: Vec<Item>,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Item {
        name: String,
        amount: Option<u32>,
    }

    impl Section for Listed {
        const NAME: &'static str = "listed";

        type Fields = ListedFields;

        fn check(fields: &ListedFields, steps: &FieldPath, check: &mut Check<'_>) -> Self {
            for (at, item) in fields.list.iter().enumerate() {
                if item.name.is_empty() {
                    check.report(&check.item(&steps.key("list"), at).key("name"), "is empty");
                }
            }
            Self(fields.list.iter().map(|item| (item.name.clone(), item.amount)).collect())
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.json");
    let load = |text: &str| {
        fs::write(&path, text).unwrap();
        let options = LoadOptions::new().with_sections(Sections::new().with::<Listed>());
        config::load(&options.with_list_file(&path, "names", &["listed", "list"]))
    };
    let loaded = load(r#"{"names": [{"name": "a", "amount": 0}, {"name": "b", "amount": 2}]}"#);
    let expected = vec![("a".to_owned(), None), ("b".to_owned(), Some(2))];
    assert_eq!(loaded.unwrap().config.section(), Some(&Listed(expected)));
    let error = load(r#"{"names": [{"name": ""}], "more": 1}"#).unwrap_err().to_string();
    assert!(
        error.contains("more: not allowed in this file, which may only have `names`"),
        "{error}"
    );
    let error = load(r#"{"names": [{"name": ""}]}"#).unwrap_err().to_string();
    assert!(error.ends_with("list.json:1:21: listed.list[0].name: is empty"), "{error}");
}

#[test]
fn schema_describes_registered_sections() {
    let open = config::schema();
    assert_eq!(open["properties"]["serve"]["type"], json!(["object", "null"]));
    assert!(open["properties"].get("crawler").is_none());
    let whole = config::schema_with(&sections());
    jsonschema::draft202012::meta::validate(&whole).unwrap();
    assert_eq!(whole["properties"]["crawler"]["description"], "Settings of the crawler.");
    let valid = |value| jsonschema::draft202012::is_valid(&whole, &value);
    assert!(valid(json!({"crawler": {"threads": 2, "pauses": {"a": "1s"}}, "serve": null})));
    assert!(!valid(json!({"crawler": {"threads": -2}})));
    assert!(!valid(json!({"serve": {"nmae": "a"}})));
}

#[test]
fn section_changes_apply_live_or_need_a_restart() {
    let applied = |before: &str, after: &str| {
        let before = parse_valid(before);
        let limiter = before.builder().build().unwrap();
        let applied = parse_valid(after).apply(&before, &limiter);
        (applied.changed.join(" "), applied.needs_restart.join(" "))
    };
    let of = |changed: &str, needs_restart: &str| (changed.to_owned(), needs_restart.to_owned());
    assert_eq!(applied("{}", "crawler: {threads: 4}"), of("", ""));
    assert_eq!(applied("{}", "crawler: {threads: 2}"), of("crawler", ""));
    assert_eq!(applied("{}", "crawler: {pauses: {a: 1s}}"), of("", "crawler"));
    assert_eq!(applied("{}", "serve: {name: a}\nretry: {attempts: 2}"), of("", "retry serve"));
    let both = "crawler: {threads: 2, pauses: {a: 1s}}\nunknown_key: refuse";
    assert_eq!(applied("{}", both), of("crawler unknown_key", "crawler"));
}

#[test]
fn reload_with_a_wrong_section_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    fs::write(&path, "quotas: {a: {rpm: 1}}").unwrap();
    let options = LoadOptions::new().with_path(&path).with_sections(sections());
    let loaded = config::load(&options).unwrap();
    let limiter = loaded.config.builder().build().unwrap();
    let reloading = Reloader::start(&loaded, &limiter).unwrap();

    fs::write(&path, "quotas: {a: {rpm: 2}}\ncrawler: {threads: 0}").unwrap();
    let ReloadOutcome::Refused(error) = reloading.reload() else { panic!("the file is accepted") };
    assert!(error.to_string().ends_with("t.yaml:2:20: crawler.threads: must be at least 1, not 0"));
    assert_eq!(limiter.quotas().of("a").limits()[0].amount(), 1);
    let of_status = || reloading.status().config.section::<Crawler>().unwrap().threads;
    assert_eq!(of_status(), 4);

    fs::write(&path, "quotas: {a: {rpm: 2}}\ncrawler: {threads: 2}").unwrap();
    let ReloadOutcome::Changed(status) = reloading.reload() else { panic!("the file is refused") };
    assert_eq!(status.changed, ["quotas.a", "crawler"]);
    assert_eq!(of_status(), 2);
}

#[test]
#[should_panic(expected = "`quotas` is a section of paceline")]
fn section_with_a_library_name_panics() {
    #[derive(Debug, Clone, PartialEq)]
    struct Quotas;

    impl Section for Quotas {
        const NAME: &'static str = "quotas";

        type Fields = CrawlerFields;

        fn check(_: &CrawlerFields, _: &FieldPath, _: &mut Check<'_>) -> Self {
            Self
        }
    }

    let _ = Sections::new().with::<Quotas>();
}
