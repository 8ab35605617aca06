//! Changes applied from other parties.

use super::*;

fn taken(amount: i64) -> BucketChanges {
    BucketChanges::new(Dimension::Tokens, Window::MINUTE, vec![(START, amount)], 0)
}

fn held(amount: u64) -> BucketChanges {
    BucketChanges::new(Dimension::Tokens, Window::MINUTE, Vec::new(), amount)
}

#[test]
fn use_proven_by_headers_is_not_counted_again_for_two_rounds() {
    let applied = |rounds: &[u64], amount: i64| {
        let mut party = Party::of(Quota::new().rpm(100).tpm(100), true);
        party.journal.used_by_others(1, 10, 5);
        for &round in rounds {
            party.journal.apply(&mut party.limits, &taken(amount), round, START);
        }
        party.used_and_held(START)[1].0
    };
    assert_eq!(applied(&[5], 15), 5);
    assert_eq!(applied(&[7], 15), 5);
    assert_eq!(applied(&[8], 15), 15, "reports of that time have arrived");
    assert_eq!(applied(&[5, 6, 7], 4), 2, "each amount is set off once");
}

#[test]
fn use_proven_of_one_limit_is_set_off_against_no_other() {
    let mut party = Party::of(Quota::new().rpm(100).tpm(100), true);
    party.journal.used_by_others(0, 10, 5);
    party.journal.used_by_others(1, 2, 5);
    party.journal.used_by_others(1, 3, 5);
    party.journal.used_by_others(1, 1, 6);
    party.journal.apply(&mut party.limits, &taken(15), 6, START);
    assert_eq!(party.used_and_held(START)[1].0, 9);
    party.journal.used_by_others(1, 5, 6);
    party.reset(START);
    party.journal.apply(&mut party.limits, &taken(15), 6, START);
    assert_eq!(party.used_and_held(START)[1].0, 15, "cleared by the reset");
}

#[test]
fn amount_held_by_others_replaces_the_last_and_is_not_reported() {
    let mut party = Party::of(Quota::new().tpm(100), true);
    party.reserve(&tokens(5), START);
    for (amount, total) in [(30, 35), (50, 55), (20, 25)] {
        party.journal.apply(&mut party.limits, &held(amount), 0, START);
        assert_eq!(party.used_and_held(START), [(0, total)]);
        assert_eq!(party.journal.held_by_others(0), amount);
    }
    assert_eq!(reported(party.collect().as_ref(), &Dimension::Tokens), Some((vec![], 5)));
}

#[test]
fn amount_held_by_others_stays_held_under_another_quota() {
    let mut party = Party::of(Quota::new().tpm(100), true);
    party.reserve(&tokens(5), START);
    party.journal.apply(&mut party.limits, &held(30), 0, START);
    let quota =
        |quota: Quota, is_held| plan(&quota.with_algorithm(Algorithm::SlidingWindow), is_held, 2);
    party.follow(&quota(Quota::new().tpm(200), true), START);
    assert_eq!(party.used_and_held(START), [(0, 35)]);
    // The amount is remembered without the limit, and held again with it.
    party.follow(&quota(Quota::new().rpm(9), true), START);
    assert_eq!(party.used_and_held(START), [(0, 0)]);
    assert_eq!(reported(party.collect().as_ref(), &Dimension::Tokens).unwrap().0, [(START, 5)]);
    party.journal.apply(&mut party.limits, &held(31), 0, START);
    party.follow(&quota(Quota::new().tpm(300), true), START);
    assert_eq!(party.used_and_held(START), [(0, 31)]);
    // Under a rule that holds no amounts, those of others are not taken: they report them as taken.
    party.follow(&quota(Quota::new().tpm(300), false), START);
    assert_eq!(party.used_and_held(START)[0].0, 0);
}

#[test]
fn amount_held_is_reported_taken_when_the_rule_stops_holding() {
    let mut party = Party::of(Quota::new().tpm(100), true);
    party.reserve(&tokens(40), START);
    party.collect();
    party.follow(&plan(&Quota::new().tpm(100), false, 2), START + S);
    let changes = party.collect();
    let expected = (vec![(START + S, 40)], 0);
    assert_eq!(reported(changes.as_ref(), &Dimension::Tokens), Some(expected));
}

#[test]
fn reset_by_another_party_keeps_amounts_taken_since() {
    let mut party = Party::of(Quota::new().tpm(100), false);
    party.charge(&tokens(5), START);
    party.charge(&tokens(7), START + 10 * S);
    party.journal.cooling(START + 30 * S);
    party.limits.clear(Arc::new(party.limits.plan.renewed(2)));
    let reset_at = START + 9 * S;
    let until = party.journal.apply_reset(&mut party.limits, reset_at, START + 11 * S);
    assert_eq!((until, party.used_and_held(START + 11 * S)), (START + 30 * S, vec![(7, 0)]));
    let expected = (vec![(START + 10 * S, 7)], 0);
    assert_eq!(reported(party.collect().as_ref(), &Dimension::Tokens), Some(expected));
}

#[test]
fn clock_set_back_moves_all_times_collected() {
    let mut party = Party::of(Quota::new().tpm(100), false);
    let permit = party.reserve(&tokens(40), START);
    party.collect();
    party.reserve(&tokens(5), START + S);
    party.journal.cooling(START + 9 * S);
    let back = 3_600 * S;
    party.limits.rebase(back);
    party.journal.rebase(back);
    let permit = Permit { at: permit.at - back, ..permit };
    party.end(&permit, Some(&tokens(30)), START + 2 * S - back);
    // Taken since the last collection, so that the returned amount is deducted from it.
    let permit = party.reserve(&tokens(20), START + 3 * S - back);
    party.end(&permit, Some(&tokens(12)), START + 4 * S - back);
    let changes = party.collect();
    let taken = vec![(START - back, -10), (START + S - back, 5), (START + 3 * S - back, 12)];
    let expected = (taken, 0);
    assert_eq!(reported(changes.as_ref(), &Dimension::Tokens), Some(expected));
    assert_eq!(changes.unwrap().cooling_until, Some(START + 9 * S - back));
}
