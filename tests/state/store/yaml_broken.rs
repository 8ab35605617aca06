//! Files that are not what they should be, and disks that don't take what is written.

use std::fs;
use std::time::Duration;
use tollgate::Timestamp;

use tollgate::limiter::ManualClock;
use tollgate::store::{State, Store, Yaml};

use super::yaml::{file, used};

const NOW: Timestamp = ManualClock::START;

/// The error of a file with this text, which stays as it is whatever is tried.
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
    peeked.strip_prefix(&prefix).unwrap_or_else(|| panic!("{peeked} names the file")).to_owned()
}

#[track_caller]
fn says(text: impl AsRef<[u8]>, parts: &[&str]) {
    let error = refused(text);
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
    assert!(error.contains("move it aside"), "{error:?} says what to do");
}

const WHOLE: &str = include_str!("fixtures/state.yaml");

#[test]
fn a_file_that_is_no_yaml_is_refused_with_its_line() {
    says("version: 1\nkeys: {a: [}\n...\n", &["line 2"]);
    says("quotas:\n\t- x\n", &["line 2"]);
    says([0u8; 64], &["not a tollgate state file"]);
    says([0xff, 0xfe, 0x00, 0x01], &["invalid UTF-8"]);
}

#[test]
fn a_file_of_somebody_else_is_refused() {
    says("- 1\n- 2\n", &["not a tollgate state file"]);
    says("hello\n", &["not a tollgate state file"]);
    says("name: x\n", &["not a tollgate state file: it has no `version`"]);
    says("version: '3.9'\nservices: {}\n", &["not a tollgate state file"]);
}

#[test]
fn a_file_of_another_version_is_refused() {
    let error = refused(WHOLE.replace("version: 1", "version: 2"));
    assert!(error.contains("unsupported version 2; this tollgate reads version 1"), "{error}");
}

#[test]
fn a_file_of_go_ratelimit_is_not_taken_silently() {
    let error = refused("quotas:\n  a:\n    max_rpm: 5\nstate: {}\n");
    assert!(error.contains("`tollgate migrate`"), "{error}");
    assert!(refused("state: {}\n").contains("`tollgate migrate`"));
}

#[test]
fn a_file_that_was_cut_short_anywhere_is_refused() {
    let (_folder, path) = file();
    // Cut within the title it is an empty document, as if nobody had written any.
    let body = WHOLE.find("version").unwrap();
    for end in (body + 1..WHOLE.trim_end().len()).filter(|end| WHOLE.is_char_boundary(*end)) {
        fs::write(&path, &WHOLE[..end]).unwrap();
        let read = Yaml::peek(&path, NOW, None);
        assert!(read.is_err(), "{:?}", &WHOLE[..end]);
    }
    let lines: Vec<_> = WHOLE.lines().collect();
    says(lines[..lines.len() - 2].join("\n"), &["truncated", "ends at line 32 without `...`"]);
}

#[test]
fn a_value_that_is_none_is_refused_with_its_line_and_what_is_allowed() {
    let with = |from: &str, to: &str| {
        assert!(WHOLE.contains(from), "{from}");
        WHOLE.replacen(from, to, 1)
    };
    says(with("held: 80", "held: -80"), &["line 31", "held"]);
    says(with("held: 80", "hold: 80"), &["line 31", "unknown field `hold`"]);
    says(with(": 1500", ": many"), &["line 33", "many"]);
    says(
        with("2026-01-01T00:00:00.000000001Z: 1500", "noon: 1500"),
        &["line 33", "invalid time `noon`"],
    );
    says(
        with("2026-01-01T00:00:00.000000001Z: 1500", "1969-01-01T00:00:00Z: 1"),
        &["expected 1970 to 2554"],
    );
    says(with("dimension: tokens", "dimension: token"), &["line 29", "expected requests, tokens"]);
    says(with("window: 1m\n", "window: soon\n"), &["invalid duration `soon`"]);
    says(with("window: 1m\n", "window: 400h 500h\n"), &["invalid duration"]);
    says(with("window: 1m\n", "window: 9000h\n"), &["1ms to 366 days"]);
    says(with("America/Los_Angeles", "America/Atlantis"), &["line", "Atlantis"]);
    says(
        with("window: day", "window: year"),
        &["unknown period `year`; with `zone`, use day, week or month"],
    );
    says(
        with("algorithm: token_bucket", "algorithm: leaky"),
        &["line 15", "leaky", "token_bucket"],
    );
    says(
        with("algorithm: token_bucket", "algorithm: fixed_window"),
        &["only allowed with `algorithm: token_bucket`"],
    );
    says(with("limit: 30", "limit: 0"), &["limit: must be at least 1"]);
    says(with("origin: learned", "origin: guessed"), &["line 9", "guessed"]);
}

#[test]
fn a_folder_in_the_place_of_the_file_is_refused() {
    let (_folder, path) = file();
    fs::create_dir(&path).unwrap();
    let error = Yaml::new(&path).open(NOW).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    assert!(error.contains("irectory"), "{error}");
}

#[test]
fn a_file_in_the_place_of_the_folder_is_refused() {
    let (_folder, path) = file();
    fs::write(&path, "").unwrap();
    let error = Yaml::new(path.join("state.yaml")).open(NOW).unwrap_err().to_string();
    assert!(error.contains("cannot create its directory"), "{error}");
}

#[test]
fn what_could_not_be_written_is_not_taken_twice_when_it_can() {
    let (folder, path) = file();
    let mut store = Yaml::new(&path);
    store.open(NOW).unwrap();
    store.sync(&[used("a", &[(NOW, 7)], 0)], None, NOW).unwrap();
    let before = fs::read(&path).unwrap();
    // A folder in the place of the temporary file: it can't be made, as on a disk that is read-only.
    let temporary = folder.path().join("state.yaml.tollgate-tmp");
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
fn what_a_killed_process_left_beside_is_cleaned_up() {
    let (folder, path) = file();
    let temporary = folder.path().join("state.yaml.tollgate-tmp");
    fs::write(&temporary, "version: 1\nkeys").unwrap();
    assert_eq!(Yaml::new(&path).open(NOW).unwrap(), State::default());
    assert!(!temporary.exists());
}

#[test]
fn a_second_process_is_told_who_has_the_file_and_what_to_do() {
    let (_folder, path) = file();
    let mut first = Yaml::new(&path);
    first.open(NOW).unwrap();
    first.sync(&[used("a", &[(NOW, 7)], 0)], None, NOW).unwrap();
    let error = Yaml::new(&path).open(NOW).unwrap_err().to_string();
    let holds =
        format!("in use by process {}, which holds {}.lock", std::process::id(), path.display());
    assert!(error.contains(&holds), "{error}");
    assert!(error.contains("use a SQLite database"), "{error}");
    assert!(Yaml::peek(&path, NOW, None).is_ok(), "reading is free");
    first.close(NOW).unwrap();
    assert!(Yaml::new(&path).open(NOW).is_ok());
}
