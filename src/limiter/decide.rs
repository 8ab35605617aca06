use compact_str::CompactString;

use super::core::Core;
use super::key_state::KeyState;
use crate::answer::code::Code;
use crate::answer::decision::Decision;
use crate::answer::error::Refused;
use crate::answer::stats::KeyStats;
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::quota::Cost;
use crate::timestamp::Timestamp;

impl Decision {
    /// Decides about a cost by the state of a key.
    pub(super) fn of(key: &CompactString, state: &KeyState, cost: &Cost, core: &Core) -> Self {
        let (stats, plan) = (state.stats(key, core.backend.as_ref()), state.plan());
        let check = if core.is_closed() { Err(Denial::Closed) } else { state.check(cost) };
        let short_elsewhere = match core.is_local() {
            true => None,
            false => stats.short(&plan.rules, &plan.clip_guesses(cost)),
        };
        match short_elsewhere.map_or(check, |short| check.and(Err(Denial::Short(short)))) {
            Ok(()) => {
                let code = match (plan.known, plan.rules.is_empty()) {
                    (false, _) => Code::UnknownModel,
                    (true, true) => Code::Unlimited,
                    (true, false) => Code::Ok,
                };
                let (key, asked_at) = (key.clone(), state.now());
                Self { code, key, dimension: None, wait: None, need: None, asked_at, stats }
            }
            Err(denial) => {
                let Refused { key, code, dimension, wait, need, asked_at, .. } =
                    state.refused(key, denial, cost);
                Self { code, key, dimension, wait: Some(wait), need, asked_at, stats }
            }
        }
    }

    /// The decision about a key that is unknown and refused.
    pub(super) fn unknown(key: &str, asked_at: Timestamp) -> Self {
        let (code, key, stats) = (Code::UnknownModel, key.into(), KeyStats::default());
        let wait = Some(Wait::Never);
        Self { code, key, dimension: None, wait, need: None, asked_at, stats }
    }
}
