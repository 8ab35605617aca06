use std::fs;
use std::path::PathBuf;

use paceline_config::{self as config, Config, LoadOptions, Loaded, Override, StoreFile};

/// Loads a file of this text with variables and flags.
fn load(text: &str, variables: &[(&str, &str)], flags: &[Override]) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    fs::write(&path, text).unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let options = LoadOptions::new().with_path(&path).with_environment(variables);
    let options = flags.iter().cloned().fold(options, LoadOptions::with_override);
    let shorter = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
    config::load(&options).map_err(|error| shorter(error.to_string()))
}

fn rpm(config: &Config) -> u64 {
    config.builder().build().unwrap().quotas().of("gpt-4o").limits()[0].amount()
}

#[test]
fn flags_override_variables_override_file_override_profiles() {
    let file = "providers: [openai]\nquotas: {gpt-4o: {rpm: 7}}\n";
    let variable = [("PACELINE_QUOTAS__gpt-4o__RPM", "8")];
    let flag = [Override::new("--rpm", &["quotas", "gpt-4o", "rpm"], "9")];
    let profile = rpm(&load("providers: [openai]", &[], &[]).unwrap().config);
    assert_eq!(profile, 500, "OpenAI's lowest paid tier");
    assert_eq!(rpm(&load(file, &[], &[]).unwrap().config), 7);
    assert_eq!(rpm(&load(file, &variable, &[]).unwrap().config), 8);
    assert_eq!(rpm(&load(file, &variable, &flag).unwrap().config), 9);
    assert_eq!(rpm(&load(file, &[], &flag).unwrap().config), 9);
}

#[test]
fn variable_replaces_the_named_value() {
    let file = "quotas: {a: {rpm: 5}}\nstore: {yaml: s.yaml, flush: 5s}\n";
    let of = |variables: &[(&str, &str)]| load(file, variables, &[]).unwrap().config;
    let flush = of(&[("PACELINE_STORE__FLUSH", "2s")]).store.unwrap().flush;
    assert_eq!(flush.as_secs(), 2);
    let quotas = of(&[("PACELINE_QUOTAS", "{gpt-4o: {rpm: 5}}")]).quotas;
    let names: Vec<_> = quotas.iter().map(|quota| quota.keys.name()).collect();
    assert_eq!(names, ["gpt-4o"]);
    let other =
        of(&[("PACELINE_CORPUS", "/x"), ("PACELINE_", "x"), ("STORE", "x"), ("PACELINE_KEY", "x")]);
    assert_eq!(other.quotas.len(), 1);
}

#[test]
fn error_in_variable_or_flag_names_source() {
    let of = |name, value| load("{}", &[(name, value)], &[]).unwrap_err();
    let error = of("PACELINE_SHARE", "2");
    assert_eq!(error, "PACELINE_SHARE: share: must be above 0 and at most 1, not 2");
    assert!(
        of("PACELINE_STORE__FLSH", "2s").starts_with("PACELINE_STORE__FLSH: store.flsh: unknown")
    );
    assert!(of("PACELINE_QUOTAS", "{a: [").starts_with("PACELINE_QUOTAS: quotas: invalid YAML"));
    let flag = Override::new("--max-wait", &["waiting", "max_wait"], "5");
    let error = load("{}", &[], &[flag]).unwrap_err();
    assert!(error.starts_with("--max-wait: waiting.max_wait: must be a duration"), "{error}");
    // All errors are reported together, including the file's.
    let error = load("waiting: {max_wait: 1}", &[("PACELINE_SHARE", "2")], &[]).unwrap_err();
    assert_eq!(error.lines().count(), 2);
    assert!(error.contains("t.yaml:1:21: waiting.max_wait: "), "{error}");
}

#[test]
fn empty_variable_is_ignored() {
    let file = "quotas: {a: {rpm: 5}}\nshare: 0.5\nstore: {yaml: s.yaml}\n";
    let empty = ["PACELINE_QUOTAS", "PACELINE_SHARE", "PACELINE_STORE", "PACELINE_QUOTAS__a__RPM"];
    let loaded = load(file, &empty.map(|name| (name, " ")), &[]).unwrap();
    assert_eq!(loaded.config.quotas[0].quota.limits()[0].amount(), 5);
    assert!(loaded.config.store.is_some() && !loaded.show().contains("PACELINE_"));
    // An explicit null removes the section of the file.
    assert!(load(file, &[("PACELINE_STORE", "~")], &[]).unwrap().config.store.is_none());
}

#[test]
fn unusable_file_is_the_only_problem() {
    for text in ["", "# TODO\n", "{"] {
        let error = load(text, &[("PACELINE_STORE__FLUSH", "2s")], &[]).unwrap_err();
        assert!(error.lines().count() == 1 && error.starts_with("t.yaml"), "{text}: {error}");
    }
}

#[test]
fn paths_are_relative_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    for (written, place) in
        [("state.db", folder.path().join("state.db")), ("/abs.db", "/abs.db".into())]
    {
        fs::write(&path, format!("store: {{sqlite: {written}}}")).unwrap();
        let store = config::check(&path).unwrap().config.store.unwrap();
        assert_eq!(store.file, StoreFile::Sqlite(place));
    }
}

#[test]
fn file_is_chosen_by_path_then_variable_then_default() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().display().to_string();
    let default = folder.path().join(".config/paceline/config.yaml");
    let variables = |all: &[(&str, &str)]| {
        let all: Vec<_> =
            all.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        LoadOptions::new().with_environment(all)
    };
    assert_eq!(variables(&[("HOME", &home)]).file(), None);
    assert!(config::load(&variables(&[("HOME", &home)])).unwrap().path.is_none());
    fs::create_dir_all(default.parent().unwrap()).unwrap();
    fs::write(&default, "share: 0.5").unwrap();
    assert_eq!(variables(&[("HOME", &home)]).file(), Some(default.clone()));
    let xdg = folder.path().join(".config").display().to_string();
    assert_eq!(variables(&[("XDG_CONFIG_HOME", &xdg)]).file(), Some(default));
    let named = variables(&[("HOME", &home), ("PACELINE_CONFIG", "other.yaml")]);
    assert_eq!(named.file(), Some(PathBuf::from("other.yaml")));
    assert_eq!(named.with_path("mine.yaml").file(), Some(PathBuf::from("mine.yaml")));
    let missing = variables(&[("PACELINE_CONFIG", "/nowhere/other.yaml")]);
    assert!(
        config::load(&missing).unwrap_err().to_string().starts_with("/nowhere/other.yaml: can't")
    );
}

#[test]
fn effective_configuration_shows_origin_of_each_value() {
    let file =
        "providers: [openai]\nquotas:\n  gpt-4o: {rpm: 7}\nstore: {yaml: s.yaml}\nshare: ~\n";
    let flag = Override::new("--max-wait", &["waiting", "max_wait"], "5s");
    let loaded = load(file, &[("PACELINE_STORE__FLUSH", "2s")], &[flag]).unwrap();
    let json = loaded.to_json();
    let find = |path: &str| {
        let row = json.as_array().unwrap().iter().find(|row| row["path"] == path);
        let row = row.unwrap_or_else(|| panic!("{path} is not shown:\n{}", loaded.show()));
        let origin = row["origin"].as_str().unwrap();
        (row["value"].clone(), origin.rsplit('/').next().unwrap().to_owned())
    };
    assert_eq!(find("quotas.gpt-4o.rpm"), (7.into(), "t.yaml:3".into()));
    assert_eq!(find("store.flush"), ("2s".into(), "PACELINE_STORE__FLUSH".into()));
    assert_eq!(find("waiting.max_wait"), ("5s".into(), "--max-wait".into()));
    assert_eq!(find("waiting.max_waiting"), (10_000.into(), "built-in".into()));
    assert_eq!(find("unknown_key"), ("allow".into(), "built-in".into()));
    assert_eq!(find("share"), (1.0.into(), "built-in".into()));
    let (value, origin) = find("quotas.gpt-4o-mini");
    assert!(value.as_str().unwrap().contains("requests"), "{value}");
    assert!(origin.starts_with("profile openai (20"), "{origin}");
    assert_eq!(loaded.show().lines().count(), json.as_array().unwrap().len());
}
