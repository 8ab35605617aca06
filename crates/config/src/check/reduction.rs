use std::time::Duration;

use paceline_limiter::limiter::Reduction;

use super::Check;
use crate::fields::ReductionFields;
use crate::tree::FieldPath;

impl Check<'_> {
    pub(super) fn reduction(&mut self, fields: &ReductionFields) -> Reduction {
        let root = FieldPath::new(["reduction"]);
        let factor = fields.factor;
        if !(MIN_FACTOR..=1.0 - MIN_FACTOR).contains(&factor) {
            self.report(&root.key("factor"), format!("must be above 0 and below 1, not {factor}"));
        }
        let recovery = fields.recovery_factor;
        if !(1.01..=1_000.0).contains(&recovery) {
            let message = format!("must be from 1.01 to 1000, not {recovery}");
            self.report(&root.key("recovery_factor"), message);
        }
        let (second, longest) = (Duration::from_secs(1), Duration::from_secs(366 * 86_400));
        let interval = fields.recovery_interval.0;
        self.require_range(&root.key("recovery_interval"), interval, second, longest);
        if fields.adaptive && !fields.enabled {
            let message = "limits are measured only with enabled: true".to_owned();
            self.report(&root.key("adaptive"), message);
        }
        let base = match (fields.enabled, fields.adaptive) {
            (true, true) => Reduction::ADAPTIVE,
            (true, false) => Reduction::new(),
            (false, _) => Reduction::OFF,
        };
        let base = base.probe_retry_after(fields.probe_retry_after);
        base.factor(factor).interval(interval).recovery_factor(recovery).spread(fields.spread.0)
    }
}

/// The resolution of the limiter: a millionth.
const MIN_FACTOR: f64 = 0.000_001;
