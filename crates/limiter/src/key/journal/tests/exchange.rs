//! Collected changes make the same buckets in another party.

use crate::timestamp::Timestamp;
use proptest::test_runner::TestRunner;
use std::time::Duration;

use super::*;

#[derive(Debug, Clone)]
enum Action {
    Reserve(u64),
    Settle(usize, u64),
    Release(usize),
    SettleEarly(usize, u64),
    Charge(u64),
    Reset,
    Follow(usize),
    Exchange,
}

#[derive(Debug, Clone, Copy)]
struct Scheme {
    algorithm: Algorithm,
    is_held: bool,
}

impl Scheme {
    /// Returns one of several quotas to follow.
    fn plan(self, number: usize) -> Plan {
        let more = number as u64 * 10;
        let quota = Quota::new().rpm(500 + more).itpm(9_000 + more).otpm(9_000).concurrency(50);
        plan(&quota.with_algorithm(self.algorithm), self.is_held && number != NEVER_HELD, 1)
    }

    /// Returns whether both parties count an action alike. A token bucket gets less returned the
    /// later it learns of a return; a log with later entries keeps the rest of the amount.
    fn can(self, action: &Action, open: &[Permit], returns: bool) -> bool {
        match *action {
            Action::Release(_) => returns,
            // A token bucket has refilled by the old amounts.
            Action::Follow(1..) => self.algorithm != Algorithm::TokenBucket,
            Action::Settle(which, amount) if !returns && !self.is_held => {
                let output = |permit: &Permit| permit.reserved.amount(&Dimension::OutputTokens);
                open.get(which).is_none_or(|permit| output(permit) <= amount)
            }
            _ => true,
        }
    }
}

fn cost(amount: u64) -> Cost {
    Cost::new().input_tokens(amount).output_tokens(amount)
}

fn act(party: &mut Party, scheme: Scheme, action: &Action, now: Timestamp) {
    let count = party.open.len();
    match *action {
        Action::Reserve(amount) => {
            let permit = party.reserve(&cost(amount), now);
            party.open.push(permit);
        }
        Action::Settle(which, _) | Action::Release(which) if which >= count => {}
        Action::Settle(which, amount) => {
            let permit = party.open.swap_remove(which);
            party.end(&permit, Some(&cost(amount)), now);
        }
        Action::Release(which) => {
            let permit = party.open.swap_remove(which);
            party.end(&permit, None, now);
        }
        Action::SettleEarly(which, input) => {
            let open = party.open.get(which).filter(|permit| permit.early.is_none());
            if let Some(mut permit) = open.cloned() {
                party.settle_early(&mut permit, input, now);
                party.open[which] = permit;
            }
        }
        Action::Charge(amount) => party.charge(&cost(amount), now),
        Action::Reset => party.reset(now),
        Action::Follow(number) => party.follow(&scheme.plan(number), now),
        Action::Exchange => {}
    }
}

/// The parts of a window that pass, the party, and its action.
type Step = (u64, usize, Action);

fn steps(parties: usize, has_changes: bool) -> impl Strategy<Value = Vec<Step>> {
    let which = || 0..6_usize;
    let changes = u32::from(has_changes);
    let action = prop_oneof![
        6 => (1..200_u64).prop_map(Action::Reserve),
        4 => (which(), 0..300_u64).prop_map(|(which, amount)| Action::Settle(which, amount)),
        2 => which().prop_map(Action::Release),
        2 => (which(), 0..300_u64).prop_map(|(which, input)| Action::SettleEarly(which, input)),
        2 => (1..200_u64).prop_map(Action::Charge),
        1 + changes => Just(if has_changes { Action::Reset } else { Action::Exchange }),
        1 + changes => (0..3_usize).prop_map(move |number| {
            if has_changes { Action::Follow(number) } else { Action::Exchange }
        }),
        3 => Just(Action::Exchange),
    ];
    proptest::collection::vec((0..2_u64, 0..parties, action), 1..58)
}

fn schemes(algorithms: &'static [Algorithm]) -> impl Strategy<Value = Scheme> {
    (proptest::sample::select(algorithms), any::<bool>())
        .prop_map(|(algorithm, is_held)| Scheme { algorithm, is_held })
}

/// Exchanges the changes of both parties.
fn exchange([one, two]: &mut [Party; 2], now: Timestamp) {
    let changes = [one.collect(), two.collect()];
    assert!(one.collect().is_none() && two.collect().is_none(), "reported twice");
    changes[0].iter().for_each(|changes| two.apply(changes, now));
    changes[1].iter().for_each(|changes| one.apply(changes, now));
    assert!(one.collect().is_none() && two.collect().is_none(), "changes of the other reported");
}

/// Within a minute, so that no window ends meanwhile.
#[test]
fn parties_after_an_exchange_have_the_same_used_and_held() {
    let property = |(scheme, steps): (Scheme, Vec<Step>)| {
        let mut parties = [0, 1].map(|_| Party::new(scheme.plan(0)));
        let mut now = START;
        for (after, which, action) in steps.iter().chain([&LAST]) {
            now += PART * u32::try_from(*after).unwrap();
            let returns = scheme.algorithm != Algorithm::SlidingWindow;
            if scheme.can(action, &parties[*which].open, returns) {
                act(&mut parties[*which], scheme, action, now);
            }
            if let Action::Exchange = action {
                exchange(&mut parties, now);
                prop_assert_eq!(parties[0].used_and_held(now), parties[1].used_and_held(now));
            }
        }
        Ok(())
    };
    let input = (schemes(&ALGORITHMS[1..]), steps(2, false));
    TestRunner::new(config()).run(&input, property).unwrap();
}

/// All algorithms, with resets and quota changes, which both parties follow.
#[test]
fn receiving_party_has_the_same_used_and_held() {
    let property = |(scheme, steps): (Scheme, Vec<Step>)| {
        let mut parties = [0, 1].map(|_| Party::new(scheme.plan(0)));
        let mut now = START;
        for (after, _, action) in steps.iter().chain([&LAST]) {
            now += PART * u32::try_from(*after).unwrap();
            let returns = scheme.algorithm != Algorithm::TokenBucket;
            if scheme.can(action, &parties[0].open, returns) {
                act(&mut parties[0], scheme, action, now);
                if let Action::Follow(_) = action {
                    act(&mut parties[1], scheme, action, now);
                }
            }
            if let Action::Exchange = action {
                exchange(&mut parties, now);
                prop_assert_eq!(parties[0].used_and_held(now), parties[1].used_and_held(now));
            }
        }
        Ok(())
    };
    let input = (schemes(&ALGORITHMS), steps(1, true));
    TestRunner::new(config()).run(&input, property).unwrap();
}

#[test]
fn amount_returned_before_two_changes_of_the_quota_is_reported() {
    let scheme = Scheme { algorithm: Algorithm::FixedWindow, is_held: true };
    let mut parties = [0, 1].map(|_| Party::new(scheme.plan(0)));
    let follow = |parties: &mut [Party; 2], number, now| {
        parties.iter_mut().for_each(|party| act(party, scheme, &Action::Follow(number), now));
    };
    act(&mut parties[0], scheme, &Action::Reserve(1), START);
    follow(&mut parties, 2, START);
    act(&mut parties[0], scheme, &Action::Reserve(13), START);
    exchange(&mut parties, START);
    let later = START + PART;
    act(&mut parties[0], scheme, &Action::Settle(1, 0), later);
    follow(&mut parties, 0, later);
    follow(&mut parties, 2, later);
    exchange(&mut parties, later);
    assert_eq!(parties[0].used_and_held(later), parties[1].used_and_held(later));
}

#[test]
fn usage_before_a_change_of_the_quota_is_reported_at_its_new_time() {
    let scheme = Scheme { algorithm: Algorithm::FixedWindow, is_held: true };
    let mut parties = [0, 1].map(|_| Party::new(scheme.plan(0)));
    let follow = |parties: &mut [Party; 2], number, now| {
        parties.iter_mut().for_each(|party| act(party, scheme, &Action::Follow(number), now));
    };
    follow(&mut parties, 2, START);
    act(&mut parties[0], scheme, &Action::Reserve(1), START);
    act(&mut parties[0], scheme, &Action::Reset, START);
    exchange(&mut parties, START);
    act(&mut parties[0], scheme, &Action::Reserve(7), START);
    // Of the request before the last.
    act(&mut parties[0], scheme, &Action::Settle(0, 0), START);
    act(&mut parties[0], scheme, &Action::Settle(0, 2), START);
    let later = START + PART;
    follow(&mut parties, 0, later);
    exchange(&mut parties, later);
    assert_eq!(parties[0].used_and_held(later), parties[1].used_and_held(later));
}

/// The number of a quota whose tokens are not held.
const NEVER_HELD: usize = 2;

const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::TokenBucket,
    Algorithm::SlidingWindow,
    Algorithm::FixedWindow,
    Algorithm::ClockWindow,
];

/// Amounts taken within such a part of a minute are merged into one report.
const PART: Duration = Duration::from_nanos(60_000_000_000 / 64);

const LAST: Step = (0, 0, Action::Exchange);
