use super::gate::Gate;
use super::limiter::Limiter;
use super::standing::OwnStanding;
use crate::answer::error::Refused;

/// Gates.
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
}
