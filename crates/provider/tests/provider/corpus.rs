//! Models and usage read from recorded traffic.

use paceline_provider::Scanner;

use super::recordings::{Recorded, Recording, all, entries};

#[test]
fn model_of_recorded_request_is_read() {
    let Some(entries) = all() else { return };
    let mut tally = Tally::default();
    for entry in &entries {
        let estimate = entry.profile().read_request(&entry.url, entry.request.as_bytes());
        let expected = entry.expected["model"].as_str();
        tally.count(entry, estimate.model.as_deref() == expected, || {
            format!("{:?}, but {expected:?}", estimate.model)
        });
    }
    tally.print("models");
    assert!(tally.total >= 1_200 && tally.misses.is_empty(), "{:#?}", tally.misses);
}

#[test]
fn usage_of_recorded_response_is_read() {
    let Some(entries) = all() else { return };
    let mut tally = Tally::default();
    for entry in &entries {
        let Some(expected) = entry.usage() else { continue };
        let usage = entry.scan_as_sent().usage;
        tally.count(entry, usage == expected, || format!("{usage:?}, but {expected:?}"));
    }
    tally.print("usages");
    assert!(tally.total >= 1_200 && tally.misses.is_empty(), "{:#?}", tally.misses);
}

/// The charge of a cut stream relies on this: see `cut_stream.rs` of the middleware.
#[test]
fn recorded_streams_show_all_but_a_few_tokens() {
    let Some(entries) = all() else { return };
    let (mut streams, mut hidden, mut most) = (0, Vec::new(), 0);
    for entry in &entries {
        let estimate = entry.profile().read_request(&entry.url, entry.request.as_bytes());
        let Some(Some(usage)) = entry.usage() else { continue };
        let scanner = Scanner::of(entry.profile(), &entry.headers);
        let mut scanner = scanner.measuring_output();
        scanner.feed(&entry.response);
        let scanned = scanner.finish();
        // Writer's streams end with the usage.
        let is_complete = scanned.is_whole || scanned.is_final;
        assert!(is_complete, "{} {}", entry.file, entry.index);
        let Some(bytes) = scanned.output_bytes.filter(|_| estimate.is_charged_as_received) else {
            continue;
        };
        streams += 1;
        most = most.max(usage.output.saturating_sub(bytes));
        if usage.output > bytes + 4 {
            hidden.push((entry.file, entry.index, usage.output, bytes));
        }
    }
    println!("{streams} streams show all but {most} tokens");
    assert!(streams >= 50 && hidden.is_empty(), "{streams} streams, {hidden:?}");
}

#[test]
fn usage_of_binary_event_streams_is_read() {
    let Some(entries) = entries("bedrock.har") else { return };
    let streams = entries.iter().filter(|entry| entry.usage().is_none());
    let silent: Vec<_> = streams
        .clone()
        .filter(|entry| entry.scan_as_sent().usage.is_none_or(|usage| usage.output == 0))
        .map(|entry| (entry.index, &entry.url))
        .collect();
    assert!(streams.count() >= 20 && silent.is_empty(), "{silent:?}");
}

/// The numbers of correct readings, by provider.
#[derive(Default)]
struct Tally {
    total: usize,
    by_file: std::collections::BTreeMap<&'static str, (usize, usize)>,
    misses: Vec<String>,
}

impl Tally {
    fn count(&mut self, entry: &Recording, is_right: bool, miss: impl FnOnce() -> String) {
        let (right, all) = self.by_file.entry(entry.file).or_default();
        *all += 1;
        *right += usize::from(is_right);
        self.total += 1;
        if !is_right {
            self.misses.push(format!("{} {}: {}", entry.file, entry.index, miss()));
        }
    }

    fn print(&self, subject: &str) {
        let right = self.total - self.misses.len();
        println!("{subject}: {right} of {} right", self.total);
        for (file, (right, all)) in &self.by_file {
            println!("  {file}: {right} of {all}");
        }
    }
}
