mod script;

/// Limits that many machines share.
#[derive(Debug)]
pub struct Shared {}
