use std::time::Duration;

use super::core::Core;
use super::entry::Locked;
use crate::answer::error::Refused;
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// Notes that a request or a gate has waited since this time and that a key doesn't admit it now. Returns the refusal
/// to [log](log) after the locks are released, if that makes its wait a long one and none was logged for the key since
/// it served a request without one. A wait that isn't known to be long is the first waiter's to log.
pub(super) fn note(
    key: &mut Locked<'_>,
    denial: Denial,
    cost: &Cost,
    since: Timestamp,
    is_first: bool,
) -> Option<Refused> {
    let is_known = matches!(denial.wait(), Wait::At(time) if time > since + LONG);
    let is_noted = is_known || is_first && is_long(since, key.now());
    if !is_noted || !key.note_long_wait() {
        return None;
    }
    Some(key.refused(key.key(), denial, &key.part(cost)))
}

/// Returns the time at which the first waiter, which has waited since this time, waits long.
pub(super) fn due(key: &Locked<'_>, since: Timestamp) -> Option<Timestamp> {
    let due = since + LONG;
    (due > key.now() && !key.has_logged_wait()).then_some(due)
}

/// Returns whether a request that has waited since this time waits long.
pub(super) fn is_long(since: Timestamp, now: Timestamp) -> bool {
    now >= since + LONG
}

/// Logs a long wait. Called without a lock. Its target isn't the limiter's, which servers turn off.
#[cold]
pub(super) fn log(refused: &Refused, core: &Core) {
    let (name, code) = (core.logged_name(&refused.key), refused.code);
    let key = name.as_str();
    let dimension = refused.dimension.as_ref().map(Dimension::as_str);
    // Unknown if it hangs on requests in flight.
    let fits_in_s = refused.retry_after().map(|wait| wait.as_secs_f64());
    tracing::warn!(
        target: "paceline::waits", key, %code, dimension, fits_in_s,
        "a request waits for longer than {} s", LONG.as_secs()
    );
}

/// The wait that is logged.
const LONG: Duration = Duration::from_secs(30);
