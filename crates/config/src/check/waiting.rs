use std::time::Duration;

use super::Check;
use super::quota::regex;
use crate::fields::{HumanDuration, WaitingFields};
use crate::tree::FieldPath;
use crate::value::WaitingConfig;

impl Check<'_> {
    pub(super) fn waiting(&mut self, fields: WaitingFields) -> WaitingConfig {
        let root = FieldPath::new(["waiting"]);
        for (name, _) in &fields.bands.0 {
            let path = root.key("bands").key(name);
            match name.strip_prefix("regex:") {
                _ if name.is_empty() => self.report_name(&path, EMPTY_KEY),
                Some(pattern) => {
                    let error = regex(pattern).err();
                    error.into_iter().for_each(|message| self.report_name(&path, message));
                }
                None => {}
            }
        }
        for (flow, weight) in &fields.weights.0 {
            let path = root.key("weights").key(flow);
            if flow.is_empty() {
                self.report_name(&path, EMPTY_KEY);
            }
            self.weight(&path, *weight);
        }
        let fair_by = fields.fair_by.as_deref().unwrap_or("tenant");
        if fair_by.is_empty() || fair_by.contains(':') {
            let message = "must be a kind of keys, the part before the colon, such as tenant";
            self.report(&root.key("fair_by"), message);
        }
        let HumanDuration(max_starvation) = fields.max_starvation;
        let path = root.key("max_starvation");
        self.require_range(&path, max_starvation, MIN_STARVATION, MAX_STARVATION);
        WaitingConfig {
            max_waiting: fields.max_waiting as usize,
            max_wait: fields.max_wait.map(|bound| bound.0),
            bands: fields.bands.0.into_iter().map(|(keys, band)| (keys, band.0)).collect(),
            fair_by: fields.fair_by,
            weights: fields.weights.0,
            max_starvation,
        }
    }
}

const EMPTY_KEY: &str = "a key must not be empty";

/// The bounds of `waiting.max_starvation`.
const MIN_STARVATION: Duration = Duration::from_millis(10);
const MAX_STARVATION: Duration = Duration::from_secs(24 * 3_600);
