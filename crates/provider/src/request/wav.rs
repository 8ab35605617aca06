//! Reads the length of a WAV file (RIFF, Microsoft and IBM, 1991).

use memchr::memmem;

/// Returns the seconds of audio in the first WAV file of a form, rounded up; `None` if it has none or its header
/// is invalid.
pub(super) fn seconds(form: &[u8]) -> Option<u64> {
    let starts = memmem::find_iter(form.get(..SEARCHED).unwrap_or(form), b"RIFF");
    let mut files = starts.map(|at| &form[at..]);
    let file = files.find(|file| file.get(8..12).is_some_and(|kind| kind == b"WAVE"))?;
    let (mut chunks, mut bytes_per_second) = (&file[12..], None);
    loop {
        let (name, rest) = chunks.split_first_chunk::<4>()?;
        let (size, rest) = rest.split_first_chunk::<4>()?;
        let size = u32::from_le_bytes(*size);
        match name {
            b"fmt " => {
                let rate = rest.get(8..12)?.first_chunk::<4>()?;
                bytes_per_second = Some(u64::from(u32::from_le_bytes(*rate)));
            }
            b"data" => {
                // A file that was streamed states no size, or the largest.
                let stated = u64::from(size).min(rest.len() as u64);
                let bytes = if size == 0 { rest.len() as u64 } else { stated };
                return bytes_per_second.filter(|rate| *rate > 0).map(|rate| bytes.div_ceil(rate));
            }
            _ => {}
        }
        // Chunks begin at even offsets.
        chunks = rest.get(usize::try_from(size).ok()?.checked_next_multiple_of(2)?..)?;
    }
}

/// The bytes of a form in which a file must begin.
const SEARCHED: usize = 64 * 1024;
