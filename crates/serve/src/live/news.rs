use std::collections::VecDeque;

use parking_lot::Mutex;
use serde::Serialize;

use tollgate::Timestamp;
use tollgate::limiter::Event;
use tollgate::quota::Dimension;

/// The last of what is rare: cool-downs, reductions, recoveries, changes of quotas; and of refusals
/// one a second.
#[derive(Debug, Default)]
pub(super) struct News(Mutex<VecDeque<Item>>);

/// One of them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Item {
    /// Counts up from 1.
    number: u64,
    /// When, in milliseconds since the epoch.
    at: u64,
    kind: &'static str,
    key: String,
    /// More about it, in words.
    detail: String,
    /// Of refusals, how many more there were in that second, of all keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<u64>,
}

impl News {
    pub(super) fn hear(&self, event: &Event, now: Timestamp) {
        match event {
            Event::CoolingDown { key, until, agent } => {
                let length = *until - now;
                let seconds = length.as_secs() + u64::from(length.subsec_nanos() > 0);
                let detail = match agent {
                    Some(agent) => format!("for {seconds} s, as {agent} says"),
                    None => format!("for {seconds} s"),
                };
                self.add((now, "cooling down"), key, detail, None);
            }
            Event::Reduced { key, capacity, reason, .. } => {
                self.add((now, "reduced"), key, format!("to {capacity}: {reason}"), None);
            }
            Event::Recovered { key, capacity } => {
                self.add((now, "recovered"), key, format!("to {capacity}"), None);
            }
            Event::ChargeMismatch { key, dimension, kept } => {
                let detail = match kept {
                    true => format!("{dimension}: not stated; what was reserved is charged"),
                    false => format!("{dimension}: no limit counts it"),
                };
                self.add((now, "charge mismatch"), key, detail, None);
            }
            Event::QuotaChanged { key, quota } => {
                let detail = match quota.limits().len() {
                    0 => "not limited".to_owned(),
                    1 => "1 limit".to_owned(),
                    limits => format!("{limits} limits"),
                };
                self.add((now, "quota changed"), key, detail, None);
            }
            _ => {}
        }
    }

    /// So many were refused since this was last told, one of them for this.
    pub(super) fn denied(
        &self,
        now: Timestamp,
        key: &str,
        dimension: Option<&Dimension>,
        number: u64,
    ) {
        let what = dimension.map_or("cooling down, or others wait".to_owned(), |dimension| {
            format!("out of {dimension}")
        });
        self.add((now, REFUSED), key, what, number.checked_sub(1).filter(|more| *more > 0));
    }

    /// The newest first.
    pub(super) fn latest(&self) -> Vec<Item> {
        self.0.lock().iter().rev().cloned().collect()
    }

    fn add(
        &self,
        (now, kind): (Timestamp, &'static str),
        key: &str,
        detail: String,
        more: Option<u64>,
    ) {
        let mut items = self.0.lock();
        let number = items.back().map_or(0, |last| last.number) + 1;
        items.push_back(Item {
            number,
            at: now.as_nanos() / 1_000_000,
            kind,
            key: key.into(),
            detail,
            more,
        });
        // Many refusals are not to push out what is rarer.
        let most = if kind == REFUSED { REFUSALS } else { OTHERS };
        let same = |item: &Item| (item.kind == REFUSED) == (kind == REFUSED);
        if items.iter().filter(|item| same(item)).count() > most
            && let Some(oldest) = items.iter().position(same)
        {
            items.remove(oldest);
        }
    }
}

const REFUSED: &str = "refused";
const REFUSALS: usize = 10;
const OTHERS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::quota::Quota;

    #[test]
    fn only_the_last_are_kept_the_newest_first_and_refusals_push_out_none_but_refusals() {
        let news = News::default();
        let changed = Event::QuotaChanged { key: "a".into(), quota: Quota::new().rpm(1) };
        news.hear(&changed, Timestamp::UNIX_EPOCH);
        for number in 1..=100 {
            news.denied(Timestamp::from_nanos(number * 1_000_000), "k", None, number);
        }
        let latest = news.latest();
        assert_eq!((latest.len(), latest[0].at, latest[0].more), (REFUSALS + 1, 100, Some(99)));
        assert_eq!((latest[REFUSALS].key.as_str(), latest[REFUSALS].number), ("a", 1));
        (0..100).for_each(|_| news.hear(&changed, Timestamp::UNIX_EPOCH));
        assert_eq!(news.latest().len(), REFUSALS + OTHERS);
    }
}
