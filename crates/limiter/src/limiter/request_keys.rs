use super::request::Request;
use super::scopes::{Entries, Scopes};
use super::table::KeyRef;
use crate::answer::error::Refused;

/// The keys of a request: its own, and those of the budgets that it counts to beside them.
impl Request {
    /// Looks up the keys, and creates entries for new ones. A key that is listed twice counts once.
    pub(super) fn entries(&self) -> Result<Entries, Refused> {
        let limits_spending = self.core().limits_spending();
        if let ([key_ref], false) = (&self.keys[..], limits_spending) {
            return Ok(Entries::of(key_ref.entry()?));
        }
        let mut entries = Entries::default();
        for key_ref in &self.keys {
            entries.push(key_ref.entry()?);
        }
        for key_ref in self.keys.iter().filter(|_| limits_spending) {
            if let Some(model) = key_ref.spending_key() {
                entries.push_spending_key(model.entry()?);
            }
        }
        Ok(entries)
    }

    /// Returns `true` if a quota has limited the spending of one of its models since the keys were looked up.
    fn misses_spending_key(&self, scopes: &Scopes<'_>) -> bool {
        if !scopes.iter().any(|scope| scope.plan().has_spending_key) {
            return false;
        }
        let quotas = self.core().quotas.read();
        let is_missed = |key_ref: &KeyRef| {
            let model = quotas.spending_key_of(&key_ref.key)?;
            let entry = quotas.resolve(&model, None)?.key;
            Some(!scopes.iter().any(|scope| *scope.key() == entry))
        };
        self.keys.iter().any(|key_ref| is_missed(key_ref) == Some(true))
    }

    /// Locks the keys. Returns `None` if one is retired or a budget is missing, so that the keys have to be looked up
    /// again.
    pub(super) fn lock<'a>(&self, entries: &'a Entries) -> Option<Scopes<'a>> {
        let mut scopes = Scopes::lock(entries);
        if scopes.is_retired() || self.misses_spending_key(&scopes) {
            drop(scopes);
            self.unlist_retired(entries);
            return None;
        }
        for key_ref in self.keys.iter().filter(|key_ref| key_ref.read_by.is_some()) {
            let may_be_read = |key: &str| *key == *key_ref.key || !self.has_scope(key);
            if scopes.iter().any(|scope| scope.is_unread() && may_be_read(scope.key())) {
                scopes.count_as_model(&key_ref.key, key_ref.read_by, self.core());
            }
        }
        if let Some(limits) = self.limits.as_deref() {
            scopes.apply_limits(limits, self.core());
        }
        if let Some(plan) = self.default_plan() {
            scopes.apply_default_limits(plan, self.core());
        }
        if self.is_answered && self.core().is_learning() {
            let can_wait = self.deadline.is_none_or(|deadline| deadline > scopes.now());
            scopes.get_mut(0).start_learning(can_wait);
        }
        Some(scopes)
    }

    /// Returns `true` if the request has this key, and not as the model that a provider has read.
    fn has_scope(&self, key: &str) -> bool {
        self.keys.iter().any(|key_ref| key_ref.read_by.is_none() && *key_ref.key == *key)
    }

    /// Removes retired entries from the table, in case the thread that retired them hasn't done so yet.
    /// The next lookup doesn't find them.
    #[cold]
    fn unlist_retired(&self, entries: &Entries) {
        let retired = entries.iter().filter(|entry| entry.lock().is_retired());
        retired.for_each(|entry| self.keys[0].unlist(entry));
    }
}
