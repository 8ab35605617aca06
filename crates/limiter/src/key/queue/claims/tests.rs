//! The claims at one key, against an independent reference, and the time for which they block others.

use paceline_testing::full::full_or;
use proptest::prelude::*;

use super::super::Priority;
use super::*;

#[derive(Debug, Clone, Copy)]
enum Action {
    /// Milliseconds.
    Pass(u64),
    Leave(u64),
    End(u64, bool),
    Hold(u64, bool),
    Release(u64),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let arrival = || 1..8_u64;
    let action = prop_oneof![
        4 => (0..60_u64).prop_map(Action::Pass),
        1 => (900..1_100_u64).prop_map(Action::Pass),
        5 => arrival().prop_map(Action::Leave),
        5 => (arrival(), any::<bool>()).prop_map(|(arrival, called)| Action::End(arrival, called)),
        5 => (arrival(), any::<bool>()).prop_map(|(arrival, cost)| Action::Hold(arrival, cost)),
        5 => arrival().prop_map(Action::Release),
    ];
    proptest::collection::vec(action, 1..60)
}

/// Returns the turn of a request, whose priority its number determines.
fn turn(arrival: u64) -> Turn {
    Turn::request(arrival).within(Priority::new((arrival % 3) as i8), 0)
}

/// Returns the place of a request in the order of all, the first one lowest.
fn rank(arrival: u64) -> u64 {
    (2 - arrival % 3) * 100 + arrival
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(100_000, 2_000))
    })]

    /// At most one claim of a gate counts and one of a request, that of the first which holds one. Claims of
    /// gates without a call block others for at most 5 % of the time, and 150 ms.
    #[test]
    fn claims_match_reference_and_block_briefly(actions in actions()) {
        let (mut claims, mut now) = (Claims::default(), Timestamp::from_unix_secs(1_000));
        let begin = now;
        let mut gate: Option<(u64, Timestamp)> = None;
        let mut requests: Vec<(u64, bool)> = Vec::new();
        let mut blocked = Duration::ZERO;
        // The time at which each request last confirmed its claim.
        let mut confirmed = std::collections::HashMap::new();
        for action in actions {
            match action {
                Action::Pass(milliseconds) => {
                    now += Duration::from_millis(milliseconds);
                    let has_lapsed = gate.take_if(|(_, since)| *since + CLAIM_TIME <= now).is_some();
                    let held = requests.len();
                    requests.retain(|(own, _)| confirmed[own] + CONFIRM_TIME > now);
                    prop_assert_eq!(claims.lapse(now), has_lapsed || requests.len() < held);
                    blocked += if has_lapsed { CLAIM_TIME } else { Duration::ZERO };
                }
                Action::Leave(arrival) => {
                    claims.leave(arrival, Cost::new(), now);
                    if gate.is_none() && claims.has(arrival) {
                        gate = Some((arrival, now));
                    }
                }
                Action::End(arrival, is_called) => {
                    let ended = gate.take_if(|(own, _)| *own == arrival);
                    prop_assert_eq!(claims.end(arrival, is_called, now), ended.is_some());
                    let without_call = ended.filter(|_| !is_called);
                    blocked += without_call.map_or(Duration::ZERO, |(_, since)| now - since);
                }
                Action::Hold(arrival, has_cost) => {
                    let before = requests.first().copied();
                    requests.retain(|(own, _)| *own != arrival);
                    requests.push((arrival, has_cost));
                    confirmed.insert(arrival, now);
                    requests.sort_by_key(|(own, _)| rank(*own));
                    let is_first = requests[0].0 == arrival;
                    let ended = is_first && before.is_some_and(|before| before != requests[0]);
                    let cost = has_cost.then_some(|| Cost::new().requests(arrival));
                    prop_assert_eq!(claims.hold(turn(arrival), cost, now), ended);
                }
                Action::Release(arrival) => {
                    let counted = requests.first().is_some_and(|(own, _)| *own == arrival);
                    requests.retain(|(own, _)| *own != arrival);
                    prop_assert_eq!(claims.release(turn(arrival)), counted);
                }
            }
            prop_assert_eq!(claims.is_empty(), gate.is_none() && requests.is_empty());
            prop_assert_eq!(claims.until(), gate.map(|(_, since)| since + CLAIM_TIME));
            for arrival in 1..8 {
                let of_gate = gate.is_some_and(|(own, _)| own != arrival);
                let first = requests.first().copied();
                let of_request = first.filter(|(own, cost)| *cost && rank(*own) < rank(arrival));
                let claimed = claims.of_others(turn(arrival));
                let count = u64::from(of_gate) + u64::from(of_request.is_some());
                prop_assert_eq!(claimed.as_ref().map_or(0, |claimed| claimed.claims), count);
                let amount = u64::from(of_gate) + of_request.map_or(0, |(own, _)| own);
                let claimed = claimed.map_or(0, |claimed| claimed.cost.main_amounts()[0]);
                prop_assert_eq!(claimed, amount);
            }
            prop_assert!(blocked <= ALLOWANCE + (now - begin) / REFILL_PART, "{:?}", blocked);
        }
    }
}
