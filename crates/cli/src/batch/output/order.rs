use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::FileError;
use super::replace::replace;
use super::scan::{LONGEST_LINE, Seen};
use crate::batch::ids::{Id, Ids};
use crate::batch::lines::Lines;

/// Puts the lines of a file in the order of the input, by one atomic rename.
pub(super) fn restore(path: &Path, ids: &Ids) -> Result<(), FileError> {
    let mut places = places(path, ids).map_err(FileError::of("read", path))?;
    if places.is_sorted() {
        return Ok(());
    }
    places.sort_unstable();
    replace(path, |writer| copy(path, &places, writer))
}

/// Where a line goes, and where it is. Lines of one request keep their order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    input_line: u64,
    start: u64,
    len: u64,
}

fn places(path: &Path, ids: &Ids) -> io::Result<Vec<Place>> {
    let mut lines = Lines::new(BufReader::new(File::open(path)?), LONGEST_LINE);
    let mut buf = Vec::new();
    let mut places = Vec::new();
    while let Some(span) = lines.next(&mut buf)? {
        let known = Seen::parse(&buf).ok().and_then(|seen| ids.line(Id::of(&seen.custom_id)));
        let input_line = known.unwrap_or(u64::MAX);
        places.push(Place { input_line, start: span.start, len: span.len });
    }
    Ok(places)
}

fn copy(path: &Path, places: &[Place], writer: &mut impl Write) -> io::Result<()> {
    let mut file = BufReader::new(File::open(path)?);
    for place in places {
        file.seek(SeekFrom::Start(place.start))?;
        let copied = io::copy(&mut (&mut file).take(place.len), writer)?;
        if copied != place.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
