use super::acquire::Acquire;
use super::gate::Gate;
use super::limiter::Limiter;
use super::standing::OwnStanding;
use super::table::KeyRef;
use crate::answer::error::Refused;
use crate::quota::{Cost, Key};

/// Gates, and the requests of the layer.
impl Limiter {
    /// Returns a gate that opens when a request would be admitted under all of these keys.
    ///
    /// # Errors
    /// The same as [`key`](Self::key).
    pub fn gate<K: AsRef<str>>(&self, keys: &[K]) -> Result<Gate, Refused> {
        self.gate_of(keys, None)
    }

    /// Returns such a gate with its own priority or flow.
    pub(crate) fn gate_of<K: AsRef<str>>(
        &self,
        keys: &[K],
        own: Option<&OwnStanding>,
    ) -> Result<Gate, Refused> {
        let entry = |key: &K| {
            let key_ref = self.key_ref(key.as_ref());
            let entry = key_ref.entry()?;
            Ok((key_ref, entry))
        };
        Ok(Gate::new(keys.iter().map(entry).collect::<Result<Vec<_>, _>>()?, own))
    }

    /// Returns the name of a quota that limits spending on a model of this provider, if one does: a request whose model
    /// is unknown may be of that model. `patterns` are those of the provider's default quotas. Models are the names with a
    /// price: `any_priced` finds one that fulfils a condition.
    pub(crate) fn budget_of_models(
        &self,
        provider: &str,
        patterns: &[&str],
        has_price: impl Fn(&str) -> bool,
        any_priced: impl Fn(&dyn Fn(&str) -> bool) -> bool,
    ) -> Option<Key> {
        let quotas = self.shared.core.quotas.read();
        quotas.budget_of_models(provider, patterns, has_price, any_priced).cloned()
    }

    /// Returns the request of these keys, each with the name of the provider that has read it as a model.
    pub(crate) fn acquire_scopes<'k>(
        &self,
        keys: impl Iterator<Item = (&'k str, Option<&'static str>)>,
        cost: &Cost,
    ) -> Acquire {
        let has_providers = self.shared.core.has_providers();
        let keys = keys.map(|(key, read_by)| KeyRef {
            read_by: read_by.filter(|_| has_providers),
            ..self.key_ref(key)
        });
        Acquire::new(keys.collect(), cost.clone())
    }
}
