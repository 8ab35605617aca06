use serde::{Deserialize, Serialize};

use super::text::Time;
use crate::store::times::Origin;

/// When the machine was started, by the clock of who wrote the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    /// Tells this start from every other.
    id: String,
    at: Time,
}

impl Start {
    /// None where the clock doesn't know, or says that it was before 1970.
    pub(super) fn of(origin: &Origin) -> Option<Self> {
        let at = u64::try_from(origin.offset).ok()?;
        Some(Self { id: origin.boot.clone()?, at: Time(at) })
    }

    pub(super) fn origin(&self) -> Origin {
        let offset = i64::try_from(self.at.0).unwrap_or(i64::MAX);
        Origin { boot: Some(self.id.clone()), offset }
    }
}
