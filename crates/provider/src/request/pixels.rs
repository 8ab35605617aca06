use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Returns the width and height of an image, read from the first bytes of its Base64.
pub(super) fn pixels(base64: &str) -> Option<(u64, u64)> {
    let head = base64.as_bytes();
    let head = &head[..head.len().min(HEAD) / 4 * 4];
    let size = imagesize::blob_size(&BASE64_STANDARD.decode(head).ok()?).ok()?;
    Some((size.width as u64, size.height as u64))
}

/// The number of bytes of Base64 that are decoded to find an image's size: a JPEG states it after the
/// camera's metadata.
const HEAD: usize = 64 << 10;
