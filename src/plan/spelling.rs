use super::named_quota::QuotaOrigin;
use super::quota_registry::QuotaRegistry;
use crate::quota::Key;

/// The spellings of models that have several names. Quotas belong to no provider, so that their names stay as they are,
/// and a request counts under the name in the quota.
impl QuotaRegistry {
    /// Returns the spelling of a model under which a quota covers it: as a quota names it exactly, else as a pattern
    /// covers it. `None` if that is the name itself, or no quota is of the model.
    ///
    /// `spellings` are its names in lower case, and `is_same` tells whether a name that is one of them but for capitals
    /// and a path is of the model.
    pub(crate) fn spelling_of(
        &self,
        model: &str,
        spellings: &[String],
        is_same: impl Fn(&str) -> bool,
    ) -> Option<Key> {
        let exact = self.own.named(model);
        if exact.is_some_and(|entry| entry.origin != QuotaOrigin::Learned) {
            return None;
        }
        if let Some(name) = self.own.spelled(spellings).filter(|name| is_same(name)).min() {
            return Some(name.clone());
        }
        if self.own.find(model).is_some() {
            return None;
        }
        spellings.iter().find_map(|name| self.own.spelled_by_pattern(name)).map(Key::from)
    }
}
