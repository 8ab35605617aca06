use core::fmt;
use core::str::FromStr;

/// An amount of money in micro-dollars, which is displayed in dollars and parsed from them.
///
/// ```
/// use tollgate::quota::Usd;
/// assert_eq!(Usd(1_250_000).to_string(), "$1.25");
/// assert_eq!(Usd(42).to_string(), "$0.000042");
/// assert_eq!("12.5".parse(), Ok(Usd(12_500_000)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usd(
    /// The micro-dollars.
    pub u64,
);

/// The number of micro-dollars in a dollar.
const DOLLAR: u64 = 1_000_000;

impl fmt::Display for Usd {
    /// Displays cents, and further digits if there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % DOLLAR);
        let digits = fraction.trim_end_matches('0').len().max(2);
        write!(f, "${}.{}", self.0 / DOLLAR, &fraction[..digits])
    }
}

impl FromStr for Usd {
    type Err = &'static str;

    /// Parses dollars with at most six decimals, without a sign.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || fraction.is_empty() || !is_number(whole) || !is_number(fraction) {
            return Err("not an amount of dollars; write a number such as 50 or 0.25");
        }
        let micros = format!("{fraction:0<6}");
        let (micros, rest) = micros.split_at(6);
        if rest.bytes().any(|digit| digit != b'0') {
            return Err("has more than six decimals; the smallest amount is 0.000001");
        }
        let dollars = whole.parse::<u64>().ok().and_then(|dollars| dollars.checked_mul(DOLLAR));
        let amount =
            dollars.zip(micros.parse().ok()).and_then(|(a, b): (u64, u64)| a.checked_add(b));
        amount.map(Self).ok_or("too many dollars")
    }
}

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
    fn text_that_is_no_amount_is_refused() {
        for text in ["", ".", "-1", "1e3", "1.", ".5", "0.0000001", "99999999999999999999", " 1"] {
            assert!(text.parse::<Usd>().is_err(), "{text}");
        }
    }
}
