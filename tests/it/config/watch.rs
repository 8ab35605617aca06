//! Changes of a file are seen, however they are made, and nothing else is.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tollgate::config::{FileWatcher, WatchedFile};

/// More than any of the files here.
const LIMIT: u64 = 1 << 10;

/// A machine under load gets this long; it takes some milliseconds.
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn an_edit_in_place_is_told_once_at_the_second_look() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::write(&path, "a: 2").unwrap();
    assert!(file.poll().is_none());
    assert_eq!(file.poll().unwrap().unwrap(), b"a: 2");
    assert_quiet(&mut file);
}

#[test]
fn a_file_that_is_touched_or_written_anew_with_the_same_content_is_no_change() {
    let (folder, path, mut file) = watched("a: 1");
    assert_quiet(&mut file);
    File::options().append(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_quiet(&mut file);
    rename_over(folder.path(), &path, "a: 1");
    assert_quiet(&mut file);
}

#[test]
fn a_file_renamed_over_it_is_told() {
    let (folder, path, mut file) = watched("a: 1");
    rename_over(folder.path(), &path, "a: 2");
    assert_eq!(told(&mut file), "a: 2");
    rename_over(folder.path(), &path, "a: 3");
    assert_eq!(told(&mut file), "a: 3");
}

#[test]
fn other_content_of_the_same_size_and_time_is_told() {
    let (folder, path, mut file) = watched("a: 1");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let keep_time = || {
        File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time);
    };
    fs::write(&path, "a: 2").unwrap();
    keep_time();
    assert_eq!(told(&mut file), "a: 2");
    rename_over(folder.path(), &path, "a: 3");
    keep_time();
    assert_eq!(told(&mut file), "a: 3");
}

#[test]
fn a_file_that_is_being_written_is_told_when_it_rests() {
    let (_folder, path, mut file) = watched("a: 1");
    for half_written in ["", "a: ", "a: 2\nb"] {
        fs::write(&path, half_written).unwrap();
        assert!(file.poll().is_none(), "{half_written}");
    }
    fs::write(&path, "a: 2\nb: 3").unwrap();
    assert_eq!(told(&mut file), "a: 2\nb: 3");
}

#[test]
fn a_writer_that_rests_half_way_is_told_and_so_is_the_rest() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::write(&path, "a: [2,").unwrap();
    assert_eq!(told(&mut file), "a: [2,");
    fs::write(&path, "a: [2, 3]").unwrap();
    assert_eq!(told(&mut file), "a: [2, 3]");
}

#[test]
fn a_change_that_is_taken_back_before_it_was_told_is_none() {
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
fn a_file_that_is_gone_for_a_moment_is_no_change() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::remove_file(&path).unwrap();
    assert!(file.poll().is_none());
    fs::write(&path, "a: 1").unwrap();
    assert_quiet(&mut file);
}

#[test]
fn a_file_that_can_not_be_read_for_a_moment_is_no_change() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(file.poll().is_none());
    fs::remove_dir(&path).unwrap();
    assert!(file.poll().is_none(), "another failure than before");
    fs::write(&path, "a: 1").unwrap();
    assert_quiet(&mut file);
}

#[test]
fn a_file_that_is_gone_is_told_once_and_so_is_its_return() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::remove_file(&path).unwrap();
    assert_eq!(failed(&mut file).kind(), ErrorKind::NotFound);
    assert_quiet(&mut file);
    fs::write(&path, "a: 1").unwrap();
    assert_eq!(told(&mut file), "a: 1");
}

#[test]
fn a_file_that_appears_later_is_told_and_that_there_was_none_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("not/yet/config.yaml");
    let (mut file, content) = WatchedFile::open(&path, LIMIT);
    assert_eq!(content.unwrap_err().kind(), ErrorKind::NotFound);
    assert_quiet(&mut file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert_quiet(&mut file);
    fs::write(&path, "a: 1").unwrap();
    assert_eq!(told(&mut file), "a: 1");
}

#[test]
fn what_changed_between_the_first_reading_and_the_first_look_is_told() {
    let (_folder, path, _) = watched("a: 2");
    let mut file = WatchedFile::with_content(&path, LIMIT, b"a: 1".to_vec());
    assert_eq!(file.path(), path);
    assert_eq!(told(&mut file), "a: 2");
}

#[cfg(unix)]
#[test]
fn a_config_map_that_is_swapped_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    config_map(root, "..2026_11_21_1", "a: 1");
    std::os::unix::fs::symlink("..data/config.yaml", root.join("config.yaml")).unwrap();
    let (mut file, content) = WatchedFile::open(root.join("config.yaml"), LIMIT);
    assert_eq!(content.unwrap(), b"a: 1");
    assert_quiet(&mut file);
    config_map(root, "..2026_11_21_2", "a: 2");
    fs::remove_dir_all(root.join("..2026_11_21_1")).unwrap();
    assert_eq!(told(&mut file), "a: 2");
    // The same content in another folder.
    config_map(root, "..2026_11_21_3", "a: 2");
    assert_quiet(&mut file);
}

#[cfg(unix)]
#[test]
fn a_link_that_is_swapped_anywhere_on_the_path_is_told() {
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
    assert_eq!(told(&mut file), "a: 2");
    relink("v1/etc/config.yaml", "config.yaml");
    assert_eq!(told(&mut file), "a: 1");
    relink("nowhere", "config.yaml");
    assert_eq!(failed(&mut file).kind(), ErrorKind::NotFound);
}

#[test]
fn a_file_above_the_limit_is_refused_with_the_reason_until_it_is_smaller() {
    let (_folder, path, mut file) = watched("a: 1");
    fs::write(&path, vec![b' '; 1 + LIMIT as usize]).unwrap();
    let error = failed(&mut file);
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    assert_eq!(error.to_string(), "larger than 1024 bytes");
    let whole = " ".repeat(LIMIT as usize);
    fs::write(&path, &whole).unwrap();
    assert_eq!(told(&mut file), whole);
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut file, content) = WatchedFile::open(folder.path(), LIMIT);
    assert_eq!(content.unwrap_err().to_string(), "not a regular file");
    assert_quiet(&mut file);
}

#[test]
fn its_debug_output_holds_no_content() {
    let (_folder, _path, file) = watched("key: hunter2");
    let debug = format!("{file:?}");
    assert!(debug.contains("config.yaml") && !debug.contains("hunter2"), "{debug}");
}

#[test]
fn the_thread_tells_each_change_in_order() {
    let (folder, path, file) = watched("a: 1");
    let (tell, changes) = mpsc::channel();
    let watch =
        FileWatcher::start(file, Duration::ZERO, move |content| tell.send(content).unwrap());
    let watch = watch.unwrap();
    let next = || changes.recv_timeout(DEADLINE).unwrap();
    // Not in place: on a machine under load two looks may well find the file truncated.
    rename_over(folder.path(), &path, "a: 2");
    assert_eq!(next().unwrap(), b"a: 2");
    rename_over(folder.path(), &path, "a: 3");
    assert_eq!(next().unwrap(), b"a: 3");
    fs::remove_file(&path).unwrap();
    assert_eq!(next().unwrap_err().kind(), ErrorKind::NotFound);
    drop(watch);
    assert!(changes.recv().is_err(), "it told nothing else, and ended");
}

#[test]
fn dropping_ends_the_thread_however_long_it_would_rest() {
    let (_folder, _path, file) = watched("a: 1");
    let (tell, changes) = mpsc::channel::<()>();
    let watch = FileWatcher::start(file, Duration::MAX, move |_| tell.send(()).unwrap()).unwrap();
    let (done, dropped) = mpsc::channel();
    std::thread::spawn(move || {
        drop(watch);
        done.send(()).unwrap();
    });
    dropped.recv_timeout(DEADLINE).unwrap();
    assert_eq!(changes.try_recv(), Err(mpsc::TryRecvError::Disconnected), "it was waited for");
}

#[test]
fn it_can_be_dropped_within_the_call() {
    let (_folder, path, file) = watched("a: 1");
    let (tell, changes) = mpsc::channel();
    let slot = Arc::new(Mutex::new(None::<FileWatcher>));
    let own = Arc::clone(&slot);
    let watch = FileWatcher::start(file, Duration::ZERO, move |_| {
        drop(own.lock().unwrap().take());
        tell.send(()).unwrap();
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

/// What the second of two looks finds.
fn second(file: &mut WatchedFile) -> io::Result<Vec<u8>> {
    assert!(file.poll().is_none(), "nothing is told at the first look");
    file.poll().expect("the second look tells")
}

fn told(file: &mut WatchedFile) -> String {
    String::from_utf8(second(file).unwrap()).unwrap()
}

fn failed(file: &mut WatchedFile) -> io::Error {
    second(file).unwrap_err()
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

/// What a kubelet does: a new folder, a link to it, and that renamed over `..data`.
#[cfg(unix)]
fn config_map(root: &Path, version: &str, content: &str) {
    fs::create_dir(root.join(version)).unwrap();
    fs::write(root.join(version).join("config.yaml"), content).unwrap();
    std::os::unix::fs::symlink(version, root.join("..data_tmp")).unwrap();
    fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
}
