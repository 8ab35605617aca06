//! Logs events through `tracing`: rare ones at `INFO`, refusals, waits and corrections at `DEBUG`, all
//! others at `TRACE`, with the target `paceline::limiter`.

use tracing::level_filters::LevelFilter;
use tracing::{Level, debug, enabled, info, trace};

use super::event::{Event, Metadata};
use crate::quota::{Cost, Dimension};
use crate::refusal::RefusalKind;

/// Returns `true` if events of each reservation are logged; costs one load if not.
#[inline]
pub(super) fn is_on() -> bool {
    LevelFilter::current() >= Level::DEBUG && is_on_here()
}

#[cold]
fn is_on_here() -> bool {
    enabled!(target: TARGET, Level::DEBUG)
}

/// Returns `true` if rare events are logged.
#[inline]
pub(super) fn logs_changes() -> bool {
    enabled!(target: TARGET, Level::INFO)
}

pub(super) fn log(event: &Event) {
    match event {
        Event::Granted { key, cost, metadata } => {
            let (entity, operation) = of(metadata);
            trace!(target: TARGET, %key, tokens = cost.all_tokens(), entity, operation, "granted");
        }
        Event::Denied { key, dimension, metadata } => {
            let (entity, operation) = of(metadata);
            let dimension = dimension.as_ref().map(Dimension::as_str);
            debug!(target: TARGET, %key, dimension, entity, operation, "denied");
        }
        Event::Waited { key, duration, metadata } => {
            let (entity, operation) = of(metadata);
            let duration_ms = duration.as_secs_f64() * 1e3;
            debug!(target: TARGET, %key, duration_ms, entity, operation, "waited");
        }
        Event::Settled { key, reserved, charged } => settled(key, reserved, charged.as_ref()),
        Event::ChargeMismatch { key, dimension, kept } => {
            debug!(target: TARGET, %key, %dimension, kept, "charge doesn't match the limits");
        }
        Event::CoolingDown { key, until, kind, agent } => {
            let (until, reason) = (until.as_nanos(), kind.map(RefusalKind::describe));
            info!(target: TARGET, %key, until, reason, agent = agent.as_deref(), "cooling down");
        }
        Event::Reduced { key, capacity, reason, agent } => {
            let (reason, agent) = (reason.as_str(), agent.as_deref());
            info!(target: TARGET, %key, capacity, reason, agent, "reduced");
        }
        Event::Recovered { key, capacity } => info!(target: TARGET, %key, capacity, "recovered"),
        Event::LimitsLearned { key, limits, .. } => {
            limits.iter().for_each(|limit| info!(target: TARGET, %key, "learned {limit}"));
        }
        Event::LearnedLimitEnded { key, dimension } => {
            info!(target: TARGET, %key, %dimension, "learned limit ended");
        }
        Event::QuotaChanged { key, quota } => {
            debug!(target: TARGET, %key, limits = quota.limits().len(), "quota changed");
        }
        // The span of the layer holds the same data.
        Event::Exchanged(_) => {}
    }
}

fn settled(key: &str, reserved: &Cost, charged: Option<&Cost>) {
    let (reserved_tokens, charged_tokens) = (reserved.all_tokens(), charged.map(Cost::all_tokens));
    match charged {
        None => debug!(target: TARGET, key, reserved_tokens, "released"),
        Some(charged) if charged != reserved => {
            debug!(target: TARGET, key, reserved_tokens, charged_tokens, "corrected");
        }
        Some(_) => trace!(target: TARGET, key, reserved_tokens, charged_tokens, "settled"),
    }
}

/// Returns the values `entity` and `operation` of a request's metadata.
fn of(metadata: &Option<Metadata>) -> (Option<&str>, Option<&str>) {
    let named = |name: &str| {
        let (_, value) = metadata.as_ref()?.iter().find(|(other, _)| other == name)?;
        Some(value.as_str())
    };
    (named("entity"), named("operation"))
}

pub(crate) const TARGET: &str = "paceline::limiter";
