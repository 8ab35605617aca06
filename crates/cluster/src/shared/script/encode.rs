#[expect(deprecated, reason = "a hash that is the same in all processes")]
use std::hash::{Hasher, SipHasher};
use std::sync::atomic::Ordering;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::Rule;
use paceline_limiter::quota::Dimension;
use paceline_limiter::seam::{self, Grid, Parameters, Precedence};
use redis::Cmd;
use smallvec::SmallVec;

use super::call::{Call, MAX_AMOUNT, Operation, Order, Part, ServerTime};
use super::text::{ScriptText, TEXT};
use super::view::{Amounts, KnownReservation, View};

impl Call<'_> {
    /// Returns the command by the script's hash; a `NOSCRIPT` error means that the server does not
    /// know the script yet.
    pub(crate) fn by_hash(&self) -> Cmd {
        self.with(&TEXT, ScriptText::by_hash)
    }

    /// Returns the command with the script's text, after which the server knows the script.
    pub(crate) fn by_text(&self) -> Cmd {
        self.with(&TEXT, ScriptText::by_text)
    }

    pub(super) fn with(&self, text: &ScriptText, command: impl Fn(&ScriptText) -> Cmd) -> Cmd {
        let mut command = command(text);
        command.arg(self.parts.len());
        for part in self.parts {
            command.arg(part.name);
        }
        command.arg(&self.id.0[..]).arg(self.encoded());
        command
    }

    /// Encodes all arguments of the script as doubles.
    fn encoded(&self) -> Vec<u8> {
        let mut encoded = Encoder(Vec::with_capacity(384));
        let (operation, flag, ttl) = self.operation.numbers();
        let ServerTime { expected, jumps } = &self.time;
        encoded.extend([operation, flag.into(), ttl, *expected, self.generation]);
        let order = self.operation.order();
        encoded.extend([order.number(), order.weight.max(1).into(), order.max_starvation]);
        encoded.push(jumps.len() as u64);
        jumps.iter().for_each(|jump| encoded.extend([jump.at, jump.by]));
        for part in self.parts {
            encoded.part(part, *expected, self.operation.is_lease());
        }
        encoded.0
    }
}

impl Operation {
    fn numbers(self) -> (u64, bool, u64) {
        match self {
            Self::Reserve { ttl, waits, order: _ } => (1, waits, ttl),
            Self::Settle { unsure } => (2, unsure, 0),
            Self::Release { unsure } => (3, unsure, 0),
            Self::Renew { ttl, restores } => (4, restores, ttl),
            Self::Charge => (5, false, 0),
            Self::Lease { ttl } => (6, false, ttl),
            Self::Return => (7, true, 0),
            Self::Read => (8, false, 0),
            Self::Reset => (9, false, 0),
        }
    }

    fn order(self) -> Order {
        match self {
            Self::Reserve { order, .. } => order,
            _ => Order::ARRIVAL,
        }
    }

    pub(super) fn is_lease(self) -> bool {
        matches!(self, Self::Lease { .. })
    }
}

impl Order {
    /// Returns the order of a request. `key` is the key of the hash of the flow, the same in all processes.
    pub(crate) fn of(precedence: &Precedence, key: u64) -> Self {
        let Precedence { priority, flow, weight, max_starvation } = precedence;
        let flow = flow.as_ref().map_or(0, |name| keyed_hash(key, name.as_bytes()));
        let max_starvation = u64::try_from(max_starvation.as_micros()).unwrap_or(EXACT);
        Self { priority: priority.load(Ordering::Relaxed), flow, weight: *weight, max_starvation }
    }

    /// Returns the number that identifies the priority, in its upper bits, and the flow.
    fn number(self) -> u64 {
        let priority = u64::from(self.priority.cast_unsigned() ^ 0x80);
        priority << FLOW_BITS | self.flow >> (u64::BITS - FLOW_BITS)
    }
}

/// An encoder of numbers as little-endian doubles, exact below 2^53.
struct Encoder(Vec<u8>);

impl Encoder {
    fn push(&mut self, number: u64) {
        #[expect(clippy::cast_precision_loss, reason = "the number is at most 2^53")]
        let double = number.min(EXACT) as f64;
        self.0.extend(double.to_le_bytes());
    }

    fn extend<const N: usize>(&mut self, numbers: [u64; N]) {
        numbers.into_iter().for_each(|number| self.push(number));
    }

    fn part(&mut self, part: &Part<'_>, expected: u64, leases: bool) {
        let view = part.view;
        let (created_at, at) = view.map_or((0, 0), |view| (view.created_at, view.at));
        let seen = view.filter(|view| !view.buckets.is_empty());
        let usage = if seen.is_some() { 1 } else { 2 * u64::from(part.asks_for_uses()) };
        let service = part.rules.iter().zip(&part.amounts);
        let service =
            service.map(|(rule, &amount)| seam::service_time(rule, amount)).max().unwrap_or(0);
        self.extend([part.rules.len() as u64, created_at, at, usage, service]);
        let lease = part.lease.filter(|_| leases);
        let size_at = self.0.len();
        if let Some(lease) = lease {
            self.push(0);
            self.0.extend(lease.id.0);
            self.extend([lease.call_number.into(), lease.first_report.into()]);
        }
        for (index, rule) in part.rules.iter().enumerate() {
            self.rule(rule, amount(&part.amounts, index), expected);
            if let Some(lease) = lease {
                let numbers = [&lease.inflight, &lease.least, &lease.wanted];
                self.extend(numbers.map(|amounts| amount(amounts, index).min(MAX_AMOUNT)));
            }
        }
        if let Some(view) = seen {
            for index in 0..part.rules.len() {
                self.known_uses(view, index);
            }
            self.push(view.reservations.len() as u64);
            view.reservations.iter().for_each(|reservation| self.reservation(reservation));
        }
        if lease.is_some() {
            // The script skips a part that it decides about later.
            self.set_size(size_at, size_at);
        }
    }

    /// Encodes when the usage of a rule was taken. Usage at unknown times counts as used at the time of the view.
    fn known_uses(&mut self, view: &View, index: usize) {
        let (used, _) = view.buckets.get(index).copied().unwrap_or_default();
        let known = view.uses.get(index).map_or(&[][..], |uses| uses);
        let rest = used.saturating_sub(known.iter().map(|(_, amount)| amount).sum());
        let rest = (view.at, rest);
        let uses = known.iter().chain([&rest]).filter(|(_, amount)| *amount > 0);
        self.push(uses.clone().count() as u64);
        for &(at, amount) in uses {
            self.extend([at, amount.min(MAX_AMOUNT)]);
        }
    }

    /// Encodes a reservation with its amounts by bucket, as the script stores them: held ones are negative.
    fn reservation(&mut self, known: &KnownReservation) {
        let KnownReservation { id, sent, renewed: _, ttl, call_number, rules, amounts } = known;
        self.0.extend(id.0);
        self.extend([*sent, *ttl]);
        let size_at = self.0.len();
        self.push(0);
        if let Some(number) = call_number {
            self.extend([0, (*number).into()]);
        }
        for (rule, &amount) in rules.iter().zip(amounts).filter(|(_, amount)| **amount > 0) {
            let is_charged = *sent == 0 && *rule.dimension() != Dimension::Concurrency;
            self.push(tag(rule));
            self.push(amount.min(MAX_AMOUNT));
            if !is_charged && (rule.holds() || call_number.is_some()) {
                // The sign of a double is its last bit.
                *self.0.last_mut().expect("a number was pushed") |= 0x80;
            }
        }
        self.set_size(size_at, size_at + 8);
    }

    /// Sets the number at a position to the size of what follows `from`.
    fn set_size(&mut self, at: usize, from: usize) {
        let size = (self.0.len() - from) as f64;
        self.0[at..at + 8].copy_from_slice(&size.to_le_bytes());
    }

    fn rule(&mut self, rule: &Rule, amount: u64, expected: u64) {
        let parameters = seam::parameters(rule);
        let head = [
            tag(rule),
            kind(parameters),
            u64::from(rule.holds()),
            amount.min(MAX_AMOUNT),
            seam::needed(rule, amount).min(MAX_AMOUNT),
        ];
        self.extend(head);
        match parameters {
            Parameters::Token { burst, per_nano, per_token, margin } => {
                self.push(burst.min(MAX_AMOUNT));
                self.token(per_nano, per_token, margin);
            }
            Parameters::Sliding { limit, span } => {
                self.extend([limit.min(MAX_AMOUNT), micros(span)])
            }
            Parameters::Fixed { limit, window, margin } => {
                self.extend([limit.min(MAX_AMOUNT), micros(window), micros(margin)]);
            }
            Parameters::Grid { limit, margin, grid } => {
                self.extend([limit.min(MAX_AMOUNT), micros(margin)]);
                self.grid(grid, expected);
            }
            Parameters::Concurrency { limit } => self.extend([limit.min(MAX_AMOUNT), 0, 0, 0, 0]),
        }
    }

    /// Encodes the rate per microsecond, and the margin as whole tokens and a remainder. Values that
    /// are too precise for the script are rounded: the rate down, the margin up.
    fn token(&mut self, per_nano: u32, per_token: u64, margin: u128) {
        let (mut rate, mut whole) = (u64::from(per_nano) * 1_000, per_token);
        let tokens =
            u64::try_from(margin / u128::from(per_token)).unwrap_or(MAX_MARGIN).min(MAX_MARGIN);
        let mut rest = u64::try_from(margin % u128::from(per_token)).unwrap_or(0);
        while whole > MAX_AMOUNT {
            (rate, whole, rest) = (rate / 2, whole.div_ceil(2), rest.div_ceil(2));
        }
        self.extend([rate, whole, tokens, rest]);
    }

    /// Encodes the calendar windows, starting with the one before the expected time: the time until
    /// which they are valid, and pairs of start and length.
    fn grid(&mut self, grid: &Grid, expected: u64) {
        let now = grid.around(Timestamp::from_nanos(expected.saturating_mul(1_000)));
        let mut runs = grid.runs(seam::sub_nanos(now.start, 1));
        let known: SmallVec<[_; MAX_RUNS]> = runs.by_ref().take(MAX_RUNS).collect();
        self.push(runs.next().map_or(u64::MAX, |(start, _)| micros(start.as_nanos())));
        self.push(known.len() as u64 * 2);
        for (start, length) in known {
            self.extend([micros(start.as_nanos()), micros(length)]);
        }
    }
}

fn amount(amounts: &Amounts, index: usize) -> u64 {
    amounts.get(index).copied().unwrap_or(0)
}

fn micros(nanos: u64) -> u64 {
    nanos.div_ceil(1_000)
}

/// Returns the tag that identifies a bucket in the state: hashes of its dimension, in the upper 26 bits, and of
/// its window. A state has at most some tens of buckets.
fn tag(rule: &Rule) -> u64 {
    let column = seam::column(rule.dimension()).to_le_bytes();
    let dimension = rule.dimension().as_str().bytes().chain(column);
    let window = match rule.dimension() {
        Dimension::Concurrency => 0,
        _ => rule.limit().window().as_nanos(),
    };
    hash(dimension) << HASH_BITS | hash(window.to_le_bytes().into_iter())
}

/// Returns the upper bits of an FNV-1a hash.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    hash >> (u64::BITS - HASH_BITS)
}

/// Returns a hash for which nobody who doesn't know the key can choose a text.
#[expect(deprecated, reason = "`DefaultHasher` has no key and may differ between processes")]
fn keyed_hash(key: u64, text: &[u8]) -> u64 {
    let mut hasher = SipHasher::new_with_keys(key, 0);
    hasher.write(text);
    hasher.finish()
}

/// Returns the time in microseconds for which an amount counts, if the time of its use decides about that.
pub(crate) fn use_span(rule: &Rule) -> Option<u64> {
    match seam::parameters(rule) {
        Parameters::Sliding { span, .. } => Some(micros(span)),
        Parameters::Fixed { window, margin, .. } => Some(micros(window + margin)),
        _ => None,
    }
}

const fn kind(parameters: Parameters<'_>) -> u64 {
    match parameters {
        Parameters::Token { .. } => 1,
        Parameters::Concurrency { .. } => 2,
        Parameters::Sliding { .. } => 3,
        Parameters::Fixed { .. } => 4,
        Parameters::Grid { .. } => 5,
    }
}

/// The maximum number of changes of window length to encode: enough for two years of days or weeks,
/// and several months.
const MAX_RUNS: usize = 4;

const EXACT: u64 = 1 << 53;

/// The bits of each half of a tag.
const HASH_BITS: u32 = 26;

/// The bits of a flow in the number of an order.
const FLOW_BITS: u32 = 44;

/// The maximum margin in tokens, many times the largest burst.
const MAX_MARGIN: u64 = 1 << 52;
