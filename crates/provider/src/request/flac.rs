//! Reads the length of a FLAC file (RFC 9639).

use memchr::memmem;

/// Returns the seconds of audio in the first FLAC file of a form, rounded up; `None` if it has none or its header is
/// cut or states no length.
pub(super) fn seconds(form: &[u8]) -> Option<u64> {
    let searched = form.get(..SEARCHED).unwrap_or(form);
    let mut starts = memmem::find_iter(searched, b"fLaC").map(|at| &form[at + 4..]);
    // The first block is STREAMINFO, of type 0 and 34 bytes. Its type has a bit more if no block follows.
    let block = starts.find_map(|file| match file {
        [0x00 | 0x80, 0, 0, 34, block @ ..] => Some(block),
        _ => None,
    })?;
    // After four sizes: the sample rate in 20 bits, the channels in 3, the bits of a sample in 5, the samples in 36.
    let fields = u64::from_be_bytes(*block.get(10..18)?.first_chunk()?);
    let (rate, samples) = (fields >> 44, fields & 0xf_ffff_ffff);
    // An encoder that streams states no samples.
    (rate > 0 && samples > 0).then(|| samples.div_ceil(rate))
}

/// The bytes of a form in which a file must begin.
const SEARCHED: usize = 64 * 1024;
