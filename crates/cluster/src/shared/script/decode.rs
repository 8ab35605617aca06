use std::fmt;

use redis::Value;
use smallvec::SmallVec;

use super::call::{Call, Part};
use super::encode::use_span;
use super::response::{LeaseAnswer, Outcome, Response, RetryAfter};
use super::view::{Amounts, Uses, View};

impl Response {
    /// Decodes the response of the script to a call.
    ///
    /// # Errors
    /// Returns [`InvalidResponse`] for a value that the script never returns.
    pub(crate) fn read(call: &Call<'_>, value: &Value) -> Result<Self, InvalidResponse> {
        let Value::BulkString(bytes) = value else {
            return Err(InvalidResponse("not a bulk string"));
        };
        if bytes.len() % 8 != 0 {
            return Err(InvalidResponse("length is not a multiple of 8"));
        }
        let mut numbers = Numbers(bytes.chunks_exact(8));
        let code = numbers.number()?;
        let time = numbers.number()?;
        let (part, rule) = (numbers.index()?, numbers.index()?);
        let wait = numbers.wait()?;
        let not_executed = match code {
            STALE => Some(Outcome::Stale),
            LOST => Some(Outcome::Lost),
            OUTDATED => Some(Outcome::Outdated),
            _ => None,
        };
        if let Some(outcome) = not_executed {
            return numbers.end(Self { outcome, time, views: Vec::new(), earliest: 0 });
        }
        if code == LEASED {
            let (leases, views) = numbers.leases(call.parts, time)?;
            return numbers.end(Self {
                outcome: Outcome::Leases(leases),
                time,
                views,
                earliest: 0,
            });
        }
        let views =
            call.parts.iter().map(|part| numbers.view(part, time)).collect::<Result<_, _>>()?;
        let mut earliest = 0;
        let outcome = match code {
            DONE => Outcome::Done,
            REFUSED => {
                earliest = numbers.number()?;
                refused(call, part, rule, wait)?
            }
            UNKNOWN => Outcome::Unknown,
            _ => return Err(InvalidResponse("unknown code")),
        };
        numbers.end(Self { outcome, time, views, earliest })
    }
}

/// A response that the script never returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidResponse(&'static str);

impl fmt::Display for InvalidResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid response from the script: {}", self.0)
    }
}

impl std::error::Error for InvalidResponse {}

fn refused(
    call: &Call<'_>,
    part: usize,
    rule: usize,
    wait: RetryAfter,
) -> Result<Outcome, InvalidResponse> {
    let known = call.parts.get(part).is_some_and(|part| rule < part.rules.len());
    if known { Ok(Outcome::Refused { part, rule, wait }) } else { Err(InvalidResponse(NO_RULE)) }
}

struct Numbers<'a>(std::slice::ChunksExact<'a, u8>);

impl Numbers<'_> {
    fn double(&mut self) -> Result<f64, InvalidResponse> {
        let bytes = self.0.next().and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        bytes.map(f64::from_le_bytes).ok_or(InvalidResponse("unexpected end"))
    }

    fn number(&mut self) -> Result<u64, InvalidResponse> {
        whole(self.double()?)
    }

    fn index(&mut self) -> Result<usize, InvalidResponse> {
        usize::try_from(self.number()?).map_err(|_| InvalidResponse(NO_RULE))
    }

    fn wait(&mut self) -> Result<RetryAfter, InvalidResponse> {
        match self.double()? {
            -1.0 => Ok(RetryAfter::Unknown),
            -2.0 => Ok(RetryAfter::Never),
            wait => whole(wait).map(RetryAfter::In),
        }
    }

    fn view(&mut self, part: &Part<'_>, at: u64) -> Result<View, InvalidResponse> {
        let created_at = self.double()?;
        let (has_other_windows, created_at) = (created_at < 0.0, whole(created_at.abs())?);
        let (mut buckets, mut uses) = (SmallVec::new(), Vec::new());
        for rule in part.rules {
            buckets.push((self.number()?, self.number()?));
            if part.asks_for_uses() {
                uses.push(if use_span(rule).is_some() { self.uses()? } else { Uses::new() });
            }
        }
        let reservations = Vec::new();
        Ok(View { created_at, has_other_windows, at, buckets, uses, reservations })
    }

    fn uses(&mut self) -> Result<Uses, InvalidResponse> {
        let count = self.index()?;
        // Each takes two numbers of the response.
        (0..count).map(|_| Ok((self.number()?, self.number()?))).collect()
    }

    /// Decodes the decision about the lease of each part, and its state.
    fn leases(
        &mut self,
        parts: &[Part<'_>],
        at: u64,
    ) -> Result<(Vec<LeaseAnswer>, Vec<View>), InvalidResponse> {
        let lease = |part: &Part<'_>| {
            let (code, wait) = (self.number()?, self.wait()?);
            let view = self.view(part, at)?;
            let granted: Result<Amounts, _> = part.rules.iter().map(|_| self.number()).collect();
            let answer = match code {
                LEASED => LeaseAnswer::Granted(granted?),
                REFUSED => LeaseAnswer::Refused(wait),
                UNKNOWN => LeaseAnswer::Unknown,
                _ => return Err(InvalidResponse("unknown code")),
            };
            Ok((answer, view))
        };
        parts.iter().map(lease).collect()
    }

    fn end<T>(mut self, value: T) -> Result<T, InvalidResponse> {
        if self.0.next().is_some() { Err(InvalidResponse("trailing data")) } else { Ok(value) }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn whole(double: f64) -> Result<u64, InvalidResponse> {
    // Sums of amounts may exceed the exact range.
    let fits = (0.0..=1e18).contains(&double) && double.fract() == 0.0;
    if fits { Ok(double as u64) } else { Err(InvalidResponse("a number is not an integer")) }
}

const DONE: u64 = 0;
const REFUSED: u64 = 1;
const LEASED: u64 = 2;
const STALE: u64 = 3;
const LOST: u64 = 4;
const UNKNOWN: u64 = 5;
const OUTDATED: u64 = 6;

const NO_RULE: &str = "refers to a rule that is not in the call";
