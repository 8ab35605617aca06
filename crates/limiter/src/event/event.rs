use std::sync::Arc;
use std::time::Duration;

use super::exchange::Exchange;
use crate::answer::learned::LearnedLimit;
use crate::quota::{Cost, Dimension, Key, Quota};
use crate::refusal::RefusalKind;
use crate::timestamp::Timestamp;

/// Names and values that a request attaches to its events. They must not hold secrets.
pub type Metadata = Arc<[(String, String)]>;

/// An event of a limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A reservation was granted; sent for each of its keys.
    Granted {
        /// The key.
        key: Key,
        /// The reserved amounts.
        cost: Cost,
        /// The metadata of the request.
        metadata: Option<Metadata>,
    },
    /// A reservation was refused.
    Denied {
        /// The key.
        key: Key,
        /// The dimension that is short; `None` if another reason refused (requests wait, a cool-down).
        dimension: Option<Dimension>,
        /// The metadata of the request.
        metadata: Option<Metadata>,
    },
    /// A request waited in the queue and was granted its reservation.
    Waited {
        /// The key.
        key: Key,
        /// The time from arrival to grant.
        duration: Duration,
        /// The metadata of the request.
        metadata: Option<Metadata>,
    },
    /// A reservation ended.
    Settled {
        /// The key.
        key: Key,
        /// The reserved amounts.
        reserved: Cost,
        /// The charged amounts; `None` if the request was never sent.
        charged: Option<Cost>,
    },
    /// The charge of a request doesn't match the dimensions that its key limits.
    ChargeMismatch {
        /// The key.
        key: Key,
        /// The dimension of the charge that no limit of the key counts; or, if `kept`, the limited
        /// dimension that the charge lacks.
        dimension: Dimension,
        /// `true` if a limit counts the dimension and the request had reserved an amount of it, which was
        /// charged.
        kept: bool,
    },
    /// The provider refused a request, or stated that the part of a window to which the key is held is used: no
    /// request is sent until a time.
    CoolingDown {
        /// The key.
        key: Key,
        /// The end of the cool-down.
        until: Timestamp,
        /// The kind of the refusal that set this end; `None` if no refusal to this process has.
        kind: Option<RefusalKind>,
        /// The program that reported the cause, if another did.
        agent: Option<String>,
    },
    /// The limits of a key are reduced, after a refusal or on request.
    Reduced {
        /// The key of the buckets; for keys that share a quota its name.
        key: Key,
        /// The capacity that is left of its first limit per less than a day, or else of requests in
        /// flight.
        capacity: u64,
        /// The reason.
        reason: String,
        /// The program that reported the cause, if another did.
        agent: Option<String>,
    },
    /// A reduced key has its full quota again. Sent when the key is used next.
    Recovered {
        /// The key of the buckets.
        key: Key,
        /// Its capacity, as in [`Reduced`](Self::Reduced).
        capacity: u64,
    },
    /// A refusal by the provider has measured limits of a key, which requests are held to from now on. Sent at
    /// most once per reaction to refusals.
    LimitsLearned {
        /// The key of the buckets.
        key: Key,
        /// The limits that were measured; of a refusal that names no dimension only the
        /// [principal](LearnedLimit::is_principal) ones.
        limits: Vec<LearnedLimit>,
        /// The capacity that programs on a bus are told, as in [`Reduced`](Self::Reduced):
        /// a refusal reduces those that don't measure. 0 if the key has no quota.
        capacity: u64,
    },
    /// A learned limit holds no request back any more: the provider accepts what the quota allows, or its
    /// refusals have another cause.
    LearnedLimitEnded {
        /// The key of the buckets.
        key: Key,
        /// The dimension of the limit.
        dimension: Dimension,
    },
    /// The quota of a key or glob changed.
    QuotaChanged {
        /// The key or glob.
        key: Key,
        /// The new quota.
        quota: Quota,
    },
    /// A request to a provider and its response have ended. Sent by the layer, for HTTP.
    Exchanged(Box<Exchange>),
}

impl Event {
    /// Returns `true` unless the event is one that every reservation sends.
    pub(super) fn is_change(&self) -> bool {
        !matches!(
            self,
            Self::Granted { .. } | Self::Denied { .. } | Self::Waited { .. } | Self::Settled { .. }
        )
    }
}
