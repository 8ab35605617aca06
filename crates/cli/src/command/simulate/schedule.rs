//! Arguments about times after the first request.

use std::str::FromStr;
use std::time::Duration;

use paceline_config::parse_duration;
use paceline_simulate::{Cycle, Fault, FaultKind, LimitChange, OtherUse};

use crate::command::batch::above_zero;

/// A time in which the provider is overloaded, from the first request on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storm {
    from: Duration,
    until: Duration,
}

impl Storm {
    /// Returns the start.
    pub fn from(self) -> Duration {
        self.from
    }

    /// Returns the end.
    pub fn until(self) -> Duration {
        self.until
    }
}

impl FromStr for Storm {
    type Err = String;

    /// Parses `FROM..UNTIL`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (from, until) =
            text.split_once("..").ok_or("must be FROM..UNTIL, such as 100s..130s")?;
        let (from, until) = (parse_duration(from)?, parse_duration(until)?);
        match from < until {
            true => Ok(Self { from, until }),
            false => Err("must end after its start, such as 100s..130s".to_owned()),
        }
    }
}

/// Parses `KIND,SHARE[,ON,OFF]`.
pub(super) fn refuse(text: &str) -> Result<Fault, String> {
    let expected = "must be KIND,SHARE or KIND,SHARE,ON,OFF, such as rate,0.1 or rate,0.1,20s,40s";
    let (kind, share) = text.split_once(',').ok_or(expected)?;
    let (share, cycle) = share_and_cycle(share, expected)?;
    let kind = match kind {
        "rate" => FaultKind::RateLimited,
        "request" => FaultKind::TooLarge,
        "account" => FaultKind::InsufficientQuota,
        "window" => FaultKind::DailyLimit,
        "capacity" => FaultKind::Overloaded,
        _ => return Err("the kind must be rate, request, account, window or capacity".to_owned()),
    };
    match share.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => {
            Ok(Fault { cycle, ..Fault::share(share, kind) })
        }
        _ => Err("the share must be above 0 and at most 1, such as 0.1".to_owned()),
    }
}

/// Parses `TIME=xFACTOR`.
pub(super) fn change(text: &str) -> Result<LimitChange, String> {
    let expected = || "must be TIME=xFACTOR, such as 150s=x0.25".to_owned();
    let (at, factor) = text.split_once("=x").ok_or_else(expected)?;
    let factor: f64 = factor.parse().map_err(|_| expected())?;
    match factor.is_finite() && factor > 0.0 {
        true => Ok(LimitChange { at: parse_duration(at)?, factor }),
        false => Err("the factor must be above 0, such as x0.25".to_owned()),
    }
}

/// Parses `SHARE[,ON,OFF]`.
pub(super) fn others(text: &str) -> Result<OtherUse, String> {
    let expected = "must be SHARE or SHARE,ON,OFF, such as 0.75,20s,40s";
    let (share, cycle) = share_and_cycle(text, expected)?;
    match share.parse() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(OtherUse { share, cycle }),
        _ => Err("the share must be above 0 and below 1, such as 0.5".to_owned()),
    }
}

/// Splits `SHARE[,ON,OFF]`.
fn share_and_cycle<'a>(text: &'a str, expected: &str) -> Result<(&'a str, Option<Cycle>), String> {
    let parts: Vec<&str> = text.split(',').collect();
    match parts[..] {
        [share] => Ok((share, None)),
        [share, on, off] => {
            Ok((share, Some(Cycle { active: above_zero(on)?, idle: above_zero(off)? })))
        }
        _ => Err(expected.to_owned()),
    }
}
