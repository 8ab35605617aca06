use super::named_quota::QuotaOrigin;
use super::quota_registry::QuotaRegistry;
use crate::quota::Key;

/// The spellings of models that have several names. Quotas belong to no provider, so that their names stay as they are,
/// and a request counts under the name in the quota.
impl QuotaRegistry {
    /// Returns the spelling of a model under which a quota covers it: as a quota names it exactly, else as a pattern
    /// covers it. `None` if that is the name itself, or no quota is of the model.
    ///
    /// `names` are all that an exact quota of the model may have, in lower case, and `spellings` those under which a
    /// pattern may cover it.
    pub(crate) fn spelling_of(
        &self,
        model: &str,
        names: impl FnOnce() -> Vec<String>,
        spellings: impl FnOnce() -> Vec<String>,
    ) -> Option<Key> {
        let exact = self.own.named(model);
        if exact.is_some_and(|entry| entry.origin != QuotaOrigin::Learned) {
            return None;
        }
        if let Some(name) = self.own.spelled(&names()).filter(|name| **name != *model).min() {
            return Some(name.clone());
        }
        if self.own.find(model).is_some() {
            return None;
        }
        spellings().iter().find_map(|name| self.own.spelled_by_pattern(name)).map(Key::from)
    }
}
