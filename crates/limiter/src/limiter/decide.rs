use super::core::Core;
use super::key_state::KeyState;
use crate::answer::code::Code;
use crate::answer::decision::Decision;
use crate::answer::error::Refused;
use crate::engine::Wait;
use crate::key::denial::Denial;
use crate::quota::{Cost, Key};
use crate::timestamp::Timestamp;

impl Decision {
    /// Decides about a cost by the state of a key.
    pub(super) fn of(key: &Key, state: &KeyState, cost: &Cost, core: &Core) -> Self {
        let (stats, plan) = (state.stats(key, core.backend.as_ref()), state.plan());
        let check = match core.is_closed() {
            true => Err(Denial::Closed),
            false => state.check(cost, core.is_local()),
        };
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
                let refused = state.refused(key, denial, cost);
                Self { stats, ..Self::refused_by(refused) }
            }
        }
    }

    /// Returns the decision about an unknown key that is refused.
    pub(super) fn unknown(key: &str, asked_at: Timestamp) -> Self {
        Self::refused_by(Refused::new(&key.into(), Code::UnknownModel, Wait::Never, asked_at))
    }
}
