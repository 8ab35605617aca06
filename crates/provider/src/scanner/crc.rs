/// Returns the CRC-32 of gzip and Ethernet (polynomial 0xEDB88320, reflected). It is computed without a
/// table, since only a few bytes are checked.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let rest = bytes.iter().fold(u32::MAX, |rest, byte| {
        (0..8).fold(rest ^ u32::from(*byte), |rest, _| {
            let is_odd = rest & 1 == 1;
            if is_odd { rest >> 1 ^ 0xEDB8_8320 } else { rest >> 1 }
        })
    });
    !rest
}

#[cfg(test)]
mod tests {
    #[test]
    fn crc_of_check_string_is_the_published_value() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
    }
}
