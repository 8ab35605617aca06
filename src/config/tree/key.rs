use super::origin::Origin;

/// The name of an entry of a map, and its origin.
#[derive(Debug, Clone)]
pub(in crate::config) struct Key {
    pub(in crate::config) name: String,
    pub(in crate::config) origin: Origin,
}
