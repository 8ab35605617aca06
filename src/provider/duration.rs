use std::time::Duration;

/// Parses a Go duration, as OpenAI and Groq write `reset`: `12ms`, `1s`, `6m0s`, `2m59.56s`. `None`
/// for other texts and for negative durations.
pub fn go(text: &str) -> Option<Duration> {
    let text = text.trim();
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (duration, rest) = leading(text)?;
    rest.is_empty().then_some(duration)
}

/// Parses a number of seconds, with a fraction or without; a negative one is zero.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    scaled(text.trim(), 1.0)
}

/// Parses a number of milliseconds, with a fraction or without; a negative one is zero.
pub(super) fn millis(text: &str) -> Option<Duration> {
    scaled(text.trim(), 1e-3)
}

/// Parses the duration at the start of a text (`6m0s`, `41.724s`, `20 seconds`), and returns it with the
/// rest of the text.
pub(super) fn leading(text: &str) -> Option<(Duration, &str)> {
    let (mut total, mut rest) = component(text)?;
    while let Some((more, after)) = component(rest) {
        total = total.saturating_add(more);
        rest = after;
    }
    Some((total, rest))
}

/// Parses a number with its unit.
fn component(text: &str) -> Option<(Duration, &str)> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, rest) = text.split_at(digits);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let unit = rest.trim_start_matches(' ');
    let end = unit.find(|c: char| !c.is_alphabetic()).unwrap_or(unit.len());
    let (unit, rest) = unit.split_at(end);
    Some((scaled(number, unit_seconds(unit)?)?, rest))
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" | "milliseconds" => 1e-3,
        "s" | "second" | "seconds" => 1.0,
        "m" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

fn scaled(number: &str, unit_seconds: f64) -> Option<Duration> {
    let number: f64 = number.parse().ok()?;
    if !number.is_finite() {
        return None;
    }
    let seconds = (number * unit_seconds).max(0.0);
    // Fails if the duration exceeds `Duration::MAX`.
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read_to_the_nanosecond() {
        for (text, nanos) in [
            ("12ms", 12_000_000),
            ("1s", 1_000_000_000),
            ("6m0s", 360_000_000_000),
            ("13.065s", 13_065_000_000),
            ("2m59.56s", 179_560_000_000),
            ("1h2m3s", 3_723_000_000_000),
            ("0s", 0),
            ("0", 0),
            ("7.66µs", 7_660),
        ] {
            assert_eq!(go(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn negative_number_is_zero_and_infinite_one_is_none() {
        assert_eq!((seconds("-1"), millis("1.5")), (Some(Duration::ZERO), go("1.5ms")));
        for text in ["inf", "-inf", "infinity", "NaN", "1e999", ""] {
            assert_eq!((seconds(text), millis(text)), (None, None), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_none() {
        for text in
            ["", "-1", "-1s", "s", "1", "1x", "..s", "1s!", "req_b176", "NaNs", "infs", "1e3s"]
        {
            assert_eq!(go(text), None, "{text}");
        }
        assert_eq!(go("99999999999999999999999h"), Some(Duration::MAX));
    }
}
