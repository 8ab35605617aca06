use paceline_limiter::Timestamp;
use serde::{Deserialize, Serialize};

use super::text::Time;
use crate::clock_origin::{ClockOrigin, stored};

/// The machine's boot, by the clock of the writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BootTime {
    /// A unique id of the boot.
    id: String,
    at: Time,
}

impl BootTime {
    /// Returns `None` if the boot is unknown or before 1970.
    pub(super) fn of(origin: &ClockOrigin) -> Option<Self> {
        let at = u64::try_from(origin.offset).ok()?;
        Some(Self { id: origin.boot.clone()?, at: Time(Timestamp::from_nanos(at)) })
    }

    pub(super) fn origin(&self) -> ClockOrigin {
        ClockOrigin { boot: Some(self.id.clone()), offset: stored(self.at.0) }
    }
}
