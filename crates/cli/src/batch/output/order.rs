use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::FileError;
use super::replace::replace;
use super::scan::{LONGEST_LINE, ResultLine};
use crate::batch::ids::{Id, Ids};
use crate::batch::lines::Lines;

/// Sorts the lines of a file into input order with one atomic rename.
pub(super) fn restore(path: &Path, ids: &Ids) -> Result<(), FileError> {
    let mut positions = positions(path, ids).map_err(FileError::of("read", path))?;
    if positions.is_sorted() {
        return Ok(());
    }
    positions.sort_unstable();
    replace(path, |writer| copy(path, &positions, writer))
}

/// The target and current position of a line. Lines of one request keep their order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LinePosition {
    input_line: u64,
    start: u64,
    len: u64,
}

fn positions(path: &Path, ids: &Ids) -> io::Result<Vec<LinePosition>> {
    let mut lines = Lines::new(BufReader::new(File::open(path)?), LONGEST_LINE);
    let mut buf = Vec::new();
    let mut positions = Vec::new();
    while let Some(span) = lines.next(&mut buf)? {
        let known = ResultLine::parse(&buf).ok().and_then(|seen| ids.line(Id::of(&seen.custom_id)));
        let input_line = known.unwrap_or(u64::MAX);
        positions.push(LinePosition { input_line, start: span.start, len: span.len });
    }
    Ok(positions)
}

fn copy(path: &Path, positions: &[LinePosition], writer: &mut impl Write) -> io::Result<()> {
    let mut file = BufReader::new(File::open(path)?);
    for position in positions {
        file.seek(SeekFrom::Start(position.start))?;
        let copied = io::copy(&mut (&mut file).take(position.len), writer)?;
        if copied != position.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
