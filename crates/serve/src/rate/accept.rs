use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderValue};

/// Returns true if a client prefers JSON to text by its `Accept` headers (RFC 9110, section 12.5.1).
/// GoCC responds with text, so text is the default, even if both are accepted equally.
pub(super) fn prefers_json(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter();
    let ranges: Vec<Range<'_>> = values
        .filter_map(|value| HeaderValue::to_str(value).ok())
        .flat_map(|value| value.split(','))
        .filter_map(Range::parse)
        .collect();
    weight(&ranges, "application", "json") > weight(&ranges, "text", "plain")
}

/// A media range and its weight in thousandths.
#[derive(Debug, Clone, Copy)]
struct Range<'a> {
    kind: &'a str,
    subkind: &'a str,
    weight: u16,
}

impl<'a> Range<'a> {
    /// Parses a media range. Returns `None` for an invalid one, which is ignored.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subkind) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| thousandths(value.trim()))
        });
        Some(Self { kind, subkind, weight: weight.unwrap_or(Some(1_000))? })
    }

    /// Returns the specificity with which the range matches a media type; `None` if it does not match.
    fn specificity(&self, kind: &str, subkind: &str) -> Option<u8> {
        let same_kind = self.kind.eq_ignore_ascii_case(kind);
        match (self.kind, self.subkind) {
            ("*", "*") => Some(0),
            (_, "*") => same_kind.then_some(1),
            (_, own) => (same_kind && own.eq_ignore_ascii_case(subkind)).then_some(2),
        }
    }
}

/// Returns the weight of a media type by the most specific range; 0 if none matches.
fn weight(ranges: &[Range<'_>], kind: &str, subkind: &str) -> u16 {
    let best =
        ranges.iter().filter_map(|range| Some((range.specificity(kind, subkind)?, range.weight)));
    best.max().map_or(0, |(_, weight)| weight)
}

/// Parses a weight: `0` or `1`, with up to three decimal places.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let digits = places.len() <= 3 && places.bytes().all(|place| place.is_ascii_digit());
    let places = format!("{places:0<3}").parse::<u16>().ok().filter(|_| digits)?;
    match whole {
        "0" => Some(places),
        "1" if places == 0 => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_requires_a_higher_weight_than_text() {
        let of = |values: &[&'static str]| {
            let values = values.iter().map(|value| (ACCEPT, HeaderValue::from_static(value)));
            prefers_json(&values.collect())
        };
        for json in [
            &["application/json"][..],
            &["Application/JSON; charset=utf-8"],
            &["application/*"],
            &["text/plain;q=0.5, application/json"],
            &["application/json, */*;q=0.5"],
            &["application/json;q=0.2, text/*; Q=0.1"],
            &["text/html", "application/json;q=0.001"],
            &["*/*, text/plain;q=0"],
        ] {
            assert!(of(json), "{json:?}");
        }
        for text in [
            &[][..],
            &["*/*"],
            &["application/json, text/plain, */*"],
            &["application/json, */*"],
            &["application/json;q=0"],
            &["application/json;q=0.000"],
            &["application/json;q=0.5, text/plain;q=0.6"],
            &["application/*, application/json;q=0"],
            &["application/json-seq", "x-application/json"],
            &["text/x;v=\"application/json\""],
            &["application/json;q=2", ";", "/", "q=1"],
            &["application/json;q=1.001", "application/json;q=0.1234", "application/json;q=0.+1"],
        ] {
            assert!(!of(text), "{text:?}");
        }
    }
}
