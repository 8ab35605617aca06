//! Console blocks: commands and their output.

/// A command and the output that the page shows for it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) command: String,
    pub(super) output: String,
}

/// Parses a `console` block: commands after `$ `, each followed by its output.
pub(super) fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            entries.push(Entry { command: command.to_owned(), output: String::new() });
        } else {
            let entry = entries.last_mut().expect("a block begins with a command");
            entry.output.push_str(line);
            entry.output.push('\n');
        }
    }
    entries
}

/// Replaces the parts of a text that differ between runs: numbers, durations, bars and column widths.
pub(super) fn normalized(text: &str) -> String {
    let mut normalized = String::new();
    for word in text.split_whitespace() {
        let word: String = word.chars().filter(|c| !matches!(c, '#' | '-' | '[' | ']')).collect();
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        // `2m 14s` and `2m` are both one duration.
        let word = match is_number {
            true if normalized.ends_with("0 ") => continue,
            true => "0".to_owned(),
            false => word,
        };
        if !word.is_empty() {
            normalized.push_str(&word);
            normalized.push(' ');
        }
    }
    normalized
}

#[test]
fn normalized_output_differs_only_in_words() {
    let page = "gpt-4o\n  rpm  [###--]  11 / 500  resets in 1m 35s\n";
    assert_eq!(normalized(page), normalized("gpt-4o\n rpm [#--] 2 / 1,000 resets in 9s"));
    assert_ne!(normalized(page), normalized("gpt-4o\n tpm [#--] 2 / 1,000 resets in 9s"));
}
