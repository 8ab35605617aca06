//! The file stays small, without losing or repeating changes.

use paceline_limiter::Timestamp;

use super::sqlite::{DAY, SECOND, START, change, folder, opened, sync, taken};
use super::sqlite_owners::total;
use std::time::Duration;

#[test]
fn file_size_stays_bounded() {
    let (_folder, path) = folder();
    let (mut store, _) = opened(&path, START);
    let mut largest = [0, 0];
    // Three days of one request every ten seconds under ten keys, synced every ten minutes.
    let keys: Vec<String> = (0..10).map(|n| format!("model-{n}")).collect();
    for round in 0..3 * 144_u64 {
        let from = START + Duration::from_secs(round * 600);
        let times: Vec<_> = (0..60).map(|n| (from + n * 10 * SECOND, 1)).collect();
        let changes: Vec<_> = keys.iter().map(|key| change(key, &times, 0)).collect();
        sync(&mut store, &changes, from + 600 * SECOND);
        let size = std::fs::metadata(&path).unwrap().len();
        let half = usize::from(round > 3 * 72);
        largest[half] = largest[half].max(size);
    }
    assert_eq!(total(&path, "model-0"), 3 * 8_640);
    assert!(largest[1] < 1 << 20, "{largest:?} bytes");
    assert!(largest[1] < largest[0] * 3 / 2, "{largest:?} bytes");
    let end = START + 3 * DAY;
    let kept: u64 = taken(&opened(&path, end).1, "model-0").iter().map(|(_, n)| n).sum();
    // One day, and the entries that are kept for longer.
    assert!((8_640..=8_640 + 8_640 / 10).contains(&kept), "{kept}");
}

#[test]
fn lagging_store_receives_each_change_once_despite_merging() {
    let (_folder, path) = folder();
    let (mut slow, _) = opened(&path, START);
    let (mut quick, _) = opened(&path, START);
    let (mut received, mut took) = (0, 0);
    let mut receive = |slow: &mut _, now: Timestamp| {
        for key in sync(slow, &[change("a", &[(now, 1)], 0)], now) {
            received += key.buckets[0].taken.iter().map(|(_, amount)| amount).sum::<i64>();
        }
    };
    for round in 0..200_u64 {
        let now = START + Duration::from_secs(round);
        let times: Vec<_> = (0..100).map(|n| (now + Duration::from_nanos(n), 1)).collect();
        took += 100;
        sync(&mut quick, &[change("a", &times, 0)], now);
        if round % 7 == 3 {
            receive(&mut slow, now);
        }
    }
    receive(&mut slow, START + 200 * SECOND);
    assert_eq!(received, took);
    let all: u64 = taken(&opened(&path, START + 201 * SECOND).1, "a").iter().map(|(_, n)| n).sum();
    assert_eq!(all, took.unsigned_abs() + 30);
    assert_eq!(total(&path, "a"), took + 30);
}
