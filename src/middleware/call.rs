use crate::provider::{Operation, Profile};
use crate::quota::Key;

/// The provider, operation and model of a request, for its record.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) profile: Profile,
    pub(super) operation: Operation,
    /// The requested model, if it isn't the key.
    pub(super) model: Option<Key>,
    /// `true` if the provider is known not to bill the request.
    pub(super) is_free: bool,
}
