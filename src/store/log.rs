use crate::engine::Saved;

/// What is left of entries that were taken and given back, as a bucket's state. Given back is what
/// was taken at the same time or last before it, else next after it.
pub(super) fn saved(mut entries: Vec<(u64, i64)>) -> Saved {
    // What was taken at a time comes before what was given back of it.
    entries.sort_unstable_by_key(|&(at, amount)| (at, amount < 0));
    let mut taken: Vec<(u64, u64)> = Vec::new();
    let mut owed: u64 = 0;
    for (at, amount) in entries {
        let mut size = amount.unsigned_abs();
        if amount < 0 {
            give_back(&mut taken, &mut size);
            owed = owed.saturating_add(size);
            continue;
        }
        let repaid = size.min(owed);
        (owed, size) = (owed - repaid, size - repaid);
        match taken.last_mut() {
            _ if size == 0 => {}
            Some(last) if last.0 == at => last.1 = last.1.saturating_add(size),
            _ => taken.push((at, size)),
        }
    }
    Saved { taken, held: 0 }
}

fn give_back(taken: &mut Vec<(u64, u64)>, size: &mut u64) {
    while *size > 0
        && let Some(last) = taken.last_mut()
    {
        let part = last.1.min(*size);
        (last.1, *size) = (last.1 - part, *size - part);
        if last.1 == 0 {
            taken.pop();
        }
    }
}

/// Makes entries fewer: those within `step` nanoseconds become one, of the latest of their times.
pub(super) fn coarsen(entries: &mut Vec<(u64, i64)>, step: u64) {
    entries.sort_unstable_by_key(|&(at, _)| at);
    let step = step.max(1);
    entries.dedup_by(|next, kept| {
        let same = next.0 / step == kept.0 / step;
        if same {
            *kept = (next.0, kept.1.saturating_add(next.1));
        }
        same
    });
    entries.retain(|&(_, amount)| amount != 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_back_is_gone_and_nothing_else() {
        assert_eq!(saved(vec![(1, 5), (2, 3), (2, -3), (3, 4)]).taken, [(1, 5), (3, 4)]);
        assert_eq!(saved(vec![(2, -3), (2, 5)]).taken, [(2, 2)]);
        assert_eq!(saved(vec![(1, 5), (3, 4), (2, -6)]).taken, [(3, 3)]);
        assert_eq!(saved(vec![(1, -9), (2, 4)]).taken, []);
        assert_eq!(saved(vec![(1, i64::MAX), (1, i64::MAX)]).taken, [(1, u64::MAX - 1)]);
    }

    #[test]
    fn entries_close_to_each_other_become_one_of_the_latest_time() {
        let mut entries = vec![(19, 2), (10, 1), (20, 4), (31, 3), (32, -3)];
        coarsen(&mut entries, 10);
        assert_eq!(entries, [(19, 3), (20, 4)]);
    }
}
