use std::io::{self, BufRead, Read};

/// A reader of lines with a maximum length.
#[derive(Debug)]
pub(super) struct Lines<R> {
    read: R,
    longest: usize,
    offset: u64,
}

/// The position of a line in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineSpan {
    /// The offset of its first byte.
    pub(super) start: u64,
    /// Its length in bytes, line ending included.
    pub(super) len: u64,
    /// True if it ends with a newline.
    pub(super) ended: bool,
    /// True if it exceeds the maximum length and was skipped.
    pub(super) too_long: bool,
}

impl<R: BufRead> Lines<R> {
    /// Returns a reader of lines of up to `longest` bytes.
    pub(super) fn new(read: R, longest: usize) -> Self {
        Self { read, longest, offset: 0 }
    }

    pub(super) fn set_longest(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Reads the next line into `buf`, without its line ending; `None` at the end of the file.
    ///
    /// A line that is too long is skipped and leaves `buf` empty.
    pub(super) fn next(&mut self, buf: &mut Vec<u8>) -> io::Result<Option<LineSpan>> {
        buf.clear();
        let start = self.offset;
        self.fill(buf, self.longest.saturating_add(1))?;
        if buf.is_empty() {
            return Ok(None);
        }
        let too_long = buf.len() > self.longest && buf.last() != Some(&b'\n');
        let mut ended = buf.last() == Some(&b'\n');
        if too_long {
            ended = self.skip(buf)?;
        }
        trim_ending(buf);
        Ok(Some(LineSpan { start, len: self.offset - start, ended, too_long }))
    }

    fn fill(&mut self, buf: &mut Vec<u8>, most: usize) -> io::Result<()> {
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let read = (&mut self.read).take(most).read_until(b'\n', buf)?;
        self.offset += read as u64;
        Ok(())
    }

    fn skip(&mut self, buf: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            buf.clear();
            self.fill(buf, SKIP)?;
            match buf.last() {
                Some(b'\n') => break,
                Some(_) => {}
                None => return Ok(false),
            }
        }
        buf.clear();
        Ok(true)
    }
}

fn trim_ending(buf: &mut Vec<u8>) {
    if buf.last() == Some(&b'\n') {
        buf.pop();
        if buf.last() == Some(&b'\r') {
            buf.pop();
        }
    }
}

const SKIP: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, longest: usize) -> Vec<(String, LineSpan)> {
        let mut lines = Lines::new(text.as_bytes(), longest);
        let mut buf = Vec::new();
        let mut found = Vec::new();
        while let Some(span) = lines.next(&mut buf).expect("memory can be read") {
            found.push((String::from_utf8_lossy(&buf).into_owned(), span));
        }
        found
    }

    #[test]
    fn line_above_maximum_length_is_skipped() {
        let found = all("abc\nabcd\nabc", 3);
        let texts: Vec<_> = found.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["abc", "", "abc"]);
        assert_eq!(found[1].1, LineSpan { start: 4, len: 5, ended: true, too_long: true });
        assert_eq!(found[2].1, LineSpan { start: 9, len: 3, ended: false, too_long: false });
    }

    #[test]
    fn long_last_line_without_newline_is_skipped() {
        let found = all(&"x".repeat(200_000), 3);
        assert_eq!(found[0].1, LineSpan { start: 0, len: 200_000, ended: false, too_long: true });
        assert_eq!(found.len(), 1);
    }
}
