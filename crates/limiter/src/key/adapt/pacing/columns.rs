use std::time::Duration;

use smallvec::SmallVec;

use super::column::{Column, ConfiguredRate, Event};
use super::pace::Pace;
use super::pause::Closure;
use super::send_log::{SentRequest, Sums};
use super::units::MIN_AMOUNT;
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// The dimensions of a key's requests, without concurrency.
#[derive(Debug)]
pub(super) struct Columns {
    all: SmallVec<[Column; 2]>,
    /// Requests sent.
    requests: u64,
    /// `true` while a limit of requests in flight has replaced the rates.
    is_suspended: bool,
}

/// A refusal that measures rates.
#[derive(Debug)]
pub(super) struct Measurement<'a> {
    pub(super) sent: &'a SentRequest,
    pub(super) cost: &'a Cost,
    /// The dimension that the refusal names.
    pub(super) named: Option<&'a Dimension>,
    /// Seconds of the pause.
    pub(super) pause: f64,
    /// Seconds from sending a request to its refusal.
    pub(super) delay: f64,
    pub(super) is_slow_start: bool,
}

impl Columns {
    pub(super) fn new(configured: impl IntoIterator<Item = ConfiguredRate>) -> Self {
        let is_rate = |rate: &ConfiguredRate| {
            rate.dimension != Dimension::Concurrency && rate.per_second > 0.0
        };
        let rates = configured.into_iter().filter(is_rate);
        let all = rates.map(|rate| Column::new(rate.dimension.clone(), Some(rate))).collect();
        Self { all, requests: 0, is_suspended: false }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Column> {
        self.all.iter()
    }

    /// Returns the configured rates.
    pub(super) fn configured(&self) -> impl Iterator<Item = &ConfiguredRate> {
        self.all.iter().filter_map(|column| column.configured.as_ref())
    }

    /// Returns the mean cost of the requests so far.
    pub(super) fn mean_cost(&self, dimension: &Dimension) -> f64 {
        let column = self.all.iter().find(|column| column.dimension == *dimension);
        column.map_or(0.0, |column| column.sent / to_f64(self.requests.max(1)))
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the most requests of a mean cost per second that a learned rate allows.
    pub(super) fn requests_per_second(&self) -> f64 {
        let requests = to_f64(self.requests.max(1));
        let per_second = |column: &Column| {
            let pace = column.pace.as_ref()?;
            Some(pace.rate() * requests / column.sent.max(MIN_AMOUNT))
        };
        self.all.iter().filter_map(per_second).fold(0.0, f64::max)
    }

    /// Returns the learned rates, 0 for a column without one.
    pub(super) fn rates(&self) -> Sums {
        self.all.iter().map(|column| column.pace.as_ref().map_or(0.0, Pace::rate)).collect()
    }

    /// Returns whether the provider is known to count in windows.
    pub(super) fn has_window(&self) -> bool {
        self.all.iter().any(|column| column.is_window)
    }

    /// Doubles the learned rates, and takes what was sent above them as allowed.
    pub(super) fn double(&mut self, now: Timestamp) {
        for pace in self.all.iter_mut().filter_map(|column| column.pace.as_mut()) {
            pace.set_rate(pace.rate() * 2.0);
            pace.empty(0.0, now);
        }
    }

    /// Returns all charges sent.
    pub(super) fn sums(&self) -> Sums {
        self.all.iter().map(|column| column.sent).collect()
    }

    /// Returns the time at which the learned rates allow a request, and the dimension that is last.
    pub(super) fn ready_at(&self, cost: &Cost) -> Option<(Timestamp, &Dimension)> {
        let active = self.all.iter().filter(|_| !self.is_suspended);
        let paced = active.filter_map(|column| {
            let pace = column.pace.as_ref()?;
            Some((pace.ready_at(amount(cost, &column.dimension)), &column.dimension))
        });
        paced.reduce(|last, next| if next.0 > last.0 { next } else { last })
    }

    /// Counts a request that is sent now.
    pub(super) fn send(&mut self, cost: &Cost, now: Timestamp) {
        self.requests = self.requests.saturating_add(1);
        for column in &mut self.all {
            column.send(amount(cost, &column.dimension), self.requests, now);
        }
    }

    /// Adds the dimensions in which a request has a cost.
    pub(super) fn add(&mut self, cost: &Cost) {
        let is_rate = |dimension: &&Dimension| {
            **dimension != Dimension::Concurrency && cost.amount(dimension) > 0
        };
        for dimension in Dimension::KNOWN.iter().filter(is_rate) {
            self.get_or_add(dimension);
        }
    }

    /// Returns the cost of a request that was never sent.
    pub(super) fn put_back(&mut self, cost: &Cost) {
        for column in &mut self.all {
            column.put_back(amount(cost, &column.dimension));
        }
    }

    /// Takes a request that used nothing of the limits off the sums.
    pub(super) fn exclude(&mut self, cost: &Cost, number: u64) {
        for column in &mut self.all {
            column.exclude(amount(cost, &column.dimension), number);
        }
    }

    /// Measures the rate of the named dimension, or of all. Returns how often each of them must have fallen lately.
    pub(super) fn measure(&mut self, refusal: &Measurement<'_>, now: Timestamp) -> usize {
        if let Some(named) = refusal.named {
            self.get_or_add(named);
        }
        let named = refusal.named.cloned().or_else(|| self.suspect(refusal.cost));
        let is_measured =
            |column: &Column| named.as_ref().is_none_or(|named| column.dimension == *named);
        let event = Event {
            sent: refusal.sent,
            now,
            pause: refusal.pause,
            delay: refusal.delay,
            is_slow_start: refusal.is_slow_start,
            requests: to_f64(self.requests),
            is_only: self.all.iter().filter(|column| is_measured(column)).count() == 1,
        };
        let mut falls: Option<usize> = None;
        for (index, column) in self.all.iter_mut().enumerate() {
            let cost = amount(refusal.cost, &column.dimension);
            if is_measured(column) {
                let of_column = column.measure(index, cost, &event);
                falls = Some(falls.map_or(of_column, |falls| falls.min(of_column)));
            } else {
                column.exclude_event(cost);
                if refusal.named.is_none() {
                    column.pace = None;
                }
            }
        }
        falls.filter(|_| refusal.named.is_some() || named.is_none()).unwrap_or(0)
    }

    /// Measures the rates of a provider that counts in windows, once it has accepted a request again.
    pub(super) fn open_again(&mut self, closure: &Closure, sent: &SentRequest, now: Timestamp) {
        for (column, before) in self.all.iter_mut().zip(&sent.before) {
            column.open_again(closure, *before, self.requests, now);
        }
    }

    /// Returns the dimension that refusals without a name point to: where it limits, requests of a large cost
    /// are refused more often.
    fn suspect(&mut self, cost: &Cost) -> Option<Dimension> {
        let requests = to_f64(self.requests.max(1));
        for column in &mut self.all {
            column.note_size(amount(cost, &column.dimension), requests);
        }
        let sized = self.all.iter().filter_map(|column| Some((column.size()?, column)));
        let largest = sized.reduce(|largest, next| if next.0 > largest.0 { next } else { largest });
        largest.filter(|(size, _)| *size > LARGE).map(|(_, column)| column.dimension.clone())
    }

    /// Suspends the learned rates after a refusal that shows a limit of requests in flight.
    pub(super) fn suspend(&mut self, cost: &Cost) {
        self.is_suspended = true;
        for column in &mut self.all {
            column.exclude_event(amount(cost, &column.dimension));
        }
    }

    /// Continues with the rates from before [`suspend`](Self::suspend). Returns `false` if they weren't
    /// suspended.
    pub(super) fn resume(&mut self, now: Timestamp, until: Timestamp) -> bool {
        if !std::mem::take(&mut self.is_suspended) {
            return false;
        }
        for column in &mut self.all {
            if let Some(mut pace) = column.pace.take() {
                pace.begin_cycle();
                pace.empty(0.0, until);
                column.start_at(pace, self.requests, now);
            }
        }
        true
    }

    /// Returns whether a learned rate is being exceeded, to find out whether the limit is higher.
    pub(super) fn is_growing(&self) -> bool {
        let is_growing = |column: &Column| column.pace.as_ref().is_some_and(Pace::is_growing);
        !self.is_suspended && self.all.iter().any(is_growing)
    }

    /// Forgets the learned rates. Returns the requests per second that were accepted while they were learned.
    pub(super) fn restart(&mut self, now: Timestamp) -> f64 {
        let requests = to_f64(self.requests.max(1));
        self.is_suspended = false;
        let restart =
            |column: &mut Column| column.restart(now) * requests / column.sent.max(MIN_AMOUNT);
        self.all.iter_mut().map(restart).fold(0.0, f64::max)
    }

    /// Empties the saved amounts until the end of a pause, at which a request of the promised cost fits.
    pub(super) fn empty(&mut self, promised: Option<&Cost>, until: Timestamp) {
        for column in &mut self.all {
            let level = promised.map_or(0.0, |cost| PROMISED * amount(cost, &column.dimension));
            if let Some(pace) = &mut column.pace {
                pace.empty(level, until);
            }
        }
    }

    /// Continues with a learned rate.
    pub(super) fn restore(
        &mut self,
        dimension: &Dimension,
        pace: Pace,
        events: u32,
        now: Timestamp,
    ) {
        let number = self.requests;
        let column = self.get_or_add(dimension);
        column.events = events;
        column.start_at(pace, number, now);
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        for column in &mut self.all {
            column.rebase(back);
        }
    }

    fn get_or_add(&mut self, dimension: &Dimension) -> &mut Column {
        let known = self.all.iter().position(|column| column.dimension == *dimension);
        let index = known.unwrap_or_else(|| {
            self.all.push(Column::new(dimension.clone(), None));
            self.all.len() - 1
        });
        &mut self.all[index]
    }
}

fn amount(cost: &Cost, dimension: &Dimension) -> f64 {
    to_f64(cost.amount(dimension))
}

#[expect(clippy::cast_precision_loss, reason = "sums and rates need no more than 53 bits")]
fn to_f64(amount: u64) -> f64 {
    amount as f64
}

/// The mean size of refused requests, as a factor of the mean of all, from which their dimension is the cause.
const LARGE: f64 = 1.4;

/// The part of a promised cost that counts as saved at the end of a pause. Below 1, since rates and costs are
/// estimates, and the next request would otherwise be refused again.
const PROMISED: f64 = 0.6;
