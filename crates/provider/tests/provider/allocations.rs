//! Scanners keep their buffers.

use allocation_counter::measure;
use paceline_provider::{Profile, Scanner};

use super::scanner_fixtures::fixtures;

#[test]
fn repeated_scan_does_not_allocate() {
    for fixture in fixtures() {
        let profile = Profile::named(fixture.profile).unwrap();
        for piece in [usize::MAX, 7] {
            let mut scanner = Scanner::new(profile, Some(fixture.content_type));
            let mut read = || fixture.body.chunks(piece).for_each(|piece| scanner.feed(piece));
            read();
            assert_eq!(
                measure(|| (0..100).for_each(|_| read())).count_total,
                0,
                "{}",
                fixture.name
            );
        }
    }
}
