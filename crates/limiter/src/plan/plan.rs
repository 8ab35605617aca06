use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

use super::provider::{Provider, default_settlement};
use crate::engine::{Bucket, Rule};
use crate::quota::{
    Algorithm, Cost, CustomAmount, Dimension, Limit, Margin, Quota, TokenKinds, USD, UncountedKinds,
};
use crate::timestamp::Timestamp;
use smallvec::SmallVec;

/// A quota prepared for the engine, shared by all keys that it covers.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) rules: Arc<[Rule]>,
    /// The version of the quotas in which each rule was added: an older permit holds nothing of it.
    pub(super) since: Box<[u32]>,
    /// The version in which each rule got its window and algorithm: an older permit gets nothing back of it.
    pub(super) same_since: Box<[u32]>,
    /// The largest amount of each rule in this plan and those before it, if one was larger.
    pub(super) fastest: Option<Box<[u64]>>,
    pub(crate) version: u32,
    /// The id of the registered quota that the plan was made from.
    pub(crate) id: u64,
    /// `true` if permits hold an amount until they end.
    pub(crate) holds: bool,
    /// `true` if the limits are built in, for a tier that may not be the account's.
    pub(crate) is_built_in: bool,
    /// `true` if a quota covers the key.
    pub(crate) known: bool,
    /// `true` if the quota is in the registry and not a default.
    pub(crate) named: bool,
    /// `true` if costs in dimensions without a limit are refused. `false` for limits learned from response
    /// headers, which callers cannot know.
    is_strict: bool,
    /// `true` if headers have stated the limits and the algorithm is unknown: they are counted as sliding
    /// windows, which are safe everywhere.
    pub(crate) assumes_windows: bool,
    /// The token dimensions that the limits don't count.
    uncounted: UncountedKinds,
    /// The largest estimates that a request reserves: the amounts that the limits can hold.
    guesses: Guesses,
    /// `true` if a limit counts money.
    pub(crate) limits_spending: bool,
    /// `true` if requests of the key also count to the limits on spending of another key: that of the model whose mode
    /// it is.
    pub(crate) has_spending_key: bool,
    /// `true` if its keys are always accepted, because a configuration names them and they are few.
    pub(crate) reserved: bool,
    /// The quota, if it came with a request.
    pub(crate) given: Option<Quota>,
    /// The provider by whose rules the limits count, if it counts the key's requests.
    pub(crate) provider: Option<Provider>,
    margin: Margin,
    /// The quota that the plan was made from, without its limits.
    pub(crate) terms: Quota,
}

/// The amounts that the limits of a key can hold in dimensions that may be estimated.
#[derive(Debug, Clone, Copy)]
struct Guesses {
    tokens: u64,
    input: u64,
    output: u64,
}

pub(crate) type Buckets = SmallVec<[Bucket; 3]>;

pub(crate) type Rules = SmallVec<[Rule; 3]>;

impl Plan {
    pub(crate) fn new(
        quota: &Quota,
        provider: Option<&Provider>,
        margin: Margin,
        id: u64,
        version: u32,
    ) -> Self {
        let margin = quota.margin().unwrap_or(margin);
        let rules: Arc<[Rule]> =
            quota.limits().iter().map(|limit| rule(limit, provider, margin)).collect();
        let holds = rules.iter().any(Rule::holds);
        let since: Box<[u32]> = rules.iter().map(|_| version).collect();
        let counted = rules.iter().map(Rule::dimension);
        let uncounted = counted.fold(TokenKinds::NONE, TokenKinds::with).uncounted();
        let limits_spending = rules.iter().any(|rule| rule.dimension().is_usd());
        let guesses = Guesses {
            tokens: least(&rules, &Dimension::Tokens),
            input: least(&rules, &Dimension::InputTokens),
            output: least(&rules, &Dimension::OutputTokens),
        };
        let (known, named, reserved, is_strict, given) = (true, true, false, true, None);
        let (is_built_in, assumes_windows) = (false, false);
        Self {
            rules,
            same_since: since.clone(),
            fastest: None,
            since,
            version,
            id,
            holds,
            is_built_in,
            known,
            named,
            reserved,
            is_strict,
            assumes_windows,
            uncounted,
            guesses,
            limits_spending,
            has_spending_key: false,
            given,
            provider: provider.cloned(),
            margin,
            terms: quota.without_limits(),
        }
    }

    /// Returns the quota that the plan was made from.
    pub(crate) fn quota(&self) -> Quota {
        self.rules.iter().fold(self.terms.clone(), |quota, rule| quota.limit(rule.limit().clone()))
    }

    /// Returns the name of the provider by whose rules the limits count.
    pub(crate) fn provider_name(&self) -> Option<&'static str> {
        self.provider.as_ref().map(|provider| provider.name())
    }

    /// Creates a plan for unknown keys.
    pub(crate) fn unknown(
        quota: &Quota,
        provider: Option<&Provider>,
        id: u64,
        version: u32,
    ) -> Self {
        let plan = Self::new(quota, provider, Margin::NONE, id, version);
        Self { known: false, ..plan.unnamed().lenient() }
    }

    /// Returns the plan of a quota that is built in.
    pub(crate) fn built_in(self) -> Self {
        Self { is_built_in: true, ..self }
    }

    /// Returns the plan without refusals of costs in dimensions without a limit.
    pub(crate) fn lenient(self) -> Self {
        Self { is_strict: false, ..self }
    }

    /// Returns the plan of limits that headers have stated.
    pub(crate) fn learned(self) -> Self {
        let algorithm =
            self.provider.as_ref().map_or(Algorithm::SlidingWindow, |rules| rules.algorithm());
        let is_unknown = |rule: &Rule| rule.limit().algorithm().is_none();
        let assumes_windows =
            algorithm == Algorithm::SlidingWindow && self.rules.iter().any(is_unknown);
        Self { assumes_windows, ..self.lenient() }
    }

    /// Returns the plan for keys that no quota names.
    pub(crate) fn unnamed(self) -> Self {
        Self { named: false, ..self }
    }

    /// Returns the plan for keys that are always accepted.
    pub(crate) fn reserved(self) -> Self {
        Self { reserved: true, ..self }
    }

    /// Returns the plan for limits that came with a request.
    pub(crate) fn given(self, quota: Quota) -> Self {
        Self { given: Some(quota), ..self.unnamed() }
    }

    /// Returns `true` if these limits came with a request as defaults for keys that no quota covers.
    pub(crate) fn is_default(&self) -> bool {
        self.id == DEFAULT_ID
    }

    /// Returns the same limits with lower amounts. The largest request that the original limits admit is
    /// admitted by the lowered ones while they are unused.
    pub(crate) fn lowered(&self, amounts: &[u64]) -> Self {
        let rules: Arc<[Rule]> = self.lower(amounts).into_iter().collect();
        let fastest = self.fastest(&rules);
        Self { rules, fastest, ..self.clone() }
    }

    /// Returns the rules with lower amounts.
    pub(crate) fn lower(&self, amounts: &[u64]) -> Rules {
        let lower = |(whole, &amount): (&Rule, &u64)| match NonZeroU64::new(amount) {
            Some(amount) if amount.get() < whole.limit().amount() => {
                rule(&whole.limit().clone().lowered(amount), self.provider.as_ref(), self.margin)
            }
            _ => whole.clone(),
        };
        self.rules.iter().zip(amounts).map(lower).collect()
    }

    /// Returns unused buckets for the rules.
    pub(crate) fn new_buckets(&self) -> Buckets {
        self.rules.iter().map(Bucket::new).collect()
    }

    /// Returns the time for which a cost occupies the limits: the longest of amount / rate, in nanoseconds.
    pub(crate) fn service_time(&self, cost: &Cost) -> u64 {
        self.rules.iter().map(|rule| rule.service_time(rule.amount(cost))).max().unwrap_or(0)
    }

    /// Clips a typical cost in each dimension to the amount that the limits can hold. If money is limited and the cost
    /// states none, it is at least a micro-dollar, so that a budget that is used up doesn't admit it.
    pub(crate) fn clip(&self, cost: &Cost) -> Cost {
        let most =
            |dimension: Dimension| cost.amount(&dimension).min(least(&self.rules, &dimension));
        let customs = cost.customs().map(|(name, _)| name);
        let clipped = Cost::new()
            .requests(most(Dimension::Requests))
            .tokens(most(Dimension::Tokens))
            .input_tokens(most(Dimension::InputTokens))
            .output_tokens(most(Dimension::OutputTokens));
        let clipped = match self.is_priced(cost) {
            true => clipped,
            false => clipped.custom(USD, 1),
        };
        customs.fold(clipped, |clipped, name| clipped.custom(name, most(Dimension::custom(name))))
    }

    /// Clips the estimates of a cost to the amounts that the limits can hold. The limits of the quota
    /// count here, even while the key is reduced.
    #[inline]
    pub(crate) fn clip_guesses<'c>(&self, cost: &'c Cost) -> Cow<'c, Cost> {
        let Guesses { tokens, input, output } = self.guesses;
        cost.clip_guesses(tokens, input, output).map_or(Cow::Borrowed(cost), Cow::Owned)
    }

    /// Returns `true` if the limits count all dimensions of a cost.
    #[inline]
    pub(crate) fn counts(&self, cost: &Cost) -> bool {
        !self.uncounted.has(cost.named()) && (!cost.has_customs() || self.counts_customs(cost))
    }

    #[inline(never)]
    fn counts_customs(&self, cost: &Cost) -> bool {
        !cost.custom_amounts().any(|custom| self.misses_custom(custom))
    }

    /// Returns `true` if no limit counts the amount of a custom dimension, although it needs one.
    fn misses_custom(&self, custom: &CustomAmount) -> bool {
        let CustomAmount { name, amount, is_optional } = custom;
        !is_optional && *amount > 0 && !self.counts_custom(name)
    }

    /// Returns `true` if a limit counts this custom dimension.
    pub(crate) fn counts_custom(&self, custom: &str) -> bool {
        let is_named =
            |rule: &Rule| matches!(rule.dimension(), Dimension::Custom(name) if **name == *custom);
        self.rules.iter().any(is_named)
    }

    /// Returns a dimension of a cost that no limit counts, although the key has limits. Custom dimensions
    /// may be counted by another key of the same request.
    pub(crate) fn uncounted_dimension(
        &self,
        cost: &Cost,
        elsewhere: impl Fn(&str) -> bool,
    ) -> Option<Dimension> {
        if self.counts(cost) || self.rules.is_empty() || !self.known {
            return None;
        }
        let is_uncounted =
            |custom: &&CustomAmount| self.misses_custom(custom) && !elsewhere(&custom.name);
        let custom = || cost.custom_amounts().find(is_uncounted);
        let tokens = TOKENS.into_iter().filter(|_| self.uncounted.has(cost.named()));
        let mut tokens = tokens.filter(|kind| cost.amount(kind) > 0);
        tokens.next().or_else(|| custom().map(|custom| Dimension::custom(&custom.name)))
    }

    /// Returns a dimension for which the plan refuses a cost: the same, or money if it is limited and the cost states
    /// none. Limits that callers cannot know refuse no uncounted dimension.
    pub(crate) fn refused_dimension(
        &self,
        cost: &Cost,
        elsewhere: impl Fn(&str) -> bool,
    ) -> Option<Dimension> {
        if !self.is_priced(cost) {
            return Some(Dimension::usd());
        }
        if self.is_strict { self.uncounted_dimension(cost, elsewhere) } else { None }
    }

    /// Returns a dimension that is limited and was reserved, but isn't named by the charge.
    pub(crate) fn unsettled_dimension(&self, reserved: &Cost, charged: &Cost) -> Option<Dimension> {
        let is_unsettled = |named: &&Dimension| reserved.amount(named) > 0 && !charged.names(named);
        self.rules.iter().map(Rule::dimension).find(is_unsettled).cloned()
    }

    /// Returns `true` if both plans share the same rules.
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rules, &other.rules)
    }

    /// Returns `true` if both plans have the same amounts per window, and are as reliable.
    pub(crate) fn has_rates_of(&self, other: &Self) -> bool {
        let rate = |rule: &Rule| {
            let limit = rule.limit();
            (limit.dimension().clone(), limit.amount(), limit.window())
        };
        let is_equal = self.rules.iter().map(rate).eq(other.rules.iter().map(rate));
        is_equal && (self.is_built_in, self.known) == (other.is_built_in, other.known)
    }
}

/// Returns the buckets of `rules` under `new` rules, which have other amounts of the same limits.
pub(crate) fn resize(rules: &[Rule], buckets: &[Bucket], new: &[Rule], now: Timestamp) -> Buckets {
    let pairs = new.iter().zip(rules.iter().zip(buckets));
    pairs.map(|(new, (old, bucket))| bucket.resize(old, new, now)).collect()
}

fn rule(limit: &Limit, provider: Option<&Provider>, margin: Margin) -> Rule {
    let dimension = limit.dimension();
    // Of money, a bucket that refills admits more than its amount within the window.
    let own_algorithm = provider.filter(|_| !dimension.is_usd()).map(|p| p.algorithm());
    let algorithm = own_algorithm.unwrap_or(Algorithm::SlidingWindow);
    let settle =
        provider.map_or_else(|| default_settlement(dimension), |rules| rules.settles(dimension));
    Rule::new(limit, algorithm, margin, settle)
}

/// Returns the amount that the limits of a dimension can hold; `u64::MAX` without one.
fn least(rules: &[Rule], dimension: &Dimension) -> u64 {
    let holding = rules.iter().filter(|rule| rule.dimension() == dimension);
    holding.map(Rule::capacity).min().unwrap_or(u64::MAX)
}

/// The dimensions that count tokens.
const TOKENS: [Dimension; 3] = [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens];

/// The id of plans whose limits came with a request, for keys that no quota covers.
pub(crate) const DEFAULT_ID: u64 = u64::MAX - 1;
