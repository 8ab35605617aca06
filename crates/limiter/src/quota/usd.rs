use core::fmt;
use core::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// An amount of money, exact to a micro-dollar.
///
/// It is displayed, parsed, serialized and deserialized in dollars.
///
/// ```
/// use paceline_limiter::quota::Usd;
/// assert_eq!(Usd::from_micros(1_250_000).to_string(), "$1.25");
/// assert_eq!(Usd::from_micros(42).to_string(), "$0.000042");
/// assert_eq!("50".parse(), Ok(Usd::from_dollars(50)));
/// assert_eq!("12.5".parse(), Ok(Usd::from_micros(12_500_000)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usd(u64);

/// The number of micro-dollars in a dollar.
const DOLLAR: u64 = 1_000_000;

impl Usd {
    /// Creates an amount of whole dollars; above 18 trillion dollars it saturates.
    pub const fn from_dollars(dollars: u64) -> Self {
        Self(dollars.saturating_mul(DOLLAR))
    }

    /// Creates an amount of micro-dollars, which are millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the micro-dollars.
    pub const fn as_micros(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Usd {
    /// Displays cents, and further digits if there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % DOLLAR);
        let digits = fraction.trim_end_matches('0').len().max(2);
        write!(f, "${}.{}", self.0 / DOLLAR, &fraction[..digits])
    }
}

impl FromStr for Usd {
    type Err = UsdError;

    /// Parses dollars with at most six decimals, without a sign.
    ///
    /// # Errors
    /// [`UsdError`], for anything else and for more than 18 trillion dollars.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || fraction.is_empty() || !is_number(whole) || !is_number(fraction) {
            return Err(UsdError("not an amount of dollars; write a number such as 50 or 0.25"));
        }
        let micros = format!("{fraction:0<6}");
        let (micros, rest) = micros.split_at(6);
        if rest.bytes().any(|digit| digit != b'0') {
            return Err(UsdError("has more than six decimals; the smallest amount is 0.000001"));
        }
        let dollars = whole.parse::<u64>().ok().and_then(|dollars| dollars.checked_mul(DOLLAR));
        let amount =
            dollars.zip(micros.parse().ok()).and_then(|(a, b): (u64, u64)| a.checked_add(b));
        amount.map(Self).ok_or(UsdError(TOO_MANY))
    }
}

/// The error of a text that is no amount of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsdError(&'static str);

impl fmt::Display for UsdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for UsdError {}

impl Serialize for Usd {
    /// Serializes dollars: a whole number, or one with decimals.
    #[expect(clippy::cast_precision_loss, reason = "exact below 9 billion dollars")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 % DOLLAR {
            0 => serializer.serialize_u64(self.0 / DOLLAR),
            _ => serializer.serialize_f64(self.0 as f64 / DOLLAR as f64),
        }
    }
}

impl<'de> Deserialize<'de> for Usd {
    /// Deserializes dollars: a number with at most six decimals.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Dollars;
        impl Visitor<'_> for Dollars {
            type Value = Usd;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of dollars, with at most six decimals")
            }

            fn visit_u64<E: Error>(self, dollars: u64) -> Result<Usd, E> {
                let micros = dollars.checked_mul(DOLLAR);
                micros.map(Usd).ok_or_else(|| E::custom(format_args!("{dollars}: {TOO_MANY}")))
            }

            fn visit_f64<E: Error>(self, dollars: f64) -> Result<Usd, E> {
                let usd = dollars.to_string().parse::<Usd>();
                usd.map_err(|reason| E::custom(format_args!("{dollars}: {reason}")))
            }
        }
        deserializer.deserialize_any(Dollars)
    }
}

const TOO_MANY: &str = "too many dollars; the largest amount is about 18 trillion";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_displayed_in_dollars_and_parsed_back() {
        for (micros, text) in
            [(0, "$0.00"), (1, "$0.000001"), (10_000, "$0.01"), (123_450_000, "$123.45")]
        {
            assert_eq!(Usd(micros).to_string(), text);
            assert_eq!(text[1..].parse(), Ok(Usd(micros)));
        }
        assert_eq!("7".parse(), Ok(Usd(7_000_000)));
        assert_eq!("0.1000000".parse(), Ok(Usd(100_000)));
    }

    #[test]
    fn dollars_in_json_are_the_same_amount() {
        for (micros, json) in [(50_000_000, "50"), (250_000, "0.25"), (1, "1e-6"), (0, "0")] {
            assert_eq!(serde_json::to_string(&Usd(micros)).unwrap(), json);
            assert_eq!(serde_json::from_str::<Usd>(json).unwrap(), Usd(micros));
        }
        for json in ["-1", "0.0000001", "\"50\"", "18446744073709551615", "1e30"] {
            assert!(serde_json::from_str::<Usd>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn text_that_is_no_amount_is_refused() {
        for text in ["", ".", "-1", "1e3", "1.", ".5", "0.0000001", "99999999999999999999", " 1"] {
            assert!(text.parse::<Usd>().is_err(), "{text}");
        }
    }
}
