//! `paceline explain` with all recordings in `$PACELINE_CORPUS`.

use std::path::{Path, PathBuf};

use paceline::provider::Profile;
use serde_json::{Value, json};

use super::rig::{lines, paceline, text};

#[test]
fn recorded_exchanges_become_valid_json_lines() {
    let Some(corpus) = std::env::var_os("PACELINE_CORPUS") else {
        println!("skipped: PACELINE_CORPUS is not set");
        return;
    };
    let files = files(Path::new(&corpus));
    let recorded: Vec<(String, usize, Value)> =
        files.iter().flat_map(|file| entries(file)).collect();
    assert!(recorded.len() >= 1_274, "only {} entries", recorded.len());
    let names: Vec<&str> =
        files.iter().map(|file| file.to_str().expect("a name in UTF-8")).collect();
    let output = paceline(Path::new("."), &[&["--json"], &names[..]].concat()).output();
    let output = output.expect("the command runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = lines(&output);
    assert_eq!(lines.len(), recorded.len());
    for (line, (file, index, _)) in lines.iter().zip(&recorded) {
        assert_eq!((&line["file"], &line["index"]), (&json!(file), &json!(index)));
        assert_eq!(schema_violation(line), None, "{line}");
    }
    let agreeing = |field| {
        let agrees = |(line, (_, _, expected)): &(&Value, &(String, usize, Value))| {
            line[field] == expected[field]
        };
        lines.iter().zip(&recorded).filter(agrees).count()
    };
    // The tests of `provider` check their accuracy; this test checks that they are printed.
    let (models, usages) = (agreeing("model"), agreeing("usage"));
    println!("{} lines: {models} models, {usages} usages as expected", lines.len());
    assert!(models * 2 > lines.len() && usages * 3 > lines.len());
}

/// Returns the first difference of a line from the documented format.
fn schema_violation(line: &Value) -> Option<String> {
    let count = |value: &Value| value.is_u64();
    let seconds = |value: &Value| value.is_null() || value.as_f64().is_some_and(|s| s >= 0.0);
    let keys = |value: &Value, keys: &[&str], fits: &dyn Fn(&Value) -> bool| {
        let object = value.as_object().filter(|object| object.len() == keys.len());
        let is_valid = object.is_some_and(|o| keys.iter().all(|key| o.get(*key).is_some_and(fits)));
        (!is_valid).then(|| format!("{value} should have {keys:?}"))
    };
    let limit = |limit: &Value| {
        let is_valid = limit["dimension"].is_string()
            && ["limit", "remaining"].iter().all(|key| limit[key].is_null() || count(&limit[key]))
            && seconds(&limit["reset_s"])
            && seconds(&limit["window_s"]);
        keys(limit, &["dimension", "limit", "remaining", "reset_s", "window_s"], &|_| true)
            .or((!is_valid).then(|| format!("{limit} has other types")))
    };
    let provider = line["provider"].as_str().and_then(Profile::named);
    let is_valid = provider.is_some()
        && (line["model"].is_null() || line["model"].is_string())
        && CLASSES.contains(&line["class"].as_str().unwrap_or(""))
        && seconds(&line["retry_after_s"]);
    keys(line, &KEYS, &|_| true)
        .or((!is_valid).then(|| "other types".to_owned()))
        .or(keys(&line["charge"], &["requests", "tokens", "input_tokens", "output_tokens"], &count))
        .or(match &line["refusal"] {
            Value::Null => None,
            refusal => {
                let names = ["kind", "delay_s", "until", "dimension", "limit", "requested"];
                keys(refusal, &names, &|_| true)
                    .or((!seconds(&refusal["delay_s"]))
                        .then(|| "a delay of another type".to_owned()))
            }
        })
        .or(match &line["usage"] {
            Value::Null => None,
            usage => keys(usage, &["input", "output", "cache_read", "cache_write"], &count),
        })
        .or(line["limits"]
            .as_array()
            .map_or(Some("no limits".to_owned()), |all| all.iter().find_map(limit)))
}

fn files(corpus: &Path) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(corpus).expect("PACELINE_CORPUS is a folder");
    let paths = listing.map(|entry| entry.expect("the entry is readable").path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "har")).collect();
    files.sort();
    files
}

/// Returns the file, index and expectation of each entry.
fn entries(file: &Path) -> Vec<(String, usize, Value)> {
    let name = file.to_str().expect("a name in UTF-8").to_owned();
    let har: Value =
        serde_json::from_slice(&std::fs::read(file).expect("the file is readable")).expect("JSON");
    let entries = har["log"]["entries"].as_array().expect("a list of entries");
    entries
        .iter()
        .enumerate()
        .map(|(index, entry)| (name.clone(), index, entry["_expected"].clone()))
        .collect()
}

const KEYS: [&str; 13] = [
    "file",
    "index",
    "provider",
    "model",
    "charge",
    "usage",
    "limits",
    "class",
    "retry_after_s",
    "status",
    "error",
    "time",
    "refusal",
];

const CLASSES: [&str; 5] = ["ok", "transient", "until_reset", "terminal", "in_band"];
