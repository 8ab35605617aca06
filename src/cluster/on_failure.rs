use serde::{Deserialize, Serialize};

/// The policy of shared limits while the store is unreachable or doesn't respond in time.
///
/// Requests that are admitted meanwhile are charged to the limit when the store is back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "yaml", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// No request is admitted.
    Closed,
    /// Every request is admitted. Only the provider's own refusals limit them.
    Open,
    /// Each process enforces its share by itself: the limit divided by the number of members that were
    /// alive when the store was last reachable.
    ///
    /// It starts from the usage that it knew then, without what others have used since it last asked: in
    /// the window in which the store became unreachable, all processes together admit at most the limit
    /// once more, and the limit afterwards. A process that starts while the store is unreachable knows no
    /// other member and no usage: it admits the whole limit, and so does each further one.
    #[default]
    #[cfg_attr(
        feature = "yaml",
        schemars(
            description = "Each machine enforces its share by itself: the limit divided by the number of live members."
        )
    )]
    LocalShare,
}
