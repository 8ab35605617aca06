//! Recorded arrivals and sizes, from the folder `$PACELINE_TRACES`.

use std::path::PathBuf;
use std::time::Duration;

/// One request of a trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Time since the first request of the trace.
    pub(super) at: Duration,
    /// Input and generated tokens.
    pub(super) tokens: u64,
}

/// Reads the trace `azure-llm-2023-{name}.csv`; returns `None` if no folder is set.
pub(super) fn read(name: &str) -> Option<Vec<Request>> {
    let Some(folder) = std::env::var_os("PACELINE_TRACES") else {
        println!("skipped: PACELINE_TRACES is not set");
        return None;
    };
    let path = PathBuf::from(folder).join(format!("azure-llm-2023-{name}.csv"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("PACELINE_TRACES: {}: {error}", path.display()));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("TIMESTAMP,ContextTokens,GeneratedTokens"));
    let mut requests: Vec<Request> = lines.map(request).collect();
    assert!(requests.is_sorted_by_key(|request| request.at), "arrivals are sorted");
    let first = requests[0].at;
    requests.iter_mut().for_each(|request| request.at -= first);
    Some(requests)
}

/// Parses `2023-11-16 18:15:46.6805900,374,44`. Both traces lie within one day.
fn request(line: &str) -> Request {
    let fields = || {
        let (time, tokens) = line.split_once(' ')?.1.split_once(',')?;
        let (input, output) = tokens.split_once(',')?;
        let (hours, rest) = time.split_once(':')?;
        let (minutes, seconds) = rest.split_once(':')?;
        let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
        let at = Duration::from_secs(hours * 3_600 + minutes * 60)
            + Duration::from_secs_f64(seconds.parse().ok()?);
        let (input, output): (u64, u64) = (input.parse().ok()?, output.parse().ok()?);
        Some(Request { at, tokens: input + output })
    };
    fields().unwrap_or_else(|| panic!("invalid line of a trace: {line}"))
}
