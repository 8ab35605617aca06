//! provider (stub until the real one lands)
use crate::quota::{Algorithm, Dimension, SettleAt};
/// stub
#[derive(Debug, Clone, Copy)]
pub struct Profile;
impl Profile {
    /// stub
    pub fn algorithm(&self) -> Algorithm {
        Algorithm::TOKEN_BUCKET
    }
    /// stub
    pub fn quotas(&self) -> Vec<(&'static str, crate::quota::Quota)> {
        vec![]
    }
    /// stub
    pub fn settles(&self, _d: &Dimension) -> SettleAt {
        SettleAt::Send
    }
}
/// stub
pub const OPENAI: Profile = Profile;
