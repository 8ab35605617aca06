//! Answers: values that say whether a request was admitted, why not, and how a key stands.

pub(crate) mod code;
pub(crate) mod decision;
pub(crate) mod error;
pub(crate) mod stats;
