//! Random states in the form that a store returns: sorted, without duplicate times or expired
//! entries.

use paceline_limiter::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

use paceline_limiter::engine::Saved;
use paceline_limiter::limiter::{
    BucketSnapshot, KeySnapshot, ManualClock, NamedQuota, QuotaOrigin, RefusalKind, Utilization,
};
use paceline_limiter::quota::{
    Algorithm, Calendar, Dimension, Limit, Margin, Period, Quota, Share, Window,
};
use paceline_store::State;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

pub(super) const NOW: Timestamp =
    ManualClock::START.saturating_add(Duration::from_nanos(123_456_789));

pub(super) fn state() -> impl Strategy<Value = State> {
    let quotas = btree_map(name(), (quota(), origin()), 0..4);
    let keys = btree_map(name(), (buckets(), cooling(), utilization()), 0..4);
    (quotas, keys).prop_map(|(quotas, keys)| {
        let mut state = State::default();
        let named = |(name, (quota, origin))| NamedQuota::new(name, quota, origin);
        state.quotas = quotas.into_iter().map(named).collect();
        let keys = keys.into_iter().map(|(key, (buckets, cooling, utilization))| {
            let mut snapshot = KeySnapshot::new(key, buckets);
            snapshot.cooling_until = cooling.map(|(until, _)| until);
            snapshot.cooling_kind = cooling.and_then(|(_, kind)| kind);
            snapshot.utilization = utilization;
            snapshot
        });
        let is_used = |key: &KeySnapshot| {
            !key.buckets.is_empty() || key.cooling_until.is_some() || !key.utilization.is_empty()
        };
        state.keys = keys.filter(is_used).collect();
        state
    })
}

/// Generates key names, including ones that resemble YAML syntax.
fn name() -> impl Strategy<Value = String> {
    let traps = ["", "~", "null", "1", "1e3", "yes", "a: b", "- a", "...", "---", "#", "\n...\n"];
    let dates = ["2026-01-01", "2026-01-01T00:00:00Z", "0x1f", "!tag", "&a", "*a", "{", "\u{85}"];
    let traps = prop::sample::select([&traps[..], &dates[..]].concat()).prop_map(str::to_owned);
    prop_oneof![2 => "[a-z]{1,4}(-[0-9.]{1,3})?", 1 => any::<String>(), 1 => traps]
}

fn origin() -> impl Strategy<Value = QuotaOrigin> {
    prop::sample::select(vec![QuotaOrigin::Configured, QuotaOrigin::Set, QuotaOrigin::Learned])
}

fn cooling() -> impl Strategy<Value = Option<(Timestamp, Option<RefusalKind>)>> {
    let until = (1..3_600_000_000_000u64).prop_map(|left| NOW + Duration::from_nanos(left));
    prop::option::of((until, prop::option::of(prop::sample::select(&RefusalKind::ALL[..]))))
}

fn utilization() -> impl Strategy<Value = Vec<Utilization>> {
    let nanos = 1..80_000_000_000_000u64;
    let window = (0.0..100.0f64, nanos.clone(), prop::option::of(nanos));
    btree_map(name(), window, 0..3).prop_map(|windows| {
        let windows = windows.into_iter().map(|(name, (used, age, left))| {
            let mut window = Utilization::new(name, used);
            window.observed_at = NOW - Duration::from_nanos(age);
            window.resets_at = left.map(|left| NOW + Duration::from_nanos(left));
            window
        });
        windows.collect()
    })
}

fn dimension() -> impl Strategy<Value = Dimension> {
    prop_oneof![
        Just(Dimension::Requests),
        Just(Dimension::Tokens),
        Just(Dimension::InputTokens),
        Just(Dimension::OutputTokens),
        Just(Dimension::Concurrency),
        Just(Dimension::custom("tokens")),
        any::<String>().prop_map(|name| Dimension::custom(&name)),
    ]
}

fn window() -> impl Strategy<Value = Window> {
    let any = (1_000_000..=366 * 86_400_000_000_000u64)
        .prop_map(|nanos| Window::new(Duration::from_nanos(nanos)).unwrap());
    let usual = vec![
        Window::SECOND,
        Window::MINUTE,
        Window::HOUR,
        Window::DAY,
        Window::MONTH,
        Window::ENDLESS,
    ];
    prop_oneof![prop::sample::select(usual), any]
}

fn buckets() -> impl Strategy<Value = Vec<BucketSnapshot>> {
    let amount = 1..=i64::MAX.unsigned_abs();
    let taken = btree_map(any::<u64>(), amount, 0..6);
    let used = (taken, prop_oneof![Just(0), 1..9u64]);
    btree_map((dimension(), window()), used, 0..4).prop_map(|buckets| {
        let mut all = Vec::new();
        for ((dimension, window), (taken, held)) in buckets {
            let saved = Saved { taken: entries(window, taken), held };
            all.push(BucketSnapshot::new(dimension, window, saved));
        }
        all.retain(|bucket| !bucket.saved.taken.is_empty() || bucket.saved.held > 0);
        all
    })
}

/// Returns distinct times within the window.
fn entries(window: Window, taken: BTreeMap<u64, u64>) -> Vec<(Timestamp, u64)> {
    let at = |ago: u64| NOW - Duration::from_nanos(ago % window.as_nanos());
    let distinct: BTreeMap<_, _> =
        taken.into_iter().map(|(ago, amount)| (at(ago), amount)).collect();
    distinct.into_iter().collect()
}

fn quota() -> impl Strategy<Value = Quota> {
    let margin = prop::option::of((0..100_u8, any::<u64>()));
    let part = || prop::option::of((1..=1_000_000_u32).prop_map(share));
    let wait = prop::option::of(prop_oneof![Just(0), any::<u64>()].prop_map(Duration::from_nanos));
    let own = (any::<bool>(), margin, prop::option::of(any::<u32>()), part(), part(), wait);
    (vec(limit(), 0..4), own).prop_map(|(limits, own)| {
        let (shared, margin, weight, utilization, share, wait) = own;
        let mut quota = limits.into_iter().fold(Quota::new(), Quota::limit);
        if shared {
            quota = quota.shared();
        }
        if let Some((percent, lag)) = margin {
            quota = quota.with_margin(Margin::new(percent, Duration::from_nanos(lag)).unwrap());
        }
        quota = weight.into_iter().fold(quota, Quota::with_weight);
        quota = utilization.into_iter().fold(quota, Quota::with_utilization);
        quota = wait.into_iter().fold(quota, Quota::max_wait);
        share.into_iter().fold(quota, Quota::with_share)
    })
}

fn share(millionths: u32) -> Share {
    Share::try_from(f64::from(millionths) / 1e6).unwrap()
}

fn limit() -> impl Strategy<Value = Limit> {
    let algorithm = prop_oneof![
        any::<u64>().prop_map(|burst| (Algorithm::TokenBucket, burst)),
        Just((Algorithm::SlidingWindow, 0)),
        Just((Algorithm::FixedWindow, 0)),
        Just((Algorithm::ClockWindow, 0)),
    ];
    let period = prop::sample::select(vec![Period::Day, Period::Week, Period::Month]);
    let calendar = (period, prop::sample::select(vec!["America/Los_Angeles", "UTC"]))
        .prop_map(|(period, zone)| Calendar::new(period, zone).unwrap());
    let open = (dimension(), 1u64.., window(), prop::option::of(algorithm)).prop_map(
        |(dimension, amount, window, algorithm)| {
            let limit = Limit::new(dimension, amount, window).unwrap();
            match algorithm {
                Some((Algorithm::TokenBucket, burst)) => limit.with_burst(burst),
                Some((algorithm, _)) => limit.with_algorithm(algorithm),
                None => limit,
            }
        },
    );
    let dated = (dimension(), 1u64.., calendar).prop_map(|(dimension, amount, calendar)| {
        Limit::on_calendar(dimension, amount, &calendar).unwrap()
    });
    (prop_oneof![open, dated], any::<bool>())
        .prop_map(|(limit, debt)| if debt { limit.with_debt() } else { limit })
}

/// Generates states without held amounts, with at most one entry per 1/256 of a window.
pub(super) fn at_rest() -> impl Strategy<Value = State> {
    state().prop_map(|mut state| {
        for key in &mut state.keys {
            for bucket in &mut key.buckets {
                bucket.saved.held = 0;
                let grain = (bucket.window.as_nanos() / 256).max(1);
                bucket.saved.taken.dedup_by_key(|(at, _)| at.as_nanos() / grain);
            }
            key.buckets
                .retain(|b| !b.saved.taken.is_empty() && b.dimension != Dimension::Concurrency);
        }
        state.keys.retain(|key| !key.buckets.is_empty() || key.cooling_until.is_some());
        state
    })
}
