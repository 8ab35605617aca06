//! The record of all grants, and the number of those that exceed the limit. Doesn't use paceline's code.

/// A grant as a member reports it, in nanoseconds since the Unix epoch.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) member: usize,
    pub(crate) client: usize,
    pub(crate) asked: u64,
    pub(crate) granted: u64,
    /// The time just before the end was reported; `None` if the member was killed before.
    pub(crate) ended: Option<u64>,
    /// What it was settled with; what it reserved until then.
    pub(crate) used: u64,
}

/// A period in which a member is frozen, or from its kill on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    pub(crate) member: usize,
    pub(crate) from: u64,
    pub(crate) until: u64,
}

/// The rule that a limit promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// At most the amount, plus what a second of it refills.
    Bucket,
    /// At most the amount in any second.
    Sliding,
    /// At most the amount in each second of the clock.
    Clock,
    /// At most the amount at the same time.
    Concurrent,
}

/// Returns the largest amount by which these grants prove that a limit of `amount` was exceeded.
///
/// The decision about a grant was made up to [`SLACK`] before it was reported. Grants of a member that was
/// paused meanwhile are left out, since their decision may be older.
pub(crate) fn excess(promise: Promise, amount: u64, grants: &[Grant], pauses: &[Pause]) -> u64 {
    let paused = |grant: &&Grant| {
        let meets = |pause: &&Pause| {
            pause.member == grant.member
                && pause.from <= grant.granted
                && grant.asked <= pause.until
        };
        pauses.iter().any(|pause| meets(&pause))
    };
    let mut known: Vec<&Grant> = grants.iter().filter(|grant| !paused(grant)).collect();
    known.sort_by_key(|grant| grant.granted);
    match promise {
        Promise::Bucket => bucket_excess(amount, &known),
        Promise::Sliding => sliding_excess(amount, &known),
        Promise::Clock => clock_excess(amount, &known),
        Promise::Concurrent => concurrent_excess(amount, &known, pauses),
    }
}

fn bucket_excess(amount: u64, known: &[&Grant]) -> u64 {
    let mut most = 0;
    for (first, begin) in known.iter().enumerate() {
        let mut sum = 0;
        for grant in &known[first..] {
            sum += grant.used;
            let passed = grant.granted - begin.granted + SLACK;
            let refilled = (u128::from(amount) * u128::from(passed)).div_ceil(u128::from(SECOND));
            most = most.max(sum.saturating_sub(amount + refilled as u64));
        }
    }
    most
}

fn sliding_excess(amount: u64, known: &[&Grant]) -> u64 {
    let mut most = 0;
    for (first, begin) in known.iter().enumerate() {
        let within = known[first..].iter();
        let within = within.take_while(|grant| grant.granted < begin.granted + SECOND - SLACK);
        let sum: u64 = within.map(|grant| grant.used).sum();
        most = most.max(sum.saturating_sub(amount));
    }
    most
}

fn clock_excess(amount: u64, known: &[&Grant]) -> u64 {
    let mut sums = std::collections::HashMap::<u64, u64>::new();
    // A grant at the start of a second may have been decided in the one before.
    for grant in known.iter().filter(|grant| grant.granted % SECOND >= SLACK) {
        *sums.entry(grant.granted / SECOND).or_default() += grant.used;
    }
    sums.values().map(|sum| sum.saturating_sub(amount)).max().unwrap_or(0)
}

fn concurrent_excess(amount: u64, known: &[&Grant], pauses: &[Pause]) -> u64 {
    let mut changes = Vec::new();
    for grant in known {
        let pause = pauses.iter().find(|pause| pause.member == grant.member);
        let pause = pause.map_or(u64::MAX, |pause| pause.from);
        // A paused member doesn't renew its reservations, so its places become free.
        let ended = grant.ended.unwrap_or(pause).min(pause.max(grant.granted));
        changes.extend([(grant.granted, 1_i64), (ended, -1)]);
    }
    // Ends before starts at the same time.
    changes.sort_unstable();
    let (mut open, mut most) = (0_i64, 0);
    for (_, change) in changes {
        open += change;
        most = most.max(open);
    }
    u64::try_from(most).unwrap_or(0).saturating_sub(amount)
}

pub(crate) const SECOND: u64 = 1_000_000_000;

/// The longest time between a decision and its report: the timeout, and a busy machine.
const SLACK: u64 = 300_000_000;

/// The judge itself: it must find what it is there to find.
pub(crate) fn check_judge() {
    let grant = |at: u64, used| Grant {
        member: 0,
        client: 0,
        asked: at,
        granted: at,
        ended: Some(at + SECOND / 10),
        used,
    };
    let second: Vec<_> =
        (0..10).map(|n| grant(10 * SECOND + SECOND / 2 + n * SECOND / 100, 1)).collect();
    for promise in [Promise::Bucket, Promise::Sliding, Promise::Clock, Promise::Concurrent] {
        assert_eq!(excess(promise, 10, &second, &[]), 0, "{promise:?}");
        let refilled = if promise == Promise::Bucket { 2 } else { 0 };
        assert_eq!(excess(promise, 5, &second, &[]), 5 - refilled, "{promise:?}");
    }
    let pause = Pause { member: 0, from: 0, until: u64::MAX };
    assert_eq!(
        excess(Promise::Sliding, 5, &second, &[pause]),
        0,
        "unknown decisions prove nothing"
    );
}
