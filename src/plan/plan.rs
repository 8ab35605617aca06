use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::engine::{Bucket, Rule};
use crate::provider::Profile;
use crate::quota::{
    Algorithm, Cost, Dimension, Limit, Margin, Quota, SettleAt, TokenKinds, UncountedKinds,
};
use crate::timestamp::Timestamp;
use smallvec::SmallVec;

/// A quota made ready for the engine, shared by all keys that it applies to.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) rules: Arc<[Rule]>,
    /// The version of the quotas in which each rule came in: a permit that is older never held
    /// anything of it.
    since: Box<[u32]>,
    pub(crate) version: u32,
    /// Which row of the quotas it was made of.
    pub(crate) row: u32,
    /// A permit holds something until it ends.
    pub(crate) holds: bool,
    /// A quota stands behind it: the key is known.
    pub(crate) known: bool,
    /// That quota names the key.
    pub(crate) named: bool,
    /// Whether a cost is refused that names only dimensions without a limit. Limits that came out of a
    /// response's headers refuse none: no caller knew of them.
    is_strict: bool,
    /// The token dimensions that the limits don't count.
    uncounted: UncountedKinds,
    /// The most of a guess that a request reserves: what the limits can hold.
    guesses: Guesses,
    /// Its keys always have room: they are those of a configuration, and few.
    pub(crate) reserved: bool,
    /// The quota, where it came with a request.
    pub(crate) given: Option<Quota>,
    profile: Option<Profile>,
    margin: Margin,
}

/// The amounts that the limits of a key can hold of dimensions that may be guessed.
#[derive(Debug, Clone, Copy)]
struct Guesses {
    tokens: u64,
    output: u64,
}

pub(crate) type Buckets = SmallVec<[Bucket; 3]>;

pub(crate) type Rules = SmallVec<[Rule; 3]>;

impl Plan {
    pub(crate) fn new(
        quota: &Quota,
        profile: Option<&Profile>,
        margin: Margin,
        (row, version): (u32, u32),
    ) -> Self {
        let profile = profile.copied();
        let margin = quota.margin().unwrap_or(margin);
        let rules: Arc<[Rule]> =
            quota.limits().iter().map(|limit| rule(limit, profile, margin)).collect();
        let holds = rules.iter().any(Rule::holds);
        let since = rules.iter().map(|_| version).collect();
        let counted = rules.iter().map(Rule::dimension);
        let uncounted = counted.fold(TokenKinds::NONE, TokenKinds::with).uncounted();
        let guesses = Guesses {
            tokens: least(&rules, &Dimension::Tokens),
            output: least(&rules, &Dimension::OutputTokens),
        };
        let (known, named, reserved, is_strict, given) = (true, true, false, true, None);
        Self {
            rules,
            since,
            version,
            row,
            holds,
            known,
            named,
            reserved,
            is_strict,
            uncounted,
            guesses,
            given,
            profile,
            margin,
        }
    }

    /// For keys that nobody knows.
    pub(crate) fn unknown(quota: &Quota, made: (u32, u32)) -> Self {
        Self { known: false, ..Self::new(quota, None, Margin::NONE, made).unnamed().lenient() }
    }

    /// The same, but no cost is refused for the dimensions that it names.
    pub(crate) fn lenient(self) -> Self {
        Self { is_strict: false, ..self }
    }

    /// The same, for keys that no quota names.
    pub(crate) fn unnamed(self) -> Self {
        Self { named: false, ..self }
    }

    /// The same, for keys that always have room.
    pub(crate) fn reserved(self) -> Self {
        Self { reserved: true, ..self }
    }

    /// The same, for limits that came with a request.
    pub(crate) fn given(self, quota: Quota) -> Self {
        Self { given: Some(quota), ..self.unnamed() }
    }

    /// Returns whether these limits came with a request that brings them for keys that no quota names.
    pub(crate) fn is_default(&self) -> bool {
        self.row == DEFAULT_ROW
    }

    /// The same limits with other amounts: the largest request that these limits let in, those let in
    /// when nothing is used.
    pub(crate) fn lowered(&self, amounts: &[u64]) -> Self {
        let (since, given) = (self.since.clone(), self.given.clone());
        Self { rules: self.lower(amounts).into_iter().collect(), since, given, ..*self }
    }

    /// The rules of such a plan.
    pub(crate) fn lower(&self, amounts: &[u64]) -> Rules {
        let lower = |(whole, &amount): (&Rule, &u64)| match NonZeroU64::new(amount) {
            Some(amount) if amount.get() < whole.limit().amount() => {
                rule(&whole.limit().clone().lowered(amount), self.profile, self.margin)
            }
            _ => whole.clone(),
        };
        self.rules.iter().zip(amounts).map(lower).collect()
    }

    pub(crate) fn fresh(&self) -> Buckets {
        self.rules.iter().map(Bucket::new).collect()
    }

    /// This plan as the successor of `old` in a version of its own: rules that stood before keep
    /// their date.
    pub(crate) fn succeed(&self, old: &Self, version: u32) -> Self {
        let since = |rule: &Rule| match old.standing(rule) {
            Some(index) if old.rules[index].holds() == rule.holds() => old.since[index],
            _ => version,
        };
        Self {
            since: self.rules.iter().map(since).collect(),
            rules: Arc::clone(&self.rules),
            given: self.given.clone(),
            version,
            ..*self
        }
    }

    /// The same after a reset, in a version of its own: what requests took that were sent before is
    /// forgotten, so that they have nothing to give back; what they hold they still end.
    pub(crate) fn renewed(&self, version: u32) -> Self {
        let since = self.rules.iter().zip(&self.since);
        let since = since.map(|(rule, &since)| if rule.holds() { since } else { version });
        Self {
            since: since.collect(),
            rules: Arc::clone(&self.rules),
            given: self.given.clone(),
            version,
            ..*self
        }
    }

    /// The buckets of a key that has come from `old` to this plan: what was used stays used, what
    /// is held stays held.
    pub(crate) fn carry(&self, old: &Self, buckets: &[Bucket], now: Timestamp) -> Buckets {
        let carry = |rule: &Rule| match old.standing(rule) {
            Some(index) => buckets[index].carry(&old.rules[index], rule, now),
            None => Bucket::new(rule),
        };
        self.rules.iter().map(carry).collect()
    }

    fn standing(&self, rule: &Rule) -> Option<usize> {
        self.rules.iter().position(|old| old.counts_same_as(rule))
    }

    /// Returns whether `new` goes on where `old` was, a rule of this plan.
    pub(crate) fn is_standing(&self, old: &Rule, new: &Rule) -> bool {
        self.standing(new).is_some_and(|at| std::ptr::eq(&self.rules[at], old))
    }

    /// The cost, but in each dimension at most what the limits can hold.
    pub(crate) fn clip(&self, cost: &Cost) -> Cost {
        let most =
            |dimension: Dimension| cost.amount(&dimension).min(least(&self.rules, &dimension));
        let customs = cost.customs().map(|(name, _)| name);
        let clipped = Cost::new()
            .requests(most(Dimension::Requests))
            .tokens(most(Dimension::Tokens))
            .input_tokens(most(Dimension::InputTokens))
            .output_tokens(most(Dimension::OutputTokens));
        customs.fold(clipped, |clipped, name| clipped.custom(name, most(Dimension::custom(name))))
    }

    /// The cost, but of its guesses at most what the limits can hold. The limits of the quota count
    /// here, also while they are reduced.
    pub(crate) fn clip_guesses<'c>(&self, cost: &'c Cost) -> Cow<'c, Cost> {
        let Guesses { tokens, output } = self.guesses;
        cost.clip_guesses(tokens, output).map_or(Cow::Borrowed(cost), Cow::Owned)
    }

    /// Returns whether limits count all dimensions that a cost names.
    #[inline]
    pub(crate) fn counts(&self, cost: &Cost) -> bool {
        !self.uncounted.has(cost.named()) && (!cost.has_customs() || self.counts_customs(cost))
    }

    #[inline(never)]
    fn counts_customs(&self, cost: &Cost) -> bool {
        cost.customs().all(|(name, amount)| amount == 0 || self.counts_custom(name))
    }

    /// Returns whether a limit counts this custom dimension.
    pub(crate) fn counts_custom(&self, custom: &str) -> bool {
        let is_it =
            |rule: &Rule| matches!(rule.dimension(), Dimension::Custom(name) if **name == *custom);
        self.rules.iter().any(is_it)
    }

    /// A dimension of a cost that no limit counts, though the key has limits. Custom ones may be
    /// counted elsewhere: by another key of the same request.
    pub(crate) fn uncounted(
        &self,
        cost: &Cost,
        elsewhere: impl Fn(&str) -> bool,
    ) -> Option<Dimension> {
        if self.counts(cost) || self.rules.is_empty() || !self.known {
            return None;
        }
        let is_uncounted = |(name, amount): &(&str, u64)| {
            *amount > 0 && !self.counts_custom(name) && !elsewhere(name)
        };
        let custom = || cost.customs().find(is_uncounted);
        let tokens = TOKENS.into_iter().filter(|_| self.uncounted.has(cost.named()));
        let mut tokens = tokens.filter(|kind| cost.amount(kind) > 0);
        tokens.next().or_else(|| custom().map(|(name, _)| Dimension::custom(name)))
    }

    /// The same of what a request is to reserve: limits that no caller knew of refuse nothing.
    pub(crate) fn refuses(
        &self,
        cost: &Cost,
        elsewhere: impl Fn(&str) -> bool,
    ) -> Option<Dimension> {
        if self.is_strict { self.uncounted(cost, elsewhere) } else { None }
    }

    /// A dimension that is limited and was reserved, but that the charge doesn't name.
    pub(crate) fn unsettled(&self, reserved: &Cost, charged: &Cost) -> Option<Dimension> {
        let is_unsettled = |named: &&Dimension| reserved.amount(named) > 0 && !charged.names(named);
        self.rules.iter().map(Rule::dimension).find(is_unsettled).cloned()
    }

    /// Returns whether both are the same limits, made ready once.
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rules, &other.rules)
    }

    /// Returns whether the rule stood when a permit of this version was granted.
    pub(crate) fn stood(&self, rule: usize, version: u32) -> bool {
        self.since[rule] <= version
    }
}

/// Buckets of such rules, under the same limits in other amounts.
pub(crate) fn resize(
    (rules, buckets): (&[Rule], &[Bucket]),
    new: &[Rule],
    now: Timestamp,
) -> Buckets {
    let pairs = new.iter().zip(rules.iter().zip(buckets));
    pairs.map(|(new, (old, bucket))| bucket.resize(old, new, now)).collect()
}

fn rule(limit: &Limit, profile: Option<Profile>, margin: Margin) -> Rule {
    let algorithm = profile.map_or(Algorithm::SlidingWindow, |profile| profile.algorithm());
    let dimension = limit.dimension();
    let settle = profile.map_or_else(|| settles(dimension), |profile| profile.settles(dimension));
    Rule::new(limit, algorithm, margin, settle)
}

/// Returns the amount that the limits of a dimension can hold; `u64::MAX` without one.
fn least(rules: &[Rule], dimension: &Dimension) -> u64 {
    let holding = rules.iter().filter(|rule| rule.dimension() == dimension);
    holding.map(Rule::capacity).min().unwrap_or(u64::MAX)
}

/// The dimensions that count tokens.
const TOKENS: [Dimension; 3] = [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens];

/// The row of limits that come with requests for keys that no quota names.
pub(crate) const DEFAULT_ROW: u32 = u32::MAX - 1;

/// Without a profile a request counts when it is sent and everything else when it has ended.
fn settles(dimension: &Dimension) -> SettleAt {
    match dimension {
        Dimension::Requests => SettleAt::Send,
        _ => SettleAt::End,
    }
}
