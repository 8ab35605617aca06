use std::sync::atomic::AtomicI8;
use std::time::Duration;

use smallvec::SmallVec;

use super::core::Core;
use crate::backend::Precedence;
use crate::key::queue::{NO_AMOUNTS, Priority, Service, Turn};
use crate::plan::Plan;
use crate::quota::{Cost, Key};

/// The part of a request or a gate in the order of a queue: its priority, its flow and the flow's weight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    priority: Priority,
    flow: u64,
    weight: u32,
}

/// The priority and the flow that a request or a layer sets, in place of those by the limiter's policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnStanding {
    /// The priority.
    pub priority: Option<Priority>,
    /// The name of the flow.
    pub flow: Option<Key>,
}

impl Standing {
    /// Returns the standing of a request with these keys.
    pub(super) fn of<'a>(
        own: Option<&'a OwnStanding>,
        keys: impl Iterator<Item = &'a Key>,
        core: &Core,
    ) -> Self {
        if own.is_none() && core.wait_policy().is_none() {
            return Self::default();
        }
        match Self::resolve(own, keys, core) {
            (priority, Some(flow), weight) => Self { priority, flow: core.hash(flow), weight },
            (priority, None, _) => Self { priority, ..Self::default() },
        }
    }

    /// Returns the order of a request with these keys at a backend.
    pub(super) fn precedence<'a>(
        own: Option<&'a OwnStanding>,
        keys: impl Iterator<Item = &'a Key>,
        core: &Core,
    ) -> Precedence {
        let (priority, flow, weight) = Self::resolve(own, keys, core);
        let (priority, flow) = (AtomicI8::new(priority.level()), flow.cloned());
        Precedence { priority, flow, weight, max_starvation: Self::max_starvation(core) }
    }

    /// Returns the priority, the flow and its weight.
    fn resolve<'a>(
        own: Option<&'a OwnStanding>,
        keys: impl Iterator<Item = &'a Key>,
        core: &Core,
    ) -> (Priority, Option<&'a Key>, u32) {
        let policy = core.wait_policy();
        let keys: SmallVec<[&Key; 4]> = keys.collect();
        let by_policy = || policy.as_ref().map(|policy| policy.priority_of(&keys));
        let priority = own.and_then(|own| own.priority).or_else(by_policy).unwrap_or_default();
        let by_policy = || policy.as_ref().and_then(|policy| policy.flow_of(&keys));
        let Some(flow) = own.and_then(|own| own.flow.as_ref()).or_else(by_policy) else {
            return (priority, None, 1);
        };
        let by_policy = policy.as_ref().and_then(|policy| policy.weight_of(flow));
        let by_quota =
            || core.quotas.read().resolve(flow, None).map(|resolved| resolved.plan.terms.weight());
        (priority, Some(flow), by_policy.or_else(by_quota).unwrap_or(1))
    }

    /// Returns the time after which a lower priority has a turn.
    fn max_starvation(core: &Core) -> Duration {
        let policy = core.wait_policy();
        policy.map_or(Service::default().max_starvation, |policy| policy.max_starvation)
    }

    /// Returns the turn of a request.
    pub(super) fn turn(self, arrival: u64) -> Turn {
        Turn::request(arrival).within(self.priority, self.flow)
    }

    /// Returns the turn of a gate.
    pub(super) fn gate_turn(self, arrival: u64) -> Turn {
        Turn::gate(arrival).within(self.priority, self.flow)
    }

    /// Returns the service that a gate needs, which takes no amounts itself.
    pub(super) fn gate_service(self, plan: &Plan, typical: &Cost, core: &Core) -> Service {
        Service { amounts: NO_AMOUNTS, ..self.service(plan, typical, core) }
    }

    /// Returns the service that a request of this cost needs under a plan.
    pub(super) fn service(self, plan: &Plan, cost: &Cost, core: &Core) -> Service {
        let service = self.granted_service(plan.service_time(cost), cost);
        Service { max_starvation: Self::max_starvation(core), ..service }
    }

    /// Returns the service of a request of this cost that is admitted, with the unit as of its arrival.
    pub(super) fn granted_service(self, unit: u64, cost: &Cost) -> Service {
        let (amounts, weight) = (cost.main_amounts(), self.weight);
        Service { unit, amounts, weight, ..Service::default() }
    }
}
