//! Detection of file changes, made in different ways.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use paceline_config::{FileWatcher, WatchedFile};
use tempfile::TempDir;

/// Larger than every file in these tests.
const LIMIT: u64 = 1 << 10;

/// Long enough for a machine under load; normally milliseconds.
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn edit_in_place_is_reported_once_at_second_poll() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::write(&path, "a: 2").unwrap();
    assert!(file.poll().is_none());
    assert_eq!(file.poll().unwrap().unwrap(), b"a: 2");
    assert_quiet(&mut file);
}

#[test]
fn file_touched_or_rewritten_with_same_content_is_unchanged() {
    let (folder, path, mut file) = watched("a: 1");
    assert_quiet(&mut file);
    File::options().append(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_quiet(&mut file);
    rename_over(folder.path(), &path, "a: 1");
    assert_quiet(&mut file);
}

#[test]
fn file_replaced_by_rename_is_reported() {
    let (folder, path, mut file) = watched("a: 1");
    rename_over(folder.path(), &path, "a: 2");
    assert_eq!(changed_content(&mut file), "a: 2");
    rename_over(folder.path(), &path, "a: 3");
    assert_eq!(changed_content(&mut file), "a: 3");
}

#[test]
fn content_of_same_size_and_time_is_reported() {
    let (folder, path, mut file) = watched("a: 1");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let keep_time = || {
        File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time);
    };
    fs::write(&path, "a: 2").unwrap();
    keep_time();
    assert_eq!(changed_content(&mut file), "a: 2");
    rename_over(folder.path(), &path, "a: 3");
    keep_time();
    assert_eq!(changed_content(&mut file), "a: 3");
}

#[test]
fn file_being_written_is_reported_once_stable() {
    let (_folder, path, mut file) = watched("a: 1");
    for half_written in ["", "a: ", "a: 2\nb"] {
        fs::write(&path, half_written).unwrap();
        assert!(file.poll().is_none(), "{half_written}");
    }
    fs::write(&path, "a: 2\nb: 3").unwrap();
    assert_eq!(changed_content(&mut file), "a: 2\nb: 3");
}

#[test]
fn pausing_writer_is_reported_at_pause_and_end() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::write(&path, "a: [2,").unwrap();
    assert_eq!(changed_content(&mut file), "a: [2,");
    fs::write(&path, "a: [2, 3]").unwrap();
    assert_eq!(changed_content(&mut file), "a: [2, 3]");
}

#[test]
fn change_reverted_before_report_is_ignored() {
    let (_folder, path, mut file) = watched("a: 1");
    for _ in 0..3 {
        fs::write(&path, "a: 2").unwrap();
        assert!(file.poll().is_none());
        fs::write(&path, "a: 1").unwrap();
        assert!(file.poll().is_none());
    }
    assert_quiet(&mut file);
}

#[test]
fn file_missing_for_a_moment_is_unchanged() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::remove_file(&path).unwrap();
    assert!(file.poll().is_none());
    fs::write(&path, "a: 1").unwrap();
    assert_quiet(&mut file);
}

#[test]
fn file_unreadable_for_a_moment_is_unchanged() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(file.poll().is_none());
    fs::remove_dir(&path).unwrap();
    assert!(file.poll().is_none(), "a different failure than before");
    fs::write(&path, "a: 1").unwrap();
    assert_quiet(&mut file);
}

#[test]
fn file_removed_and_restored_is_reported_once_each() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::remove_file(&path).unwrap();
    assert_eq!(failure(&mut file).kind(), ErrorKind::NotFound);
    assert_quiet(&mut file);
    fs::write(&path, "a: 1").unwrap();
    assert_eq!(changed_content(&mut file), "a: 1");
}

#[test]
fn file_created_later_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("not/yet/config.yaml");
    let (mut file, content) = WatchedFile::open(&path, LIMIT);
    assert_eq!(content.unwrap_err().kind(), ErrorKind::NotFound);
    assert_quiet(&mut file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert_quiet(&mut file);
    fs::write(&path, "a: 1").unwrap();
    assert_eq!(changed_content(&mut file), "a: 1");
}

#[test]
fn change_between_first_read_and_first_poll_is_reported() {
    let (_folder, path, _) = watched("a: 2");
    let mut file = WatchedFile::with_content(&path, LIMIT, b"a: 1".to_vec());
    assert_eq!(file.path(), path);
    assert_eq!(changed_content(&mut file), "a: 2");
}

#[cfg(unix)]
#[test]
fn swapped_config_map_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    update_config_map(root, "..2026_11_21_1", "a: 1");
    std::os::unix::fs::symlink("..data/config.yaml", root.join("config.yaml")).unwrap();
    let (mut file, content) = WatchedFile::open(root.join("config.yaml"), LIMIT);
    assert_eq!(content.unwrap(), b"a: 1");
    assert_quiet(&mut file);
    update_config_map(root, "..2026_11_21_2", "a: 2");
    fs::remove_dir_all(root.join("..2026_11_21_1")).unwrap();
    assert_eq!(changed_content(&mut file), "a: 2");
    // The same content in another folder.
    update_config_map(root, "..2026_11_21_3", "a: 2");
    assert_quiet(&mut file);
}

#[cfg(unix)]
#[test]
fn swapped_link_anywhere_on_path_is_reported() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (release, content) in [("v1", "a: 1"), ("v2", "a: 2")] {
        fs::create_dir_all(root.join(release).join("etc")).unwrap();
        fs::write(root.join(release).join("etc/config.yaml"), content).unwrap();
    }
    let relink = |target: &str, link: &str| {
        symlink(target, root.join("tmp")).unwrap();
        fs::rename(root.join("tmp"), root.join(link)).unwrap();
    };
    relink("v1", "current");
    relink("current/etc/config.yaml", "config.yaml");
    let (mut file, content) = WatchedFile::open(root.join("config.yaml"), LIMIT);
    assert_eq!(content.unwrap(), b"a: 1");
    relink("v2", "current");
    assert_eq!(changed_content(&mut file), "a: 2");
    relink("v1/etc/config.yaml", "config.yaml");
    assert_eq!(changed_content(&mut file), "a: 1");
    relink("nowhere", "config.yaml");
    assert_eq!(failure(&mut file).kind(), ErrorKind::NotFound);
}

#[test]
fn file_above_size_limit_is_an_error_until_smaller() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::write(&path, vec![b' '; 1 + LIMIT as usize]).unwrap();
    let error = failure(&mut file);
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    assert_eq!(error.to_string(), "larger than 1024 bytes");
    let whole = " ".repeat(LIMIT as usize);
    fs::write(&path, &whole).unwrap();
    assert_eq!(changed_content(&mut file), whole);
}

#[test]
fn path_of_a_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut file, content) = WatchedFile::open(folder.path(), LIMIT);
    assert_eq!(content.unwrap_err().to_string(), "not a regular file");
    assert_quiet(&mut file);
}

#[test]
fn debug_output_of_watched_file_has_no_content() {
    let (_folder, _path, file) = watched("key: hunter2");
    let debug = format!("{file:?}");
    assert!(debug.contains("config.yaml") && !debug.contains("hunter2"), "{debug}");
}

#[test]
fn watch_thread_reports_changes_in_order() {
    let (folder, path, file) = watched("a: 1");
    let (sender, changes) = mpsc::channel();
    let watch =
        FileWatcher::start(file, Duration::ZERO, move |content| sender.send(content).unwrap());
    let watch = watch.unwrap();
    let next = || changes.recv_timeout(DEADLINE).unwrap();
    // Not in place: under load, two polls in a row may find the file truncated.
    rename_over(folder.path(), &path, "a: 2");
    assert_eq!(next().unwrap(), b"a: 2");
    rename_over(folder.path(), &path, "a: 3");
    assert_eq!(next().unwrap(), b"a: 3");
    fs::remove_file(&path).unwrap();
    assert_eq!(next().unwrap_err().kind(), ErrorKind::NotFound);
    drop(watch);
    assert!(changes.recv().is_err(), "no further report, and the thread has ended");
}

#[test]
fn watch_dropped_during_a_long_pause_ends_thread() {
    let (_folder, _path, file) = watched("a: 1");
    let (sender, changes) = mpsc::channel::<()>();
    let watch = FileWatcher::start(file, Duration::MAX, move |_| sender.send(()).unwrap()).unwrap();
    let (done, dropped) = mpsc::channel();
    std::thread::spawn(move || {
        drop(watch);
        done.send(()).unwrap();
    });
    dropped.recv_timeout(DEADLINE).unwrap();
    assert_eq!(
        changes.try_recv(),
        Err(mpsc::TryRecvError::Disconnected),
        "drop waits for the thread"
    );
}

#[test]
fn watch_can_be_dropped_inside_the_callback() {
    let (_folder, path, file) = watched("a: 1");
    let (sender, changes) = mpsc::channel();
    let slot = Arc::new(Mutex::new(None::<FileWatcher>));
    let own = Arc::clone(&slot);
    let watch = FileWatcher::start(file, Duration::ZERO, move |_| {
        drop(own.lock().unwrap().take());
        sender.send(()).unwrap();
    });
    *slot.lock().unwrap() = Some(watch.unwrap());
    fs::write(&path, "a: 2").unwrap();
    assert_eq!(changes.recv_timeout(DEADLINE), Ok(()));
    assert_eq!(changes.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected));
}

fn watched(content: &str) -> (TempDir, PathBuf, WatchedFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    fs::write(&path, content).unwrap();
    let (file, read) = WatchedFile::open(&path, LIMIT);
    assert_eq!(read.unwrap(), content.as_bytes());
    (folder, path, file)
}

/// Returns the change that the second poll reports.
fn poll_twice(file: &mut WatchedFile) -> io::Result<Vec<u8>> {
    assert!(file.poll().is_none(), "the first poll reports no change");
    file.poll().expect("the second poll reports the change")
}

fn changed_content(file: &mut WatchedFile) -> String {
    String::from_utf8(poll_twice(file).unwrap()).unwrap()
}

fn failure(file: &mut WatchedFile) -> io::Error {
    poll_twice(file).unwrap_err()
}

fn assert_quiet(file: &mut WatchedFile) {
    for _ in 0..4 {
        assert!(file.poll().is_none());
    }
}

fn rename_over(folder: &Path, path: &Path, content: &str) {
    let new = folder.join("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

/// Updates a config map as a kubelet does: creates a directory and a link to it, and renames the link
/// to `..data`.
#[cfg(unix)]
fn update_config_map(root: &Path, version: &str, content: &str) {
    fs::create_dir(root.join(version)).unwrap();
    fs::write(root.join(version).join("config.yaml"), content).unwrap();
    std::os::unix::fs::symlink(version, root.join("..data_tmp")).unwrap();
    fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
}
