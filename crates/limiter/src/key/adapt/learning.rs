use smallvec::SmallVec;

use super::pacing::{ConfiguredRate, Controller, RateRefusal};
use super::{Adapt, Reaction};
use crate::engine::{self, Rule, Shortfall};
use crate::event::RateLimited;
use crate::key::denial::Denial;
use crate::key::limits::Limits;
use crate::plan::{Buckets, Rules};
use crate::quota::{Cost, Dimension, Window};
use crate::timestamp::Timestamp;

/// The test of the limits by a provider's answers.
impl Adapt {
    /// Starts to test the limits, unless that has begun.
    pub(crate) fn start_learning(&mut self, limits: &Limits, now: Timestamp) {
        if self.controller.is_none() {
            self.controller = Some(Box::new(Controller::new(configured_rates(limits), now)));
        }
    }

    /// Returns whether the limits are being tested.
    pub(crate) fn is_learning(&self) -> bool {
        self.controller.is_some()
    }

    /// Continues the test under other limits: learned rates are kept, and tested again.
    pub(crate) fn restart_learning(&mut self, limits: &Limits, now: Timestamp) {
        let learned = self.learned(now);
        if let Some(controller) = &mut self.controller {
            **controller = Controller::new(configured_rates(limits), now);
            controller.restore(&learned, now);
            (self.initial, self.started_at) = (learned, now);
        }
    }

    /// Ends the test if the limits have stood it. Returns whether it ended.
    pub(crate) fn take_confirmed(&mut self, now: Timestamp) -> bool {
        self.controller.take_if(|controller| controller.is_confirmed(now)).is_some()
    }

    /// Checks whether what was learned admits the cost.
    pub(crate) fn check_pace(&self, cost: &Cost, at: Timestamp) -> Result<(), Denial> {
        let Some(controller) = self.controller.as_deref() else { return Ok(()) };
        controller.check(cost, at).map_err(|blocked| Denial::Paced {
            column: blocked.dimension.map(Dimension::column),
            wait: blocked.wait,
        })
    }

    /// Checks the buckets of the limits that no learned rate replaces.
    pub(super) fn check_enforced(
        &self,
        limits: &Limits,
        cost: &Cost,
        at: Timestamp,
    ) -> Result<(), Shortfall> {
        let (rules, buckets) = (&limits.plan.rules[..], &limits.buckets[..]);
        if !rules.iter().any(|rule| self.replaces(rule)) {
            return engine::check(rules, buckets, cost, at);
        }
        let enforced = rules.iter().enumerate().filter(|(_, rule)| !self.replaces(rule));
        let enforced: SmallVec<[usize; 3]> = enforced.map(|(index, _)| index).collect();
        let rules: Rules = enforced.iter().map(|&index| rules[index].clone()).collect();
        let buckets: Buckets = enforced.iter().map(|&index| buckets[index].clone()).collect();
        let of_all = |short: Shortfall| Shortfall { rule: enforced[short.rule], ..short };
        engine::check(&rules, &buckets, cost, at).map_err(of_all)
    }

    /// Returns whether a learned rate replaces a limit, which then isn't enforced.
    fn replaces(&self, rule: &Rule) -> bool {
        let controller = self.controller.as_deref();
        is_tested(rule) && controller.is_some_and(|learned| learned.replaces(rule.dimension()))
    }

    /// Counts a request that is sent. The buckets of limits that a learned rate replaces stay empty, so that
    /// they owe nothing when they are enforced again.
    pub(crate) fn on_sent(&mut self, limits: &mut Limits, cost: &Cost, now: Timestamp) {
        if let Some(refusals) = &mut self.refusals {
            refusals.circuit.sent(now);
        }
        let Some(controller) = &mut self.controller else { return };
        controller.sent(cost, now);
        self.sent_at = now;
        for (rule, bucket) in limits.iter_mut().filter(|(rule, _)| self.replaces(rule)) {
            *bucket = bucket.cleared(rule);
            bucket.drain(rule, now);
        }
    }

    /// Counts the end of a request; `was_sent` is `false` if it never left.
    pub(crate) fn on_end(
        &mut self,
        cost: &Cost,
        sent_at: Timestamp,
        was_sent: bool,
        now: Timestamp,
    ) {
        if let Some(refusals) = &mut self.refusals {
            refusals.circuit.ended(sent_at, was_sent, now);
        }
        if let Some(controller) = &mut self.controller {
            match was_sent {
                true => controller.ended(sent_at),
                false => controller.returned(cost, sent_at),
            }
        }
    }

    /// Notes that a request has no answer, so that its end shows nothing.
    pub(crate) fn on_unanswered(&mut self, sent_at: Timestamp) {
        if let Some(refusals) = &mut self.refusals {
            refusals.circuit.unanswered(sent_at);
        }
    }

    /// Learns from a request that the provider accepted.
    pub(crate) fn on_accepted(&mut self, sent_at: Timestamp, now: Timestamp) {
        if let Some(controller) = &mut self.controller {
            controller.accepted(sent_at, now);
        }
        if let Some(refusals) = &mut self.refusals {
            refusals.accepted(sent_at, now);
        }
        self.refusals.take_if(|refusals| refusals.is_over(now));
    }

    /// Learns from a request that the provider refused for its rate, and pauses the key: for at least as long as the
    /// provider states, unless `probes_retry_after`.
    pub(super) fn on_refused(
        &mut self,
        limits: &Limits,
        refused: &RateLimited,
        cost: &Cost,
        probes_retry_after: bool,
        now: Timestamp,
    ) -> Reaction {
        let sent_at = refused.sent_at.unwrap_or(now);
        let start = || Box::new(Controller::after_confirmed(configured_rates(limits), now));
        let controller = self.controller.get_or_insert_with(start);
        let retry_after = refused.refusal.delay;
        let dimension = refused.refusal.dimension.as_ref();
        let reaction =
            controller.refused(&RateRefusal { sent_at, cost, retry_after, dimension }, now);
        let stated = retry_after.filter(|_| !probes_retry_after).map(|stated| now + stated);
        let paused = (!reaction.is_chance).then_some(reaction.until);
        let Some(until) = paused.max(stated) else { return Reaction::default() };
        self.cooling_until = self.cooling_until.max(until);
        let learned = if reaction.is_event { self.take_measured(now) } else { Vec::new() };
        Reaction { until: Some(self.cooling_until), learned, ..Reaction::default() }
    }

    /// Counts a request that was refused for another reason than its rate as one that was never sent.
    pub(super) fn set_aside(&mut self, sent_at: Timestamp, cost: Option<&Cost>) {
        if let (Some(controller), Some(cost)) = (&mut self.controller, cost) {
            controller.set_aside(sent_at, cost);
        }
    }
}

/// Returns whether the pace of requests tests a limit. Limits per day don't bound the pace.
fn is_tested(rule: &Rule) -> bool {
    *rule.dimension() != Dimension::Concurrency && rule.limit().window() < Window::DAY
}

/// Returns the rates of the key's limits.
#[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
fn configured_rates(limits: &Limits) -> impl Iterator<Item = ConfiguredRate> {
    let is_ceiling = !limits.plan.is_built_in;
    let of_rule = move |rule: &Rule| {
        let limit = rule.limit();
        is_tested(rule).then(|| ConfiguredRate {
            dimension: limit.dimension().clone(),
            per_second: limit.amount() as f64 / limit.window().as_duration().as_secs_f64(),
            burst: rule.capacity() as f64,
            is_ceiling,
        })
    };
    limits.plan.rules.iter().filter_map(of_rule)
}
