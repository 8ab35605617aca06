use crate::quota::Quota;

/// The limits that some models share.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelLimits {
    /// The models and their aliases.
    pub models: Vec<String>,
    /// Their limits together.
    pub quota: Quota,
}

impl ModelLimits {
    /// Returns the limits of these models together.
    pub fn new(models: impl IntoIterator<Item = impl Into<String>>, quota: Quota) -> Self {
        Self { models: models.into_iter().map(Into::into).collect(), quota }
    }

    /// Adds limits that were read later: they replace those of the same models, each for its dimension and
    /// window.
    pub fn merge(all: &mut Vec<Self>, later: Vec<Self>) {
        for new in later {
            match all.iter_mut().find(|old| old.models == new.models) {
                Some(old) => {
                    let limits = new.quota.limits().iter().cloned();
                    old.quota = limits.fold(old.quota.clone(), Quota::limit);
                }
                None => all.push(new),
            }
        }
    }
}
