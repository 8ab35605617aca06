//! Mutations of a seed.

use super::random::Random;

/// Returns a random seed with one to six mutations.
pub(super) fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        mutate(&mut bytes, seeds, random);
    }
    bytes.truncate(MAX_LENGTH);
    bytes
}

fn mutate(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = (at + 1 + random.below(24)).min(bytes.len());
    match random.below(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.number() as u8,
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => drop(bytes.splice(at..at, bytes[at..end].repeat(1 + random.below(4)))),
        5 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            let to = (from + random.below(64)).min(other.len());
            bytes.splice(at..end, other[from..to].iter().copied());
        }
        6 => number(bytes, random),
        _ => drop(bytes.splice(at..at, random.of(WORDS).iter().copied())),
    }
}

/// Replaces a number by one of [`NUMBERS`].
fn number(bytes: &mut Vec<u8>, random: &mut Random) {
    let from = random.below(bytes.len());
    let Some(digit) = bytes[from..].iter().position(u8::is_ascii_digit) else { return };
    let start = from + digit;
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + length, random.of(NUMBERS).iter().copied());
}

/// The maximum length of an input in bytes.
const MAX_LENGTH: usize = 8 * 1024;

const NUMBERS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"1e999",
    b"0.0000000001",
    b"9999999999999999999999",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775807",
    b"4294967295",
    b"NaN",
    b"-0.5",
    b"1e-9",
];

const WORDS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b":",
    b",",
    b" ",
    b"\n",
    b"\r",
    b"\n\n",
    b"\r\n\r\n",
    b"data: ",
    b"data:",
    b"event: error\n",
    b": x\n",
    b"\"error\"",
    b"\"error\":{",
    b"\"type\":\"error\"",
    b"\"message\":\"",
    b"\"usage\":{",
    b"\"usageMetadata\":{",
    b"\"prompt_tokens\":1",
    b"\"input_tokens\":2",
    b"\"eval_count\":3",
    b"null",
    b"true",
    b"\\u0065",
    b"\\ud83d",
    b"\\\"",
    b"\\\\",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3",
    b"\0",
    b"\0\0\0\x10",
    b"\xff\xff\xff\xff",
    b"s",
    b"ms",
    b"m",
    b"h",
    b"-",
    b".",
    b"Z",
    b"T",
    b"\"max_tokens\":",
    b"\"n\":",
    b"\"content\":",
    b"[[[[[[[[",
    b"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":",
    b"try again in ",
    b"2026-11-21T17:00:00Z",
];
