//! Real processes that are killed while writing, or whose disk is full.

use paceline_limiter::Timestamp;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use paceline_limiter::limiter::ManualClock;
use paceline_store::{Store, Yaml};

use super::yaml::{file, used};
use paceline_testing::full::full_or;
use paceline_testing::process::{self, ChildGuard, with_full_disk};

const NOW: Timestamp = ManualClock::START;
const KEYS: u64 = 20;
/// The environment variable with the file for a process started by these tests: the same test in
/// another role.
const ROLE: &str = "PACELINE_TEST_YAML_FILE";

#[test]
fn process_killed_while_writing_leaves_a_complete_file() {
    if let Some(path) = env::var_os(ROLE) {
        return write_endlessly(Path::new(&path));
    }
    let (folder, path) = file();
    let (mut written, kills) = (0, full_or(30, 10));
    for round in 0..kills {
        const NAME: &str = "process_killed_while_writing_leaves_a_complete_file";
        let mut child = ChildGuard::start(&mut role(NAME, &path));
        // Killed after a different number of reads each time, all of complete files.
        let mut reads = 0;
        let before = written;
        while written == before || reads < round * 3 {
            written = rounds(&path, written);
            reads += 1;
            assert!(child.get_mut().try_wait().unwrap().is_none(), "the process writes endlessly");
        }
        drop(child);
        written = rounds(&path, written);
    }
    assert!(written >= kills, "{written}");
    let mut store = Yaml::new(&path);
    store.open(NOW).unwrap();
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["state.yaml", "state.yaml.lock"], "no other file is left");
}

/// Returns the number of writes of every key: equal for all keys, and not lower than before.
fn rounds(path: &Path, before: u64) -> u64 {
    if !path.exists() {
        return before;
    }
    let state = Yaml::peek(path, NOW, None).unwrap();
    let used = |key: &paceline_limiter::limiter::KeySnapshot| key.buckets[0].saved.taken[0].1;
    let first = &state.keys[0];
    assert_eq!(state.keys.len() as u64, KEYS);
    assert!(state.keys.iter().all(|key| used(key) == used(first)), "{state:?}");
    assert!(used(first) >= before);
    used(first)
}

fn write_endlessly(path: &Path) {
    let mut store = Yaml::new(path);
    store.open(NOW).unwrap();
    let changes: Vec<_> = (0..KEYS).map(|key| used(&format!("k{key}"), &[(NOW, 1)], 0)).collect();
    // Ends when the parent process has ended.
    while std::os::unix::process::parent_id() != 1 {
        store.sync(&changes, None, NOW).unwrap();
    }
}

#[test]
fn full_disk_leaves_the_file_unchanged() {
    const NAME: &str = "full_disk_leaves_the_file_unchanged";
    if let Some(path) = env::var_os(ROLE) {
        return write_too_much(Path::new(&path));
    }
    let (folder, path) = file();
    let output = with_full_disk(&role(NAME, &path)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let state = Yaml::peek(&path, NOW, None).unwrap();
    assert_eq!(state.keys.len(), 1, "the last successful write");
    assert!(!folder.path().join("state.yaml.paceline-tmp").exists());
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
fn lock_of_killed_process_is_free() {
    const NAME: &str = "lock_of_killed_process_is_free";
    if let Some(path) = env::var_os(ROLE) {
        return write_endlessly(Path::new(&path));
    }
    let (_folder, path) = file();
    let mut child = ChildGuard::start(&mut role(NAME, &path));
    while !path.exists() {
        assert!(child.get_mut().try_wait().unwrap().is_none());
    }
    let error = Yaml::new(&path).open(NOW).unwrap_err().to_string();
    assert!(error.contains(&format!("in use by process {}", child.get_mut().id())), "{error}");
    assert!(Yaml::reset(&path, None, NOW, None).is_err());
    drop(child);
    assert!(Yaml::new(&path).open(NOW).is_ok());
}

/// Returns a command that runs this program as one of its tests.
fn role(test: &str, path: &Path) -> Command {
    let mut command = process::test_command(module_path!(), test, ROLE, path);
    command.stdout(Stdio::null());
    command
}
