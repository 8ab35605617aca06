use std::collections::VecDeque;

use parking_lot::Mutex;
use serde::Serialize;

use paceline::Timestamp;
use paceline::limiter::{Code, Event};
use paceline::quota::Dimension;
use paceline_limiter::seam::DeniedSample;

/// The last rare events: cool-downs, reductions, recoveries, learned limits, quota changes, and a sample of refusals
/// (one per second).
#[derive(Debug, Default)]
pub(super) struct RecentEvents(Mutex<VecDeque<RecentEvent>>);

/// A recent event.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RecentEvent {
    /// A sequence number, from 1.
    number: u64,
    /// The time, in milliseconds since the Unix epoch.
    at: u64,
    kind: &'static str,
    key: String,
    /// A human-readable description.
    detail: String,
    /// The number of further refusals of all keys in the same second.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<u64>,
}

impl RecentEvents {
    pub(super) fn record(&self, event: &Event, now: Timestamp) {
        match event {
            Event::CoolingDown { key, until, kind, agent } => {
                let length = *until - now;
                let seconds = length.as_secs() + u64::from(length.subsec_nanos() > 0);
                let detail = match (kind, agent) {
                    (_, Some(agent)) => format!("for {seconds} s, reported by {agent}"),
                    (Some(kind), None) => format!("for {seconds} s: {}", kind.describe()),
                    (None, None) => format!("for {seconds} s"),
                };
                self.add(now, "cooling down", key, detail, None);
            }
            Event::Reduced { key, capacity, reason, .. } => {
                self.add(now, "reduced", key, format!("to {capacity}: {reason}"), None);
            }
            Event::Recovered { key, capacity } => {
                self.add(now, "recovered", key, format!("to {capacity}"), None);
            }
            Event::LimitsLearned { key, limits, .. } => {
                for limit in limits {
                    self.add(now, "learned", key, limit.to_string(), None);
                }
            }
            Event::LearnedLimitEnded { key, dimension } => {
                let detail = format!("{}: the learned limit has ended", label(dimension));
                self.add(now, "recovered", key, detail, None);
            }
            Event::ChargeMismatch { key, dimension, kept } => {
                let dimension = label(dimension);
                let detail = match kept {
                    true => format!("{dimension}: missing from the usage; charged as reserved"),
                    false => format!("{dimension}: not covered by any limit"),
                };
                self.add(now, "charge mismatch", key, detail, None);
            }
            Event::QuotaChanged { key, quota } => {
                let detail = match quota.limits().len() {
                    0 => "no limits".to_owned(),
                    1 => "1 limit".to_owned(),
                    limits => format!("{limits} limits"),
                };
                self.add(now, "quota changed", key, detail, None);
            }
            _ => {}
        }
    }

    /// Adds a sample of the refusals since the last call, and their number.
    pub(super) fn record_denied(&self, now: Timestamp, sample: &DeniedSample, number: u64) {
        let detail = match (sample.code, &sample.dimension) {
            (Some(Code::ExceedsCapacity), Some(dimension)) => {
                format!("{}: the request exceeds the limit and can never fit", label(dimension))
            }
            (Some(Code::TotalExceeded), Some(dimension)) => {
                format!("{}: the total is used up", label(dimension))
            }
            (Some(Code::UnknownPrice), _) => "the price of the request is unknown".to_owned(),
            (Some(Code::MissingLimit), Some(dimension)) => {
                format!("{}: not covered by any limit", label(dimension))
            }
            (_, Some(dimension)) => format!("{}: limit reached", label(dimension)),
            (Some(Code::CoolingDown), None) => "cooling down".to_owned(),
            (Some(Code::OthersWaiting), None) => "other requests are waiting".to_owned(),
            (Some(code), None) => code.as_str().replace('_', " "),
            (None, None) => "the wait queue is full".to_owned(),
        };
        let more = number.checked_sub(1).filter(|more| *more > 0);
        self.add(now, REFUSED, &sample.key, detail, more);
    }

    /// Returns the events, newest first.
    pub(super) fn latest(&self) -> Vec<RecentEvent> {
        self.0.lock().iter().rev().cloned().collect()
    }

    fn add(
        &self,
        now: Timestamp,
        kind: &'static str,
        key: &str,
        detail: String,
        more: Option<u64>,
    ) {
        let mut events = self.0.lock();
        let number = events.back().map_or(0, |last| last.number) + 1;
        events.push_back(RecentEvent {
            number,
            at: now.as_nanos() / 1_000_000,
            kind,
            key: key.into(),
            detail,
            more,
        });
        // Refusals must not evict rarer events.
        let max = if kind == REFUSED { MAX_REFUSALS } else { MAX_OTHERS };
        let same = |event: &RecentEvent| (event.kind == REFUSED) == (kind == REFUSED);
        if events.iter().filter(|event| same(event)).count() > max
            && let Some(oldest) = events.iter().position(same)
        {
            events.remove(oldest);
        }
    }
}

/// Returns the name of a dimension as the page shows it.
fn label(dimension: &Dimension) -> String {
    match dimension {
        Dimension::Concurrency => "in flight".to_owned(),
        dimension => dimension.as_str().replace('_', " "),
    }
}

const REFUSED: &str = "refused";
const MAX_REFUSALS: usize = 10;
const MAX_OTHERS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::quota::Quota;

    #[test]
    fn refusals_only_evict_refusals() {
        let events = RecentEvents::default();
        let changed = Event::QuotaChanged { key: "a".into(), quota: Quota::new().rpm(1) };
        events.record(&changed, Timestamp::UNIX_EPOCH);
        for number in 1..=100 {
            let sample = DeniedSample { key: "k".into(), code: None, dimension: None };
            events.record_denied(Timestamp::from_nanos(number * 1_000_000), &sample, number);
        }
        let latest = events.latest();
        assert_eq!((latest.len(), latest[0].at, latest[0].more), (MAX_REFUSALS + 1, 100, Some(99)));
        assert_eq!((latest[MAX_REFUSALS].key.as_str(), latest[MAX_REFUSALS].number), ("a", 1));
        (0..100).for_each(|_| events.record(&changed, Timestamp::UNIX_EPOCH));
        assert_eq!(events.latest().len(), MAX_REFUSALS + MAX_OTHERS);
    }
}
