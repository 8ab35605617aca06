use std::collections::HashMap;
use std::sync::Arc;

use paceline_limiter::engine::{self, Bucket, Rule, Wait};

use super::model::cost;
use super::{LEASE, MILLI, at};
use crate::shared::lease::{LeaseCall, LeaseLimits};

/// A model of the server: the engine's buckets, and leases that hold amounts of them.
pub(super) struct Server {
    pub(super) rules: Arc<[Rule]>,
    pub(super) buckets: Vec<Bucket>,
    pub(super) leases: HashMap<[u8; 16], Record>,
    /// The total charged, and the part of it charged because leases expired.
    pub(super) charged: u64,
    pub(super) expired: u64,
}

pub(super) struct Record {
    pub(super) call_number: u32,
    pub(super) until: u64,
    pub(super) held: Vec<u64>,
}

#[derive(Debug, Clone)]
pub(super) enum Reply {
    Leased(Vec<u64>),
    Refused(u64),
    Unknown,
    Stale,
}

impl Server {
    pub(super) fn new(rules: &Arc<[Rule]>) -> Self {
        let buckets = rules.iter().map(Bucket::new).collect();
        let (rules, leases) = (Arc::clone(rules), HashMap::new());
        Self { rules, buckets, leases, charged: 0, expired: 0 }
    }

    pub(super) fn take(&mut self, rule: usize, amount: u64, now: u64) {
        self.buckets[rule].charge(&self.rules[rule], amount, at(now));
        self.charged += if rule == 0 { amount } else { 0 };
    }

    /// Charges the leases that were not renewed in time.
    pub(super) fn expire(&mut self, now: u64) {
        let mut expired: Vec<_> =
            self.leases.iter().map(|(id, lease)| (lease.until, *id)).collect();
        expired.retain(|(until, _)| *until <= now);
        expired.sort_unstable();
        for (until, id) in expired {
            let record = self.leases.remove(&id).unwrap();
            for (rule, held) in record.held.into_iter().enumerate() {
                self.buckets[rule].drop_hold(held);
                self.take(rule, held, until);
                self.expired += held;
            }
        }
    }

    pub(super) fn request_lease(&mut self, call: &LeaseCall, now: u64) -> Reply {
        self.expire(now);
        let LeaseCall { used, wanted } = call;
        let id = wanted.id;
        let sum = |amounts: &[u64]| amounts.iter().sum::<u64>();
        let last = self.leases.get(&id.0).map(|record| record.call_number);
        match last {
            None if wanted.call_number > 1 && sum(used) + sum(&wanted.inflight) > 0 => {
                return Reply::Unknown;
            }
            Some(call_number) if call_number >= wanted.call_number => return Reply::Stale,
            _ => {}
        }
        let record = self.leases.remove(&id.0);
        let record =
            record.unwrap_or(Record { call_number: 0, until: 0, held: vec![0; used.len()] });
        let is_new_report = record.call_number < wanted.first_report;
        for rule in 0..used.len() {
            self.buckets[rule].drop_hold(record.held[rule]);
            if is_new_report {
                self.take(rule, used[rule], now);
            }
            self.buckets[rule].hold(wanted.inflight[rule]);
        }
        let available =
            |rule: usize| self.buckets[rule].level(&self.rules[rule], at(now)).available;
        let short = (0..used.len()).find(|rule| available(*rule) < wanted.least[*rule]);
        if let Some(rule) = short {
            let cost = cost(wanted.least[0], wanted.least.get(1).copied().unwrap_or(0));
            let wait = engine::check(&self.rules, &self.buckets, &cost, at(now)).unwrap_err().wait;
            let wait = if let Wait::At(time) = wait { time.as_nanos() - now } else { 50 * MILLI };
            let (until, held) = (now + LEASE, wanted.inflight.to_vec());
            self.leases.insert(id.0, Record { call_number: wanted.call_number, until, held });
            assert!(rule < used.len());
            return Reply::Refused(wait);
        }
        let granted: Vec<u64> =
            (0..used.len()).map(|r| available(r).min(wanted.wanted[r])).collect();
        let mut held = Vec::new();
        for (rule, more) in granted.iter().enumerate() {
            self.buckets[rule].hold(*more);
            held.push(wanted.inflight[rule] + more);
        }
        self.leases
            .insert(id.0, Record { call_number: wanted.call_number, until: now + LEASE, held });
        Reply::Leased(granted)
    }

    pub(super) fn held_by_all(&self) -> u64 {
        self.buckets.iter().map(Bucket::held).sum()
    }

    pub(super) fn lease_limits(&self, members: u64, now: u64) -> LeaseLimits {
        let level = |(rule, bucket): (&Rule, &Bucket)| bucket.level(rule, at(now)).available;
        let available = self.rules.iter().zip(&self.buckets).map(level).collect();
        LeaseLimits { available: Some(available), members }
    }
}
