use std::fmt;

use console::{Style, measure_text_width, truncate_str};

use super::bar::Bar;
use super::figures::{KeyFigures, LimitFigures};
use crate::terminal::{Span, printable, whole};
use tollgate::quota::Window;

/// Keys and their limits as text of a bounded width.
pub(in crate::command) struct Table<'a> {
    keys: &'a [KeyFigures],
    now: u64,
    /// In columns.
    width: usize,
    colors: bool,
}

impl<'a> Table<'a> {
    /// At this time, in nanoseconds since the epoch.
    pub(in crate::command) fn new(
        keys: &'a [KeyFigures],
        now: u64,
        width: usize,
        colors: bool,
    ) -> Self {
        Self { keys, now, width, colors }
    }

    fn layout(&self) -> Layout {
        let rows: Vec<Row> = self
            .keys
            .iter()
            .flat_map(|key| &key.limits)
            .map(|limit| Row::new(limit, self.now))
            .collect();
        Layout::of(&rows, self.width)
    }

    fn key(&self, f: &mut fmt::Formatter<'_>, key: &KeyFigures, layout: &Layout) -> fmt::Result {
        let mut name = printable(&key.key);
        if let Some(quota) = key.quota.as_ref().filter(|quota| **quota != key.key) {
            name = format!("{name}  (quota {})", printable(quota));
        }
        let head = match key.cooling_until.and_then(|until| Span::between(self.now, until.0)) {
            Some(span) => format!("{name}  (cooling down, resumes in {span})"),
            None => name,
        };
        let head = truncate_str(&head, self.width, ELLIPSIS);
        writeln!(f, "{}", self.styled(&head, Style::new().bold()))?;
        if key.limits.is_empty() {
            writeln!(f, "{}", truncate_str("  no known limits", self.width, ELLIPSIS))?;
        }
        for limit in &key.limits {
            self.limit(f, limit, layout)?;
        }
        Ok(())
    }

    fn limit(&self, f: &mut fmt::Formatter<'_>, limit: &LimitFigures, to: &Layout) -> fmt::Result {
        let Row { label, used, limit: amount, note } = Row::new(limit, self.now);
        let (a, b, c) = (to.label, to.used, to.limit);
        let figures = format!("{used:>b$} {amount:<c$}");
        let line = match (to.bar, limit.limit) {
            (0, _) => format!("  {label:<a$}  {figures}"),
            (bar, None) => format!("  {label:<a$}  {:bar$}  {figures}", ""),
            (bar, Some(most)) => {
                let bar = Bar::new(limit.used, limit.held, most, bar).to_string();
                let bar = self.styled(&bar, level(limit, most));
                format!("  {label:<a$}  {bar}  {figures}")
            }
        };
        let cut = |text: &str| truncate_str(text.trim_end(), self.width, ELLIPSIS).into_owned();
        match (note.is_empty(), to.note_below) {
            (true, _) => writeln!(f, "{}", cut(&line)),
            (false, false) => writeln!(f, "{}", cut(&format!("{line}  {note}"))),
            (false, true) => writeln!(f, "{}\n{}", cut(&line), cut(&format!("    {note}"))),
        }
    }

    fn styled(&self, text: &str, style: Style) -> String {
        style.force_styling(self.colors).apply_to(text).to_string()
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = self.layout();
        self.keys.iter().try_for_each(|key| self.key(f, key, &layout))
    }
}

/// The texts of a limit.
struct Row {
    label: String,
    used: String,
    /// With the slash before it.
    limit: String,
    note: String,
}

impl Row {
    fn new(limit: &LimitFigures, now: u64) -> Self {
        let dimension = printable(&limit.dimension);
        let label = match limit.window {
            Some(window) => format!("{dimension}/{}", unit(window)),
            None => dimension,
        };
        let mut notes = Vec::new();
        if limit.held > 0 {
            notes.push(format!("{} reserved", whole(limit.held)));
        }
        if let Some(original) = limit.original.filter(|original| Some(*original) != limit.limit) {
            notes.push(format!("reduced from {}", whole(original)));
        }
        if let Some(span) = limit.resets_at.and_then(|at| Span::between(now, at.0)) {
            notes.push(format!("resets in {span}"));
        }
        let amount = limit.limit.map_or_else(|| "used".to_owned(), |n| format!("/ {}", whole(n)));
        Self { label, used: whole(limit.used), limit: amount, note: notes.join(", ") }
    }
}

/// How wide each column is.
struct Layout {
    label: usize,
    used: usize,
    limit: usize,
    /// None where it would be too narrow to be read.
    bar: usize,
    /// Whether notes have lines of their own.
    note_below: bool,
}

impl Layout {
    fn of(rows: &[Row], width: usize) -> Self {
        let widest = |text: fn(&Row) -> &str| {
            rows.iter().map(|row| measure_text_width(text(row))).max().unwrap_or(0)
        };
        let (label, used) = (widest(|row| &row.label), widest(|row| &row.used));
        let (limit, note) = (widest(|row| &row.limit), widest(|row| &row.note));
        let figures = 2 + label + 2 + used + 1 + limit + 2;
        let note_below = note > 0 && width < figures + NARROWEST + 2 + note;
        let beside = if note_below { 0 } else { note + 2 };
        let room = width.saturating_sub(figures + beside);
        let bar = if room < NARROWEST { 0 } else { room.min(WIDEST) };
        Self { label, used, limit, bar, note_below }
    }
}

/// A window in one word.
pub(in crate::command) fn unit(window: Window) -> String {
    let named = [
        (Window::SECOND, "second"),
        (Window::MINUTE, "minute"),
        (Window::HOUR, "hour"),
        (Window::DAY, "day"),
        (Window::WEEK, "week"),
        (Window::MONTH, "month"),
    ];
    match named.iter().find(|(known, _)| *known == window) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("{:?}", window.as_duration()),
    }
}

fn level(limit: &LimitFigures, most: u64) -> Style {
    let taken = limit.used.saturating_add(limit.held);
    match () {
        () if taken >= most => Style::new().red(),
        () if taken >= most - most / 5 => Style::new().yellow(),
        () => Style::new().green(),
    }
}

const ELLIPSIS: &str = "…";
const NARROWEST: usize = 8;
const WIDEST: usize = 32;

#[cfg(test)]
mod tests {
    use super::super::figures::Moment;
    use super::*;

    const NOW: u64 = 1_000_000_000_000;

    fn limit(dimension: &str, window: Option<Window>, figures: (u64, u64, u64)) -> LimitFigures {
        let (used, held, limit) = figures;
        LimitFigures {
            dimension: dimension.to_owned(),
            window,
            limit: Some(limit),
            original: Some(limit),
            used,
            held,
            available: Some(limit.saturating_sub(used + held)),
            resets_at: (used > 0).then_some(Moment(NOW + 12_000_000_000)),
        }
    }

    fn keys() -> Vec<KeyFigures> {
        let limits = vec![
            limit("requests", Some(Window::MINUTE), (12, 0, 500)),
            limit("tokens", Some(Window::MINUTE), (24_000, 1_000, 30_000)),
            limit("concurrency", None, (0, 0, 8)),
        ];
        vec![
            KeyFigures { key: "gpt-4o".to_owned(), quota: None, limits, cooling_until: None },
            KeyFigures {
                key: "evil\u{1b}[31m".to_owned(),
                quota: None,
                limits: Vec::new(),
                cooling_until: Some(Moment(NOW + 3_000_000_000)),
            },
        ]
    }

    #[test]
    fn at_eighty_columns_a_limit_is_a_line() {
        let expected = "\
gpt-4o
  requests/minute  [#------------------]      12 / 500     resets in 12s
  tokens/minute    [##############=----]  24,000 / 30,000  1,000 reserved, resets in 12s
  concurrency      [-------------------]       0 / 8
evil\\u{1b}[31m  (cooling down, resumes in 3s)
  no known limits
";
        assert_eq!(Table::new(&keys(), NOW, 88, false).to_string(), expected);
    }

    #[test]
    fn at_forty_columns_notes_go_below() {
        let expected = "\
gpt-4o
  requests/minute      12 / 500
    resets in 12s
  tokens/minute    24,000 / 30,000
    1,000 reserved, resets in 12s
  concurrency           0 / 8
evil\\u{1b}[31m  (cooling down, resumes …
  no known limits
";
        assert_eq!(Table::new(&keys(), NOW, 40, false).to_string(), expected);
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        for width in 1..120 {
            for colors in [false, true] {
                let text = Table::new(&keys(), NOW, width, colors).to_string();
                for line in text.lines() {
                    assert!(measure_text_width(line) <= width, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn colours_are_there_only_if_asked_for() {
        assert!(!Table::new(&keys(), NOW, 80, false).to_string().contains('\u{1b}'));
        assert!(Table::new(&keys(), NOW, 80, true).to_string().contains("\u{1b}[33m[###"));
    }

    #[test]
    fn a_reduced_limit_and_one_that_nobody_knows_say_so() {
        let mut reduced = limit("requests", Some(Window::DAY), (1, 0, 5));
        reduced.original = Some(10);
        assert_eq!(Row::new(&reduced, NOW).note, "reduced from 10, resets in 12s");
        let unknown = LimitFigures { limit: None, original: None, ..reduced };
        let row = Row::new(&unknown, NOW);
        assert_eq!((row.used.as_str(), row.limit.as_str()), ("1", "used"));
        assert_eq!(unit(Window::new(std::time::Duration::from_secs(90)).expect("a window")), "90s");
    }
}
