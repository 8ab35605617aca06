use std::any::Any;

use super::Profile;
use crate::limiter::LimitRules;
use crate::quota::{Algorithm, Dimension, Quota, SettleAt, UnknownZone};

impl LimitRules for Profile {
    fn name(&self) -> &'static str {
        self.name()
    }

    fn algorithm(&self) -> Algorithm {
        self.algorithm()
    }

    fn settles(&self, dimension: &Dimension) -> SettleAt {
        self.settles(dimension)
    }

    fn modes(&self) -> Vec<&'static str> {
        self.modes().collect()
    }

    fn default_quotas(&self) -> Result<Vec<(&'static str, Quota)>, UnknownZone> {
        self.quotas().iter().map(|default| Ok((default.pattern, default.quota()?))).collect()
    }
}

impl Profile {
    /// Returns the profile whose rules these are; `None` for rules that aren't a profile's.
    ///
    /// ```
    /// use paceline::Limiter;
    /// use paceline::provider::{OPENAI, Profile};
    ///
    /// let limiter = Limiter::builder().provider(OPENAI).build()?;
    /// let rules = limiter.quotas().rules_of("gpt-4o").expect("a provider");
    /// assert_eq!(Profile::of_rules(&*rules), Some(OPENAI));
    /// # Ok::<(), paceline::limiter::BuildError>(())
    /// ```
    pub fn of_rules(rules: &dyn LimitRules) -> Option<Self> {
        (rules as &dyn Any).downcast_ref().copied()
    }
}
