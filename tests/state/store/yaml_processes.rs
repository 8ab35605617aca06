//! Real processes that are killed while they write, or whose disk is full.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tollgate::Timestamp;

use tollgate::limiter::ManualClock;
use tollgate::store::{Store, Yaml};

use super::yaml::{file, used};
use tollgate_testing::full::full_or;
use tollgate_testing::process::{self, Running, on_a_full_disk};

const NOW: Timestamp = ManualClock::START;
const KEYS: u64 = 20;
/// Names the file to a process that this test starts: the same test, in another role.
const ROLE: &str = "TOLLGATE_TEST_YAML_FILE";

#[test]
fn a_process_that_is_killed_while_it_writes_leaves_a_whole_file() {
    if let Some(path) = env::var_os(ROLE) {
        return write_for_ever(Path::new(&path));
    }
    let (folder, path) = file();
    let (mut written, kills) = (0, full_or(30, 10));
    for round in 0..kills {
        const NAME: &str = "a_process_that_is_killed_while_it_writes_leaves_a_whole_file";
        let mut running = Running::start(&mut role(NAME, &path));
        // Killed at another moment each time: after so many reads of the file, all of them whole.
        let mut reads = 0;
        let before = written;
        while written == before || reads < round * 3 {
            written = rounds(&path, written);
            reads += 1;
            assert!(running.child().try_wait().unwrap().is_none(), "it writes for ever");
        }
        drop(running);
        written = rounds(&path, written);
    }
    assert!(written >= kills, "{written}");
    let mut store = Yaml::new(&path);
    store.open(NOW).unwrap();
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["state.yaml", "state.yaml.lock"], "and nothing beside it");
}

/// How often every key was written down; as often each, and never less often than before.
fn rounds(path: &Path, before: u64) -> u64 {
    if !path.exists() {
        return before;
    }
    let state = Yaml::peek(path, NOW, None).unwrap();
    let used = |key: &tollgate::limiter::KeySnapshot| key.buckets[0].saved.taken[0].1;
    let first = &state.keys[0];
    assert_eq!(state.keys.len() as u64, KEYS);
    assert!(state.keys.iter().all(|key| used(key) == used(first)), "{state:?}");
    assert!(used(first) >= before);
    used(first)
}

fn write_for_ever(path: &Path) {
    let mut store = Yaml::new(path);
    store.open(NOW).unwrap();
    let changes: Vec<_> = (0..KEYS).map(|key| used(&format!("k{key}"), &[(NOW, 1)], 0)).collect();
    // Ends with its parent, whatever becomes of that.
    while std::os::unix::process::parent_id() != 1 {
        store.sync(&changes, None, NOW).unwrap();
    }
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    const NAME: &str = "a_full_disk_leaves_the_file_as_it_was";
    if let Some(path) = env::var_os(ROLE) {
        return write_too_much(Path::new(&path));
    }
    let (folder, path) = file();
    let output = on_a_full_disk(&role(NAME, &path)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let state = Yaml::peek(&path, NOW, None).unwrap();
    assert_eq!(state.keys.len(), 1, "the last that could be written");
    assert!(!folder.path().join("state.yaml.tollgate-tmp").exists());
}

fn write_too_much(path: &Path) {
    let mut store = Yaml::new(path);
    store.open(NOW).unwrap();
    store.sync(&[used("small", &[(NOW, 1)], 0)], None, NOW).unwrap();
    let before = fs::read(path).unwrap();
    let key = "x".repeat(20_000);
    let error = store.sync(&[used(&key, &[(NOW, 1)], 0)], None, NOW).unwrap_err().to_string();
    assert!(error.contains("cannot be written: "), "{error}");
    assert_eq!(fs::read(path).unwrap(), before);
    store.sync(&[used("small", &[(NOW, 1)], 0)], None, NOW).unwrap();
}

#[test]
fn the_lock_of_a_process_that_was_killed_is_free() {
    const NAME: &str = "the_lock_of_a_process_that_was_killed_is_free";
    if let Some(path) = env::var_os(ROLE) {
        return write_for_ever(Path::new(&path));
    }
    let (_folder, path) = file();
    let mut running = Running::start(&mut role(NAME, &path));
    while !path.exists() {
        assert!(running.child().try_wait().unwrap().is_none());
    }
    let error = Yaml::new(&path).open(NOW).unwrap_err().to_string();
    assert!(error.contains(&format!("in use by process {}", running.child().id())), "{error}");
    assert!(Yaml::reset(&path, None, NOW, None).is_err());
    drop(running);
    assert!(Yaml::new(&path).open(NOW).is_ok());
}

/// This very program, as one of its tests.
fn role(test: &str, path: &Path) -> Command {
    let mut command = process::role((module_path!(), test), ROLE, path);
    command.stdout(Stdio::null());
    command
}
