use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use axum::http::Version;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// The activity of one connection, as observed by the [reaper](super::idle_reaper::IdleReaper), and the
/// reaper's request to close it.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// The number of requests received.
    requests: AtomicU64,
    /// The number of requests whose response is incomplete.
    open: AtomicUsize,
    /// True if the connection uses HTTP/2.
    is_http2: AtomicBool,
    /// The number of bytes written, and whether a write is pending.
    written: AtomicU64,
    blocked: AtomicBool,
    /// The number of checks by the reaper.
    checks: AtomicU64,
    /// The last frames of responses of several frames.
    frames: Mutex<Vec<Weak<FrameState>>>,
    /// The request to close the connection: a [`Close`] as a number.
    close: AtomicU8,
    waker: AtomicWaker,
}

/// A request to close a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Close {
    None,
    /// Close after the responses in progress.
    Graceful,
    /// Close immediately.
    Immediate,
}

/// The state of the last frame of a response.
#[derive(Debug)]
pub(super) struct FrameState {
    /// The check at which the frame was handed to the connection; [`NOT_PENDING`] if the next frame was polled
    /// since.
    sent_at: AtomicU64,
}

/// A request whose response is incomplete.
#[derive(Debug)]
pub(super) struct OpenRequest(Arc<Activity>);

impl Activity {
    /// Records a new request.
    pub(super) fn start_request(self: &Arc<Self>, version: Version) -> OpenRequest {
        self.is_http2.store(version == Version::HTTP_2, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenRequest(Arc::clone(self))
    }

    /// Records written bytes.
    #[inline]
    pub(super) fn record_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Records whether a write is pending; its time is bounded by
    /// [`TimedStream`](super::timed_stream::TimedStream).
    pub(super) fn set_blocked(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::Relaxed);
    }

    /// Returns the number of requests received.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns true if a response is incomplete.
    pub(super) fn has_open_requests(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Returns the number of bytes written, or `None` while a write is pending.
    pub(super) fn written(&self) -> Option<u64> {
        let is_free = !self.blocked.load(Ordering::Relaxed);
        is_free.then(|| self.written.load(Ordering::Relaxed))
    }

    /// Returns true if a completely polled response may still be buffered: HTTP/2 buffers it until the
    /// client opens its flow-control window.
    pub(super) fn may_buffer_responses(&self) -> bool {
        self.is_http2.load(Ordering::Relaxed)
    }

    /// Counts a check, and returns true if a frame was handed out more than `patience` checks ago.
    pub(super) fn is_stuck(&self, patience: u64) -> bool {
        let check = self.checks.fetch_add(1, Ordering::Relaxed) + 1;
        let is_stuck = |frame: Arc<FrameState>| {
            let sent_at = frame.sent_at.load(Ordering::Relaxed);
            sent_at != NOT_PENDING && check.saturating_sub(sent_at) > patience
        };
        let mut frames = self.frames.lock();
        frames.retain(|frame| frame.strong_count() > 0);
        frames.iter().filter_map(Weak::upgrade).any(is_stuck)
    }

    /// Requests to close the connection; a weaker request than an earlier one has no effect.
    pub(super) fn request_close(&self, close: Close) {
        if self.close.fetch_max(close as u8, Ordering::AcqRel) < close as u8 {
            self.waker.wake();
        }
    }

    /// Returns the current request to close the connection, and wakes the task when it becomes
    /// stronger.
    #[inline]
    pub(super) fn poll_close(&self, waker: &Waker) -> Close {
        self.waker.register(waker);
        match self.close.load(Ordering::Acquire) {
            0 => Close::None,
            1 => Close::Graceful,
            _ => Close::Immediate,
        }
    }
}

impl OpenRequest {
    /// Records that a frame was handed to the connection.
    pub(super) fn record_frame_sent(&self, frame: &mut Option<Arc<FrameState>>) {
        let check = self.0.checks.load(Ordering::Relaxed);
        let frame = frame.get_or_insert_with(|| {
            let frame = Arc::new(FrameState { sent_at: AtomicU64::new(NOT_PENDING) });
            self.0.frames.lock().push(Arc::downgrade(&frame));
            frame
        });
        frame.sent_at.store(check, Ordering::Relaxed);
    }
}

impl FrameState {
    /// Records that the next frame was polled.
    pub(super) fn record_next_polled(&self) {
        self.sent_at.store(NOT_PENDING, Ordering::Relaxed);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

const NOT_PENDING: u64 = u64::MAX;
