use std::sync::{Arc, Weak};
use std::time::Duration;

use super::activity::{Activity, Close};
use super::config::Bounds;

/// Closes idle connections and connections whose client does not read: it regularly checks all
/// connections. A connection without requests for `bounds.head_timeout` is closed gracefully, and is cut
/// off if it stays open although all its responses were written. A connection whose client reads none
/// of a response for `bounds.body_timeout` is cut off.
#[derive(Debug)]
pub(super) struct IdleReaper {
    connections: Vec<TrackedConnection>,
    /// The number of connections at which ended ones are removed.
    prune_at: usize,
    interval: Duration,
    /// The number of checks for which a frame may stay unread.
    patience: u64,
}

/// A connection that may have ended.
#[derive(Debug)]
struct TrackedConnection {
    activity: Weak<Activity>,
    /// The number of requests at the last check.
    requests: u64,
    /// The number of checks without a new or an open request.
    idle_checks: u64,
    /// The number of bytes written at the last check, and the number of checks since without progress,
    /// once it is closing.
    written: u64,
    stalled_checks: u64,
    /// The number of requests at the last call of [`IdleReaper::make_room`], if none was open.
    idle_at: Option<u64>,
}

impl IdleReaper {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let interval = (bounds.head_timeout / CHECKS).max(Duration::from_millis(1));
        let patience = bounds.body_timeout.as_nanos().div_ceil(interval.as_nanos());
        let patience = u64::try_from(patience).unwrap_or(u64::MAX).saturating_add(1);
        Self { connections: Vec::new(), prune_at: 0, interval, patience }
    }

    /// Returns the interval of the checks.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    pub(super) fn add(&mut self, connection: &Arc<Activity>) {
        if self.connections.len() >= self.prune_at {
            self.connections.retain(|connection| connection.activity.strong_count() > 0);
            self.prune_at = (2 * self.connections.len()).max(MIN_PRUNE);
        }
        let activity = Arc::downgrade(connection);
        self.connections.push(TrackedConnection {
            activity,
            requests: 0,
            idle_checks: 0,
            written: 0,
            stalled_checks: 0,
            idle_at: None,
        });
    }

    /// Requests to close all connections.
    pub(super) fn close_all(&self, close: Close) {
        let connections =
            self.connections.iter().filter_map(|connection| connection.activity.upgrade());
        connections.for_each(|connection| connection.request_close(close));
    }

    /// Requests to close a quarter of the connections that had no request since the last call, the oldest
    /// first.
    pub(super) fn make_room(&mut self) {
        let mut idle = Vec::new();
        for connection in &mut self.connections {
            let Some(activity) = connection.activity.upgrade() else { continue };
            let requests = (!activity.has_open_requests()).then(|| activity.requests());
            let before = std::mem::replace(&mut connection.idle_at, requests);
            if requests.is_some() && requests == before {
                idle.push(activity);
            }
        }
        let count = idle.len().div_ceil(4);
        idle[..count].iter().for_each(|activity| activity.request_close(Close::Graceful));
    }

    /// Checks all connections.
    pub(super) fn check(&mut self) {
        let patience = self.patience;
        self.connections.retain_mut(|connection| match connection.activity.upgrade() {
            Some(activity) => {
                connection.check(&activity, patience);
                true
            }
            None => false,
        });
    }
}

impl TrackedConnection {
    fn check(&mut self, activity: &Activity, patience: u64) {
        let requests = activity.requests();
        let is_idle = !activity.has_open_requests() && requests == self.requests;
        self.requests = requests;
        self.idle_checks = if is_idle { self.idle_checks + 1 } else { 0 };
        if activity.is_stuck(patience) {
            return activity.request_close(Close::Immediate);
        }
        if self.idle_checks <= u64::from(CHECKS) {
            self.stalled_checks = 0;
            return;
        }
        activity.request_close(Close::Graceful);
        self.stalled_checks =
            if self.is_progressing(activity.written()) { 0 } else { self.stalled_checks + 1 };
        if self.stalled_checks > if activity.may_buffer_responses() { patience } else { 1 } {
            activity.request_close(Close::Immediate);
        }
    }

    /// Returns true if the client reads more than keep-alive frames.
    fn is_progressing(&mut self, written: Option<u64>) -> bool {
        let Some(written) = written else { return true };
        written - std::mem::replace(&mut self.written, written) >= MIN_PROGRESS
    }
}

/// The number of checks within `bounds.head_timeout`.
const CHECKS: u32 = 4;

/// In bytes; a few keep-alive frames are shorter.
const MIN_PROGRESS: u64 = 128;

/// The number of connections below which ended ones are not removed.
const MIN_PRUNE: usize = 64;

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use axum::http::Version;

    use super::*;
    use crate::{Serve, parse};

    fn reaper() -> IdleReaper {
        let text = "serve: {bounds: {head_timeout: 4s, body_timeout: 2s}}";
        IdleReaper::new(&Serve::of(&parse(text).unwrap()).unwrap().bounds)
    }

    /// Returns the request to close after each of the next checks.
    fn checks<const N: usize>(reaper: &mut IdleReaper, activity: &Activity) -> [Close; N] {
        [(); N].map(|()| {
            reaper.check();
            activity.poll_close(Waker::noop())
        })
    }

    #[test]
    fn idle_connection_is_closed_gracefully_then_cut_off() {
        let (mut reaper, activity) = (reaper(), Arc::new(Activity::default()));
        assert_eq!(reaper.interval(), Duration::from_secs(1));
        reaper.add(&activity);
        assert_eq!(checks(&mut reaper, &activity), [Close::None; 4]);
        let open = activity.start_request(Version::HTTP_11);
        assert_eq!(checks(&mut reaper, &activity), [Close::None; 9]);
        drop(open);
        assert_eq!(checks(&mut reaper, &activity), [Close::None; 4]);
        drop(activity.start_request(Version::HTTP_11));
        assert_eq!(checks(&mut reaper, &activity), [Close::None; 5]);
        assert_eq!(
            checks(&mut reaper, &activity),
            [Close::Graceful, Close::Immediate, Close::Immediate]
        );
    }

    #[test]
    fn reading_client_is_not_cut_off() {
        let (mut reaper, activity) = (reaper(), Arc::new(Activity::default()));
        reaper.add(&activity);
        drop(activity.start_request(Version::HTTP_11));
        assert_eq!(checks(&mut reaper, &activity), [Close::None; 5]);
        for _ in 0..9 {
            activity.record_written(1_000);
            assert_eq!(checks(&mut reaper, &activity), [Close::Graceful; 2]);
        }
        activity.set_blocked(true);
        assert_eq!(checks(&mut reaper, &activity), [Close::Graceful; 9]);
        activity.set_blocked(false);
        assert_eq!(checks(&mut reaper, &activity), [Close::Graceful, Close::Immediate]);
    }

    #[test]
    fn http2_keep_alive_frames_do_not_count_as_reading() {
        let (mut reaper, activity) = (reaper(), Arc::new(Activity::default()));
        reaper.add(&activity);
        drop(activity.start_request(Version::HTTP_2));
        assert_eq!(checks(&mut reaper, &activity), [Close::None; 5]);
        for _ in 0..3 {
            assert_eq!(checks(&mut reaper, &activity), [Close::Graceful]);
            activity.record_written(17);
        }
        assert_eq!(checks(&mut reaper, &activity), [Close::Immediate]);
    }

    #[test]
    fn client_not_reading_pending_frame_is_disconnected() {
        let (mut reaper, activity) = (reaper(), Arc::new(Activity::default()));
        reaper.add(&activity);
        let (open, mut frame) = (activity.start_request(Version::HTTP_2), None);
        open.record_frame_sent(&mut frame);
        assert_eq!(checks(&mut reaper, &activity), [Close::None; 3]);
        frame.as_ref().unwrap().record_next_polled();
        assert_eq!(checks(&mut reaper, &activity), [Close::None; 9]);
        open.record_frame_sent(&mut frame);
        assert_eq!(checks(&mut reaper, &activity), [Close::None; 3]);
        assert_eq!(checks(&mut reaper, &activity), [Close::Immediate]);
    }

    #[test]
    fn oldest_idle_connections_make_room() {
        let mut reaper = reaper();
        let all = [(); 10].map(|()| Arc::new(Activity::default()));
        let closing = || all.iter().map(|a| a.poll_close(Waker::noop()) == Close::Graceful);
        all[..9].iter().for_each(|activity| reaper.add(activity));
        let _open = all[0].start_request(Version::HTTP_11);
        reaper.make_room();
        assert!(!closing().any(|is_closing| is_closing), "a request may be on its way");
        drop(all[1].start_request(Version::HTTP_11));
        reaper.add(&all[9]);
        reaper.make_room();
        // Seven of them were idle.
        assert_eq!(closing().collect::<Vec<_>>()[..5], [false, false, true, true, false]);
        assert_eq!(closing().filter(|is_closing| *is_closing).count(), 2);
    }

    #[test]
    fn ended_connections_are_removed() {
        let mut reaper = reaper();
        let kept = [(); 100].map(|()| Arc::new(Activity::default()));
        kept.iter().for_each(|activity| reaper.add(activity));
        for _ in 0..10_000 {
            reaper.add(&Arc::new(Activity::default()));
            assert!(reaper.connections.len() <= 2 * (kept.len() + 1));
        }
        reaper.close_all(Close::Graceful);
        assert!(kept.iter().all(|activity| activity.poll_close(Waker::noop()) == Close::Graceful));
    }
}
