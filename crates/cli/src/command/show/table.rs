use std::fmt;

use comfy_table::CellAlignment::{Left, Right};
use console::{Style, measure_text_width, truncate_str};

use super::bar::Bar;
use super::key_usage::{KeyUsage, LearnedUsage, LimitUsage, WindowUsage};
use crate::terminal::{HumanDuration, amount, plain_table, printable};
use paceline::Timestamp;
use paceline::quota::Window;

/// A table of keys and their limits with a maximum width.
pub(crate) struct KeyTable<'a> {
    keys: &'a [KeyUsage],
    now: Timestamp,
    /// The maximum width in columns.
    width: usize,
    colors: bool,
}

impl<'a> KeyTable<'a> {
    /// Returns a table of the keys at `now`.
    pub(crate) fn new(keys: &'a [KeyUsage], now: Timestamp, width: usize, colors: bool) -> Self {
        Self { keys, now, width, colors }
    }

    fn heading(&self, key: &KeyUsage) -> String {
        let mut heading = printable(&key.key);
        if let Some(quota) = key.quota.as_ref().filter(|quota| **quota != key.key) {
            heading.push_str(&format!("  (quota {})", printable(quota)));
        }
        match key.max_wait {
            Some(wait) if wait.is_zero() => heading.push_str("  (refuses instead of waiting)"),
            Some(wait) => {
                let wait = HumanDuration::of(wait);
                heading.push_str(&format!("  (requests wait for up to {wait})"));
            }
            None => {}
        }
        if let Some(span) =
            key.cooling_until.and_then(|until| HumanDuration::between(self.now, until.0))
        {
            let reason = key.cooling_kind.map(|kind| format!(": {}", kind.describe()));
            let reason = reason.unwrap_or_default();
            heading.push_str(&format!("  (cooling down, resumes in {span}{reason})"));
        }
        self.styled(&self.truncated(&heading), Style::new().bold())
    }

    /// Returns one text per limit of all keys: its line, and a line for its note if the width requires
    /// it.
    fn limits(&self) -> Vec<String> {
        let limits = self.keys.iter().flat_map(|key| &key.limits);
        let rows: Vec<_> = limits.map(|limit| LimitRow::new(limit, self.now)).collect();
        let layout = Layout::new(&rows, self.width);
        let lines = columns(&rows, &layout);
        lines.iter().zip(&rows).map(|(line, row)| self.limit(line, row, &layout)).collect()
    }

    fn limit(&self, line: &str, row: &LimitRow, layout: &Layout) -> String {
        let line = match row.bar(layout) {
            Some(bar) => line.replacen(&bar, &self.styled(&bar, row.style()), 1),
            None => line.to_owned(),
        };
        match layout.notes_below && !row.note.is_empty() {
            true => {
                let note = format!("    {}", row.note);
                format!("{}\n{}", self.truncated(&line), self.truncated(&note))
            }
            false => self.truncated(&line),
        }
    }

    fn truncated(&self, text: &str) -> String {
        truncate_str(text.trim_end(), self.width, ELLIPSIS).into_owned()
    }

    fn styled(&self, text: &str, style: Style) -> String {
        style.force_styling(self.colors).apply_to(text).to_string()
    }
}

impl fmt::Display for KeyTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limits = self.limits().into_iter();
        for key in self.keys {
            writeln!(f, "{}", self.heading(key))?;
            if key.limits.is_empty() {
                writeln!(f, "{}", self.truncated("  no known limits"))?;
            }
            for limit in limits.by_ref().take(key.limits.len()) {
                writeln!(f, "{limit}")?;
            }
            for LearnedUsage(limit) in &key.learned {
                let line = format!("  learned {limit}, {}", limit.provenance(self.now));
                writeln!(f, "{}", self.truncated(&printable(&line)))?;
            }
            for WindowUsage(window) in &key.utilization {
                let reset = window.resets_at.and_then(|at| HumanDuration::between(self.now, at));
                let reset = reset.map_or_else(String::new, |span| format!(", resets in {span}"));
                let line = format!("  {window}{reset}");
                writeln!(f, "{}", self.truncated(&printable(&line)))?;
            }
        }
        Ok(())
    }
}

/// The texts of a limit.
struct LimitRow<'a> {
    usage: &'a LimitUsage,
    label: String,
    used: String,
    /// The limit, after a slash.
    limit: String,
    note: String,
}

impl<'a> LimitRow<'a> {
    fn new(usage: &'a LimitUsage, now: Timestamp) -> Self {
        let dimension = printable(&usage.dimension);
        let label = match usage.window {
            Some(window) => format!("  {dimension}/{}", unit(window)),
            None => format!("  {dimension}"),
        };
        let amount = |number: u64| amount(&usage.dimension, number);
        let mut notes = Vec::new();
        if usage.held > 0 {
            notes.push(format!("{} reserved", amount(usage.held)));
        }
        if let Some(original) = usage.original.filter(|original| Some(*original) != usage.limit) {
            notes.push(format!("reduced from {}", amount(original)));
        }
        if let Some(span) = usage.resets_at.and_then(|at| HumanDuration::between(now, at.0)) {
            notes.push(format!("resets in {span}"));
        }
        let limit = usage.limit.map_or_else(|| "used".to_owned(), |n| format!("/ {}", amount(n)));
        Self { usage, label, used: amount(usage.used), limit, note: notes.join(", ") }
    }

    fn bar(&self, layout: &Layout) -> Option<String> {
        let limit = self.usage.limit.filter(|_| layout.bar > 0)?;
        Some(Bar::new(self.usage.used, self.usage.held, limit, layout.bar).to_string())
    }

    /// Returns the color of the bar: red if the limit is reached, yellow from 80 % on.
    fn style(&self) -> Style {
        let taken = self.usage.used.saturating_add(self.usage.held);
        let limit = self.usage.limit.unwrap_or(u64::MAX);
        match () {
            () if taken >= limit => Style::new().red(),
            () if taken >= limit - limit / 5 => Style::new().yellow(),
            () => Style::new().green(),
        }
    }
}

/// The columns that fit into the width.
#[derive(Debug, Default)]
struct Layout {
    /// The width of the bars; 0 if they would be too narrow.
    bar: usize,
    /// True if each note has its own line, below its limit.
    notes_below: bool,
}

impl Layout {
    fn new(rows: &[LimitRow<'_>], width: usize) -> Self {
        let without_bars = Self { bar: 0, notes_below: true };
        let columns = widest(columns(rows, &without_bars).iter().map(|line| line.trim_end()));
        let note = widest(rows.iter().map(|row| row.note.as_str()));
        let notes_below = note > 0 && width < columns + GAP + NARROWEST_BAR + GAP + note;
        let beside = if notes_below { 0 } else { note + GAP };
        let available = width.saturating_sub(columns + GAP + beside);
        let bar = if available < NARROWEST_BAR { 0 } else { available.min(WIDEST_BAR) };
        Self { bar, notes_below }
    }
}

/// Returns a line for each row.
fn columns(rows: &[LimitRow<'_>], layout: &Layout) -> Vec<String> {
    let note =
        |row: &LimitRow<'_>| if layout.notes_below { String::new() } else { row.note.clone() };
    let used = match layout.bar {
        0 => 1,
        _ => 2,
    };
    let mut table = match layout.bar {
        0 => {
            let cells = |row: &LimitRow<'_>| {
                [row.label.clone(), row.used.clone(), row.limit.clone(), note(row)]
            };
            plain_table([Left, Right, Left, Left], rows.iter().map(cells))
        }
        _ => {
            let cells = |row: &LimitRow<'_>| {
                let bar = row.bar(layout).unwrap_or_default();
                [row.label.clone(), bar, row.used.clone(), row.limit.clone(), note(row)]
            };
            plain_table([Left, Left, Right, Left, Left], rows.iter().map(cells))
        }
    };
    if let Some(column) = table.column_mut(used) {
        column.set_padding((0, 1));
    }
    table.lines().collect()
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(measure_text_width).max().unwrap_or(0)
}

/// Returns the name of a window.
pub(crate) fn unit(window: Window) -> String {
    let named = [
        (Window::SECOND, "second"),
        (Window::MINUTE, "minute"),
        (Window::HOUR, "hour"),
        (Window::DAY, "day"),
        (Window::WEEK, "week"),
        (Window::MONTH, "month"),
        (Window::ENDLESS, "total"),
    ];
    match named.iter().find(|(known, _)| *known == window) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("{:?}", window.as_duration()),
    }
}

const ELLIPSIS: &str = "…";
/// The number of spaces between columns.
const GAP: usize = 2;
const NARROWEST_BAR: usize = 8;
const WIDEST_BAR: usize = 32;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::key_usage::Rfc3339;
    use super::*;
    use paceline::limiter::{LearnedLimit, RefusalKind};
    use paceline::quota::Dimension;

    const NOW: Timestamp = Timestamp::from_unix_secs(1_000);

    fn limit(
        dimension: &str,
        window: Option<Window>,
        used: u64,
        held: u64,
        limit: u64,
    ) -> LimitUsage {
        LimitUsage {
            dimension: dimension.to_owned(),
            window,
            limit: Some(limit),
            original: Some(limit),
            used,
            held,
            available: Some(limit.saturating_sub(used + held)),
            resets_at: (used > 0).then_some(Rfc3339(Timestamp::from_unix_secs(1_012))),
        }
    }

    fn keys() -> Vec<KeyUsage> {
        let limits = vec![
            limit("requests", Some(Window::MINUTE), 12, 0, 500),
            limit("tokens", Some(Window::MINUTE), 24_000, 1_000, 30_000),
            limit("concurrency", None, 0, 0, 8),
        ];
        let measured_at = Timestamp::from_unix_secs(988);
        let mut learned = LearnedLimit::new(Dimension::Requests, 5.0, measured_at, 3);
        learned.configured = Some(8.3333);
        let learned = vec![LearnedUsage(learned)];
        vec![
            KeyUsage {
                key: "gpt-4o".to_owned(),
                quota: None,
                limits,
                cooling_until: None,
                cooling_kind: None,
                learned,
                utilization: Vec::new(),
                max_wait: None,
                as_of: None,
            },
            KeyUsage {
                key: "evil\u{1b}[31m".to_owned(),
                quota: None,
                limits: Vec::new(),
                cooling_until: Some(Rfc3339(Timestamp::from_unix_secs(1_003))),
                cooling_kind: Some(RefusalKind::Window),
                learned: Vec::new(),
                utilization: Vec::new(),
                max_wait: None,
                as_of: None,
            },
        ]
    }

    #[test]
    fn limits_are_single_lines_at_88_columns() {
        let expected = "\
gpt-4o
  requests/minute  [#------------------]      12 / 500     resets in 12s
  tokens/minute    [##############=----]  24,000 / 30,000  1,000 reserved, resets in 12s
  concurrency      [-------------------]       0 / 8
  learned 5 requests/s (told 8.33), measured 3 times, last 12s ago
evil\\u{1b}[31m  (cooling down, resumes in 3s: a limit of an hour or longer is used up)
  no known limits
";
        assert_eq!(KeyTable::new(&keys(), NOW, 88, false).to_string(), expected);
    }

    #[test]
    fn notes_are_below_limits_at_forty_columns() {
        let expected = "\
gpt-4o
  requests/minute      12 / 500
    resets in 12s
  tokens/minute    24,000 / 30,000
    1,000 reserved, resets in 12s
  concurrency           0 / 8
  learned 5 requests/s (told 8.33), mea…
evil\\u{1b}[31m  (cooling down, resumes …
  no known limits
";
        assert_eq!(KeyTable::new(&keys(), NOW, 40, false).to_string(), expected);
    }

    #[test]
    fn lines_fit_width() {
        for width in 1..120 {
            for colors in [false, true] {
                let text = KeyTable::new(&keys(), NOW, width, colors).to_string();
                for line in text.lines() {
                    assert!(measure_text_width(line) <= width, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn heading_states_longest_wait() {
        let heading = |max_wait| {
            let [mut key, _] = <[KeyUsage; 2]>::try_from(keys()).expect("two keys");
            key.max_wait = max_wait;
            KeyTable::new(&[], NOW, 88, false).heading(&key)
        };
        assert_eq!(heading(None), "gpt-4o");
        assert_eq!(heading(Some(Duration::ZERO)), "gpt-4o  (refuses instead of waiting)");
        let minutes = Some(Duration::from_secs(240));
        assert_eq!(heading(minutes), "gpt-4o  (requests wait for up to 4m)");
    }

    #[test]
    fn colors_are_optional() {
        assert!(!KeyTable::new(&keys(), NOW, 80, false).to_string().contains('\u{1b}'));
        assert!(KeyTable::new(&keys(), NOW, 80, true).to_string().contains("\u{1b}[33m[###"));
    }

    #[test]
    fn reduced_and_unknown_limits_are_labeled() {
        let mut reduced = limit("requests", Some(Window::DAY), 1, 0, 5);
        reduced.original = Some(10);
        assert_eq!(LimitRow::new(&reduced, NOW).note, "reduced from 10, resets in 12s");
        let unknown = LimitUsage { limit: None, original: None, ..reduced };
        let row = LimitRow::new(&unknown, NOW);
        assert_eq!((row.used.as_str(), row.limit.as_str()), ("1", "used"));
        assert_eq!(unit(Window::new(std::time::Duration::from_secs(90)).expect("a window")), "90s");
    }
}
