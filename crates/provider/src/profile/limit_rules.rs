use std::any::Any;

use paceline_limiter::limiter::{LimitRules, Limiter};
use paceline_limiter::quota::{Algorithm, Dimension, Key, Quota, SettleAt, UnknownZone};
use paceline_limiter::seam;

use super::Profile;
use crate::model_name::{names, spellings};

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
    /// use paceline_limiter::Limiter;
    /// use paceline_provider::{OPENAI, Profile};
    ///
    /// let limiter = Limiter::builder().provider(OPENAI).build()?;
    /// let rules = limiter.quotas().rules_of("gpt-4o").expect("a provider");
    /// assert_eq!(Profile::of_rules(&*rules), Some(OPENAI));
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    pub fn of_rules(rules: &dyn LimitRules) -> Option<Self> {
        (rules as &dyn Any).downcast_ref().copied()
    }

    /// Returns the key under which requests for a model of this provider count: the model, or the name of it in the
    /// quota that covers it, if the provider has several names for one model.
    pub(crate) fn key_of_model(&self, limiter: &Limiter, model: Key) -> Key {
        if !self.unifies_models() {
            return model;
        }
        let spelling =
            seam::spelling_of(limiter.quotas(), &model, || names(&model), || spellings(&model));
        spelling.unwrap_or(model)
    }
}
