use serde::{Deserialize, Serialize};

/// The policy of shared limits while the store is unreachable or doesn't respond in time.
///
/// Requests that are admitted in the meantime are charged when the store is available again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// No request is admitted.
    Closed,
    /// Every request is admitted. Only the provider's own refusals limit them.
    Open,
    /// Each process enforces its share by itself: the limit divided by the number of members that were
    /// alive when the store was last reachable.
    ///
    /// The share starts from the last usage that the process knows, which may lack recent usage of
    /// other processes. All processes together therefore admit at most twice the limit in the window in
    /// which the store became unreachable, and at most the limit in later windows. A process that starts
    /// during the outage knows neither other members nor usage, and admits the whole limit.
    #[default]
    #[cfg_attr(
        feature = "schema",
        schemars(
            description = "Each machine enforces its share by itself: the limit divided by the number of live members."
        )
    )]
    LocalShare,
}
