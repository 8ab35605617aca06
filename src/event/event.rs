use std::sync::Arc;
use std::time::Duration;

use super::exchange::Exchange;
use crate::quota::{Cost, Dimension, Key, Quota};
use crate::timestamp::Timestamp;

/// Names and values that a request brings along for its events; nothing secret belongs in here.
pub type Metadata = Arc<[(String, String)]>;

/// Something that happened to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A reservation was granted: one event for each of its keys.
    Granted {
        /// Whose.
        key: Key,
        /// The amounts that it takes.
        cost: Cost,
        /// The metadata of the request.
        metadata: Option<Metadata>,
    },
    /// A reservation was refused.
    Denied {
        /// Whose.
        key: Key,
        /// The dimension that fell short; `None` where none did (others wait, a cool-down).
        dimension: Option<Dimension>,
        /// The metadata of the request.
        metadata: Option<Metadata>,
    },
    /// A request waited in the queue and was granted its reservation.
    Waited {
        /// Whose.
        key: Key,
        /// From its arrival to its grant.
        duration: Duration,
        /// The metadata of the request.
        metadata: Option<Metadata>,
    },
    /// A reservation ended.
    Settled {
        /// Whose.
        key: Key,
        /// The amounts that it had reserved.
        reserved: Cost,
        /// The amounts charged; `None` if the request never left.
        charged: Option<Cost>,
    },
    /// A request was charged in other dimensions than its key limits.
    ChargeMismatch {
        /// Whose.
        key: Key,
        /// The dimension that the charge names, though no limit of the key counts it; or, if `kept`,
        /// the one that it doesn't name.
        dimension: Dimension,
        /// Whether a limit counts the dimension and the request had reserved some of it: that was
        /// charged.
        kept: bool,
    },
    /// The provider refused a request: nothing is sent until then.
    CoolingDown {
        /// Whose.
        key: Key,
        /// Nanoseconds since the epoch.
        until: Timestamp,
        /// Which other program said so, if one did.
        agent: Option<String>,
    },
    /// A key has less than its quota, after a refusal or because somebody said so.
    Reduced {
        /// Whose buckets: of keys that share them the name of what they share.
        key: Key,
        /// The capacity that is left: of its first limit per less than a day, or else of requests
        /// in flight.
        capacity: u64,
        /// Why.
        reason: String,
        /// Which other program said so, if one did.
        agent: Option<String>,
    },
    /// A key that was reduced has its whole quota again. Told when the key is next used.
    Recovered {
        /// Whose buckets.
        key: Key,
        /// Its capacity, as in [`Reduced`](Self::Reduced).
        capacity: u64,
    },
    /// A key or glob has another quota.
    QuotaChanged {
        /// The key or glob.
        key: Key,
        /// Its quota now.
        quota: Quota,
    },
    /// A request to a provider and its answer have ended: told by the layer, of what it read as HTTP.
    Exchanged(Box<Exchange>),
}

impl Event {
    /// Returns whether it is other than the events of each reservation.
    pub(super) fn is_news(&self) -> bool {
        !matches!(
            self,
            Self::Granted { .. } | Self::Denied { .. } | Self::Waited { .. } | Self::Settled { .. }
        )
    }
}
