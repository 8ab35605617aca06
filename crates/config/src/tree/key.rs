use super::origin::Origin;

/// The name of an entry of a map, and its origin.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) origin: Origin,
}
