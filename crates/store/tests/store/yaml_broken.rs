//! Invalid files, and write errors.

use paceline_limiter::Timestamp;
use std::fs;
use std::time::Duration;

use paceline_limiter::limiter::ManualClock;
use paceline_store::{State, Store, Yaml};

use super::yaml::{file, used};

const NOW: Timestamp = ManualClock::START;

/// Returns the error for a file with this text; no operation changes the file.
fn refused(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    let (_folder, path) = file();
    fs::write(&path, text).unwrap();
    let peeked = Yaml::peek(&path, NOW, None).unwrap_err().to_string();
    let mut store = Yaml::new(&path);
    assert_eq!(store.open(NOW).unwrap_err().to_string(), peeked);
    assert!(store.sync(&[used("a", &[(NOW, 7)], 0)], None, NOW).is_err());
    assert!(store.close(NOW).is_ok());
    assert!(Yaml::reset(&path, None, NOW, None).is_err());
    assert!(Yaml::replace(&path, &State::default(), NOW, None).is_err());
    assert_eq!(fs::read(&path).unwrap(), text);
    let prefix = format!("{}: ", path.display());
    peeked.strip_prefix(&prefix).unwrap_or_else(|| panic!("{peeked} lacks the path")).to_owned()
}

#[track_caller]
fn assert_refused(text: impl AsRef<[u8]>, parts: &[&str]) {
    let error = refused(text);
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
    assert!(error.contains("move it aside"), "{error:?} lacks the advice");
}

const WHOLE: &str = include_str!("fixtures/state.yaml");

#[test]
fn invalid_yaml_is_refused_with_line() {
    assert_refused("version: 1\nkeys: {a: [}\n...\n", &["line 2"]);
    assert_refused("quotas:\n\t- x\n", &["line 2"]);
    assert_refused([0u8; 64], &["not a paceline state file"]);
    assert_refused([0xff, 0xfe, 0x00, 0x01], &["invalid UTF-8"]);
}

#[test]
fn deeply_nested_file_is_refused_at_once() {
    for nested in ["[", "{a: ", "- ", "? "] {
        let text = format!("version: 1\nkeys: \n  {}\n...\n", nested.repeat(100_000));
        assert_refused(text, &["nested more than 64 levels deep"]);
        assert_refused(nested.repeat(100_000), &["nested more than 64 levels deep"]);
    }
}

#[test]
fn file_of_another_program_is_refused() {
    assert_refused("- 1\n- 2\n", &["not a paceline state file"]);
    assert_refused("hello\n", &["not a paceline state file"]);
    assert_refused("name: x\n", &["not a paceline state file: it has no `version`"]);
    assert_refused("version: '3.9'\nservices: {}\n", &["not a paceline state file"]);
}

#[test]
fn file_of_another_version_is_refused() {
    let error = refused(WHOLE.replace("version: 1", "version: 2"));
    assert!(error.contains("unsupported version 2; this paceline reads version 1"), "{error}");
}

#[test]
fn go_ratelimit_file_is_refused_with_advice() {
    let error = refused("quotas:\n  a:\n    max_rpm: 5\nstate: {}\n");
    assert!(error.contains("`paceline migrate`"), "{error}");
    assert!(refused("state: {}\n").contains("`paceline migrate`"));
}

#[test]
fn truncated_file_is_refused() {
    let (_folder, path) = file();
    // Cut within the title comment, it is an empty document.
    let body = WHOLE.find("version").unwrap();
    for end in (body + 1..WHOLE.trim_end().len()).filter(|end| WHOLE.is_char_boundary(*end)) {
        fs::write(&path, &WHOLE[..end]).unwrap();
        let read = Yaml::peek(&path, NOW, None);
        assert!(read.is_err(), "{:?}", &WHOLE[..end]);
    }
    let lines: Vec<_> = WHOLE.lines().collect();
    assert_refused(
        lines[..lines.len() - 2].join("\n"),
        &["truncated", "ends at line 32 without `...`"],
    );
}

#[test]
fn invalid_value_is_refused_with_line_and_expected_values() {
    let with = |from: &str, to: &str| {
        assert!(WHOLE.contains(from), "{from}");
        WHOLE.replacen(from, to, 1)
    };
    assert_refused(with("held: 80", "held: -80"), &["line 31", "held"]);
    assert_refused(with("held: 80", "hold: 80"), &["line 31", "unknown field `hold`"]);
    assert_refused(with(": 1500", ": many"), &["line 33", "many"]);
    assert_refused(
        with("2026-01-01T00:00:00.000000001Z: 1500", "noon: 1500"),
        &["line 33", "invalid time `noon`"],
    );
    assert_refused(
        with("2026-01-01T00:00:00.000000001Z: 1500", "1969-01-01T00:00:00Z: 1"),
        &["expected 1970 to 2554"],
    );
    assert_refused(
        with("dimension: tokens", "dimension: token"),
        &["line 29", "expected requests, tokens"],
    );
    assert_refused(with("window: 1m\n", "window: soon\n"), &["invalid duration `soon`"]);
    assert_refused(with("window: 1m\n", "window: 400h 500h\n"), &["invalid duration"]);
    assert_refused(with("window: 1m\n", "window: 9000h\n"), &["1ms to 366 days"]);
    assert_refused(with("America/Los_Angeles", "America/Atlantis"), &["line", "Atlantis"]);
    assert_refused(
        with("window: day", "window: year"),
        &["unknown period `year`; with `zone`, use day, week or month"],
    );
    assert_refused(
        with("algorithm: token_bucket", "algorithm: leaky"),
        &["line 15", "leaky", "token_bucket"],
    );
    assert_refused(
        with("algorithm: token_bucket", "algorithm: fixed_window"),
        &["only allowed with `algorithm: token_bucket`"],
    );
    assert_refused(with("limit: 30", "limit: 0"), &["limit: must be at least 1"]);
    assert_refused(with("origin: learned", "origin: guessed"), &["line 9", "guessed"]);
}

#[test]
fn directory_at_path_of_the_file_is_refused() {
    let (_folder, path) = file();
    fs::create_dir(&path).unwrap();
    let error = Yaml::new(&path).open(NOW).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    assert!(error.contains("irectory"), "{error}");
}

#[test]
fn file_at_path_of_the_directory_is_refused() {
    let (_folder, path) = file();
    fs::write(&path, "").unwrap();
    let error = Yaml::new(path.join("state.yaml")).open(NOW).unwrap_err().to_string();
    assert!(error.contains("cannot create its directory"), "{error}");
}

#[test]
fn changes_are_written_once_after_failed_writes() {
    let (folder, path) = file();
    let mut store = Yaml::new(&path);
    store.open(NOW).unwrap();
    store.sync(&[used("a", &[(NOW, 7)], 0)], None, NOW).unwrap();
    let before = fs::read(&path).unwrap();
    // A directory at the path of the temporary file makes writing fail, as on a read-only disk.
    let temporary = folder.path().join("state.yaml.paceline-tmp");
    fs::create_dir(&temporary).unwrap();
    let changes = [used("a", &[(NOW + Duration::from_nanos(1), 5)], 0)];
    for _ in 0..3 {
        let error =
            store.sync(&changes, None, NOW + Duration::from_nanos(1)).unwrap_err().to_string();
        assert!(error.contains("state.yaml: cannot be written: "), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    fs::remove_dir(&temporary).unwrap();
    store.sync(&changes, None, NOW + Duration::from_nanos(1)).unwrap();
    let state = Yaml::peek(&path, NOW + Duration::from_nanos(1), None).unwrap();
    assert_eq!(state.keys[0].buckets[0].saved.taken, [(NOW + Duration::from_nanos(1), 12)]);
}

#[test]
fn temporary_file_of_killed_process_is_removed() {
    let (folder, path) = file();
    let temporary = folder.path().join("state.yaml.paceline-tmp");
    fs::write(&temporary, "version: 1\nkeys").unwrap();
    assert_eq!(Yaml::new(&path).open(NOW).unwrap(), State::default());
    assert!(!temporary.exists());
}

#[test]
fn file_in_use_is_refused_with_process_and_advice() {
    let (_folder, path) = file();
    let mut first = Yaml::new(&path);
    first.open(NOW).unwrap();
    first.sync(&[used("a", &[(NOW, 7)], 0)], None, NOW).unwrap();
    let error = Yaml::new(&path).open(NOW).unwrap_err().to_string();
    let holds =
        format!("in use by process {}, which holds {}.lock", std::process::id(), path.display());
    assert!(error.contains(&holds), "{error}");
    assert!(error.contains("use a SQLite database"), "{error}");
    assert!(Yaml::peek(&path, NOW, None).is_ok(), "reading is allowed");
    first.close(NOW).unwrap();
    assert!(Yaml::new(&path).open(NOW).is_ok());
}
