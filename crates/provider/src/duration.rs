use std::time::Duration;

/// Parses a Go duration, as OpenAI and Groq write `reset`: `12ms`, `1s`, `6m0s`, `2m59.56s`. `None`
/// for other texts and for negative durations.
pub(crate) fn go(text: &str) -> Option<Duration> {
    let text = text.trim();
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (duration, rest) = leading(text)?;
    (rest.is_empty() && !text.contains(':')).then_some(duration)
}

/// Parses a number of seconds, with a fraction or without; a negative one is zero.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    scaled(text.trim(), 1.0)
}

/// Parses a whole text that states a duration with its units: `1m30s`, `30 seconds`, `PT30S`, `02:05:13` (with a day
/// before it as .NET writes it: `2.02:05:13`).
pub(super) fn stated(text: &str) -> Option<Duration> {
    let text = text.trim();
    let iso = || Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok();
    match leading(text) {
        Some((duration, "")) => Some(duration),
        _ if text.starts_with('P') => iso(),
        _ => None,
    }
}

/// Parses the duration at the start of a text (`6m0s`, `41.724s`, `1 hour and 20 minutes`, `02:05:13`), and returns it
/// with the rest of the text.
pub(super) fn leading(text: &str) -> Option<(Duration, &str)> {
    if let Some(clock) = clock(text) {
        return Some(clock);
    }
    let (mut total, mut unit, mut rest) = component(text)?;
    loop {
        let next = rest.trim_start_matches([',', ' ']);
        let next = next.strip_prefix("and ").unwrap_or(next);
        match component(next) {
            Some((more, smaller, after)) if smaller < unit => {
                total = total.saturating_add(more);
                (unit, rest) = (smaller, after);
            }
            _ => return Some((total, rest)),
        }
    }
}

/// Parses hours, minutes and seconds, and days before them.
fn clock(text: &str) -> Option<(Duration, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.')));
    let clock = text[..end.unwrap_or(text.len())].trim_end_matches('.');
    let rest = &text[clock.len()..];
    let mut parts = clock.split(':');
    let (first, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (days, hours) = first.split_once('.').unwrap_or(("0", first));
    let parts = [(days, 86_400.0), (hours, 3_600.0), (minutes, 60.0), (seconds, 1.0)];
    let durations = parts.map(|(number, unit)| scaled(number, unit));
    let total = durations.into_iter().try_fold(Duration::ZERO, |sum, d| sum.checked_add(d?))?;
    Some((total, rest))
}

/// Parses a number with its unit, and returns the seconds of the unit too.
fn component(text: &str) -> Option<(Duration, f64, &str)> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, rest) = text.split_at(digits);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let unit = rest.trim_start_matches(' ');
    let end = unit.find(|c: char| !c.is_alphabetic()).unwrap_or(unit.len());
    let (unit, rest) = unit.split_at(end);
    let unit_seconds = unit_seconds(unit)?;
    Some((scaled(number, unit_seconds)?, unit_seconds, rest))
}

/// Returns the seconds of a unit of time.
pub(super) fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 7.0 * 86_400.0,
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
        assert_eq!(seconds("-1"), Some(Duration::ZERO));
        for text in ["inf", "-inf", "infinity", "NaN", "1e999", ""] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn durations_in_words_are_read_with_the_rest() {
        for (text, seconds, rest) in [
            ("2 hours 15 minutes.", 8_100, "."),
            ("1 minute and 30 seconds, then", 90, ", then"),
            ("5 hours, 12 mins", 18_720, ""),
            ("30 seconds 5 requests", 30, " 5 requests"),
            ("30 seconds 5 minutes", 30, " 5 minutes"),
            ("02:05:13. Then", 7_513, ". Then"),
            ("2.02:05:13", 180_313, ""),
        ] {
            assert_eq!(leading(text), Some((Duration::from_secs(seconds), rest)), "{text}");
        }
        for (text, seconds) in [("PT30S", 30), ("PT1H2M", 3_720), ("30 sec", 30), ("1m30s", 90)] {
            assert_eq!(stated(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["30", "30s later", "-30s", "-PT30S", "P", "1:2", ""] {
            assert_eq!(stated(text), None, "{text}");
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
