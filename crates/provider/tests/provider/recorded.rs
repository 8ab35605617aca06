//! Headers and errors of recorded responses, from the folder `$PACELINE_CORPUS`.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use paceline_limiter::quota::Dimension;
use paceline_provider::{ApiError, Class, InvalidAnswer, LimitReading, Profile, Scanner};
use serde_json::Value;

struct Response {
    place: String,
    profile: Profile,
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

#[test]
fn limit_headers_of_recorded_responses_are_all_read() {
    let mut read = 0;
    for response in responses() {
        let stated: usize = response.headers.keys().map(|n| usize::from(states_limit(n))).sum();
        let limits = response.profile.limits(&response.headers);
        let present = |l: &LimitReading| {
            [l.limit.is_some(), l.remaining.is_some(), l.reset.is_some()].map(usize::from)
        };
        let values: usize = limits.iter().flat_map(present).sum();
        assert_eq!(values, stated, "{}: {limits:?}", response.place);
        read += values;
    }
    assert!(read == 0 || read > 1_200, "{read} values");
}

/// reset = used / limit × window, for buckets that refill continuously.
#[test]
fn recorded_resets_equal_refill_of_used_amounts() {
    let mut compared = 0;
    for response in responses() {
        let name = response.profile.name();
        if !["openai", "azure", "groq", "anthropic"].contains(&name) {
            continue;
        }
        for reading in response.profile.limits(&response.headers) {
            let Some((shortest, longest)) = refill(&reading) else { continue };
            let Some(reset) = reading.reset else { continue };
            // Anthropic's requests were also recorded with other resets; its combined tokens have
            // the reset of input or output.
            let other = [Dimension::Requests, Dimension::Tokens].contains(&reading.dimension);
            if name == "anthropic" && other {
                continue;
            }
            // The times are whole seconds, taken when the response was written.
            let coarse = Duration::from_secs(if name == "anthropic" { 5 } else { 0 });
            let fits = shortest <= reset + coarse && reset <= longest;
            assert!(fits, "{}: {reading:?}: {shortest:?} to {longest:?}", response.place);
            compared += 1;
        }
    }
    assert!(compared == 0 || compared > 400, "{compared} resets");
}

#[test]
fn recorded_errors_all_have_a_class() {
    let mut classes = Vec::new();
    for response in responses() {
        let Response { place, profile, status, headers, body } = &response;
        let class = profile.classify(*status, headers, body.as_bytes());
        if status.as_u16() < 400 {
            assert_eq!(class, Class::Ok, "{place}");
            continue;
        }
        let error = ApiError::read(body.as_bytes()).unwrap_or_else(|| panic!("{place}: {body}"));
        assert!(!error.message().is_empty(), "{place}: {error:?}");
        // An invalid request stays invalid; a busy upstream recovers.
        let expected = match status.as_u16() {
            400 | 404 => Class::Terminal,
            429 => Class::Transient,
            other => panic!("{place}: unexpected status {other}"),
        };
        assert_eq!(class, expected, "{place}: {error}");
        classes.push(class);
    }
    assert!(classes.is_empty() || classes.len() > 25, "{} errors", classes.len());
}

/// A filtered prompt, a tool that was not called and a prompt that is too long fail on every retry.
#[test]
fn error_in_recorded_success_is_terminal() {
    let mut errors = 0;
    for response in responses().iter().filter(|response| response.status.is_success()) {
        let mut scanner = Scanner::of(response.profile, &response.headers);
        scanner.feed(response.body.as_bytes());
        let Some(error) = scanner.finish().error else { continue };
        let class = response.profile.classify_in_band(&error);
        assert_eq!(class, Class::Terminal, "{}: {error}", response.place);
        errors += 1;
    }
    assert!(responses().is_empty() || errors >= 3, "{errors} errors");
}

#[test]
fn recorded_success_without_error_is_a_valid_answer() {
    let (mut answers, mut errors) = (0, 0);
    for response in responses().iter().filter(|response| response.status.is_success()) {
        let Response { place, headers, body, .. } = response;
        match InvalidAnswer::check(headers, body.as_bytes()) {
            Err(InvalidAnswer::Error) => errors += 1,
            checked => assert_eq!(checked, Ok(()), "{place}: {body}"),
        }
        answers += 1;
    }
    assert!(answers == 0 || (answers > 100 && errors <= 3), "{errors} of {answers}");
}

/// Returns the shortest and longest time until full that a rounded remainder allows.
fn refill(reading: &LimitReading) -> Option<(Duration, Duration)> {
    let (limit, remaining) = (u128::from(reading.limit?), u128::from(reading.remaining?));
    let (used, rounding) = (limit.checked_sub(remaining)?, u128::from(reading.granularity));
    let time = |used: u128| used * u128::from(reading.window.as_nanos()) / limit;
    let millis = Duration::from_millis(1);
    let nanos = |n: u128| Duration::from_nanos(u64::try_from(n).unwrap());
    let shortest = nanos(time(used.saturating_sub(rounding))).saturating_sub(millis);
    let whole_second = Duration::from_secs(if rounding > 1 { 1 } else { 0 });
    Some((shortest, nanos(time(used + rounding - 1)) + millis + whole_second))
}

fn states_limit(name: &HeaderName) -> bool {
    let Some((_, rest)) = name.as_str().split_once("ratelimit-") else { return false };
    let mut parts = rest.split('-');
    parts.any(|part| ["limit", "remaining", "reset"].contains(&part))
}

/// Returns the recorded responses; none if no corpus is set.
fn responses() -> Vec<Response> {
    let Some(folder) = std::env::var_os("PACELINE_CORPUS").map(PathBuf::from) else {
        println!("skipped: PACELINE_CORPUS is not set");
        return Vec::new();
    };
    let files = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("PACELINE_CORPUS: {}: {error}", folder.display()));
    let paths = files.map(|file| file.unwrap().path());
    let hars = paths.filter(|path| path.extension().is_some_and(|e| e == "har"));
    let responses: Vec<_> = hars.flat_map(|path| of_file(&path)).collect();
    assert!(!responses.is_empty(), "PACELINE_CORPUS has no recordings");
    responses
}

fn of_file(path: &std::path::Path) -> Vec<Response> {
    let har: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap().iter().enumerate();
    let name = path.file_name().unwrap().to_string_lossy();
    entries.map(|(index, entry)| response(format!("{name}:{index}"), entry)).collect()
}

fn response(place: String, entry: &Value) -> Response {
    let response = &entry["response"];
    let header = |header: &Value| {
        let name = HeaderName::from_bytes(header["name"].as_str().unwrap().as_bytes()).unwrap();
        (name, HeaderValue::from_str(header["value"].as_str().unwrap()).unwrap())
    };
    Response {
        place,
        profile: Profile::find(entry["request"]["url"].as_str().unwrap()),
        status: StatusCode::from_u16(response["status"].as_u64().unwrap() as u16).unwrap(),
        headers: response["headers"].as_array().unwrap().iter().map(header).collect(),
        body: response["content"]["text"].as_str().unwrap_or("").to_owned(),
    }
}
