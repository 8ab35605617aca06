use console::Term;

/// The properties of standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// The width in columns.
    pub(crate) width: usize,
    /// The height in lines; `None` for a file or a pipe.
    height: Option<usize>,
    pub(crate) colors: bool,
}

impl Screen {
    /// Returns the current properties; a terminal may be resized.
    pub(crate) fn stdout() -> Self {
        let term = Term::stdout();
        let size = term.is_term().then(|| term.size_checked()).flatten();
        let (height, width) = match size {
            Some((height, width)) if width > 0 => (Some(usize::from(height)), usize::from(width)),
            _ => (None, PIPED),
        };
        // Respects NO_COLOR and TERM.
        Self { width, height, colors: term.features().colors_supported() }
    }

    /// Returns a text that replaces the previous one on a terminal.
    pub(super) fn replaced_by(&self, text: &str) -> String {
        let Some(height) = self.height else { return format!("{text}\n") };
        let lines: Vec<_> = text.lines().collect();
        // The cursor is on the line below the text.
        let most = height.saturating_sub(1).max(1);
        let shown = if lines.len() > most { most - 1 } else { lines.len() };
        let mut screen = HOME.to_owned();
        for line in &lines[..shown] {
            screen.push_str(line);
            screen.push_str(END_OF_LINE);
        }
        if shown < lines.len() {
            screen.push_str(&format!("({} more lines){END_OF_LINE}", lines.len() - shown));
        }
        screen + CLEAR_BELOW
    }
}

const PIPED: usize = 80;
const HOME: &str = "\u{1b}[H";
const END_OF_LINE: &str = "\u{1b}[K\n";
const CLEAR_BELOW: &str = "\u{1b}[J";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_is_never_scrolled() {
        let screen = Screen { width: 80, height: Some(4), colors: false };
        let text = screen.replaced_by("a\nb\nc\n");
        assert_eq!(text, "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\nc\u{1b}[K\n\u{1b}[J");
        let text = screen.replaced_by("a\nb\nc\nd\n");
        assert_eq!(text, "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n(2 more lines)\u{1b}[K\n\u{1b}[J");
    }

    #[test]
    fn pipe_output_is_sequential() {
        let screen = Screen { width: 80, height: None, colors: false };
        assert_eq!(screen.replaced_by("a\n"), "a\n\n");
    }
}
