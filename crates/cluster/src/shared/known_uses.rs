use paceline_limiter::engine::Rule;

use super::script::{Operation, Outcome, Response, Uses, View, use_span};

/// When the usage of a key was taken, as far as this process knows: reported to a server that has lost
/// it, so that each amount returns when it would have without the loss.
///
/// The server states the times from time to time. In between, this process adds what it takes itself;
/// amounts of other processes count as taken when their effect is seen.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownUses {
    by_rule: Vec<Uses>,
    /// The server time at which the server stated the times; 0 if it has not.
    stated_at: u64,
}

impl KnownUses {
    /// Returns whether the next call should ask for the times of use.
    pub(super) fn are_due(&self, rules: &[Rule], now: u64) -> bool {
        let interval = rules.iter().filter_map(interval).min();
        interval.is_some_and(|interval| now.saturating_sub(self.stated_at) >= interval)
    }

    /// Returns the times of use of each rule.
    pub(super) fn by_rule(&self) -> &[Uses] {
        &self.by_rule
    }

    /// Records a response in which the process has taken these amounts.
    pub(super) fn record(&mut self, rules: &[Rule], view: &mut View, taken: &[u64]) {
        if !have_uses(rules) {
            return;
        }
        if !view.uses.is_empty() {
            (self.by_rule, self.stated_at) = (std::mem::take(&mut view.uses), view.at);
            return;
        }
        self.by_rule.resize_with(rules.len(), Uses::new);
        for (index, (rule, uses)) in rules.iter().zip(&mut self.by_rule).enumerate() {
            let Some(span) = use_span(rule) else { continue };
            let used = view.buckets.get(index).map_or(0, |(used, _)| *used);
            let at = view.at;
            uses.retain(|(time, _)| time.saturating_add(span) > view.at);
            add(uses, at, taken.get(index).copied().unwrap_or(0).min(used));
            let sum = uses.iter().map(|(_, amount)| amount).sum();
            add(uses, at, used.saturating_sub(sum));
            // Amounts may have been corrected: the latest return last.
            remove_oldest(uses, sum.saturating_sub(used));
        }
    }
}

/// Returns the amounts that a call has taken from each rule, as opposed to held; none if no rule has times of
/// use.
pub(super) fn taken(
    operation: Operation,
    rules: &[Rule],
    amounts: &[u64],
    response: &Response,
) -> Vec<u64> {
    if !have_uses(rules) {
        return Vec::new();
    }
    let takes = |rule: &Rule| match operation {
        Operation::Reserve { .. } => response.outcome == Outcome::Done && !rule.holds(),
        Operation::Charge | Operation::Lease { .. } => true,
        Operation::Settle { .. } | Operation::Return => rule.holds(),
        _ => false,
    };
    let amounts = rules.iter().zip(amounts);
    amounts.map(|(rule, amount)| if takes(rule) { *amount } else { 0 }).collect()
}

fn add(uses: &mut Uses, at: u64, amount: u64) {
    match uses.last_mut() {
        _ if amount == 0 => {}
        Some((time, sum)) if *time >= at => *sum += amount,
        _ => uses.push((at, amount)),
    }
}

fn remove_oldest(uses: &mut Uses, mut amount: u64) {
    uses.retain_mut(|(_, of)| {
        let removed = amount.min(*of);
        *of -= removed;
        amount -= removed;
        *of > 0
    });
}

fn have_uses(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| use_span(rule).is_some())
}

fn interval(rule: &Rule) -> Option<u64> {
    Some((use_span(rule)? / 8).max(MIN_INTERVAL))
}

/// The minimum time in microseconds between two statements of times.
const MIN_INTERVAL: u64 = 1_000_000;
