use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::request::Request;
use super::reserve::Reserved;
use super::scanner::Counts;
use super::{Class, LimitReadings};
use crate::quota::{Algorithm, Cost, Dimension, SettleAt, Usage};
use crate::timestamp::Timestamp;

/// All that sets one provider apart. A new provider is a file with one of these.
pub(super) struct Rules {
    pub(super) name: &'static str,
    /// Where it is found: globs over a host, over a host and a path behind it, or over a path alone
    /// (`*/path`), which counts on hosts that are nobody's.
    pub(super) urls: &'static [&'static str],
    pub(super) algorithm: Algorithm,
    pub(super) settles: fn(&Dimension) -> SettleAt,
    #[cfg_attr(not(feature = "requests"), expect(dead_code, reason = "only `read_request` asks"))]
    pub(super) reserve: fn(&Request) -> Reserved,
    pub(super) charge: fn(&Cost, &Usage) -> Cost,
    pub(super) limits: fn(&HeaderMap) -> LimitReadings,
    pub(super) delay: fn(&HeaderMap, &[u8], Timestamp) -> Option<Duration>,
    pub(super) classify: fn(StatusCode, &HeaderMap, &[u8]) -> Class,
    /// The counts that the head of a response states. Those in its body are read alike for all.
    pub(super) counts_in_head: fn(&HeaderMap) -> Counts,
    pub(super) charged_in_head: fn(&HeaderMap) -> Option<u64>,
}
