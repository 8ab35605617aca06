use paceline::quota::{Dimension, Usd};

/// Formats a number with thousands separators: `1,234,567`.
pub(crate) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats an amount of a dimension: `1,234,567`, or `$1.23` for money.
pub(crate) fn amount(dimension: &str, amount: u64) -> String {
    match Dimension::custom(dimension).is_usd() {
        true => Usd::from_micros(amount).to_string(),
        false => whole(amount),
    }
}

/// Formats a number and its noun, in the plural unless the number is 1: `1 line`, `1,234 lines`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", whole(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let table = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in table {
            assert_eq!(whole(number), text);
        }
        assert_eq!(whole(u64::MAX), "18,446,744,073,709,551,615");
    }
}
