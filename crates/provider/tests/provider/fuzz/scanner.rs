//! Response bodies yield the same result however they are split, and little of them is buffered.

use paceline_provider::{Profile, Scanned, Scanner};

use crate::scanner_fixtures::fixtures;
use paceline_testing::fuzz::Random;
use paceline_testing::fuzz::fuzz;

#[test]
fn response_bodies_split_anywhere_yield_the_same_result() {
    let profile = |name| Profile::all().iter().position(|p| p.name() == name).unwrap() as u8;
    let seeds: Vec<_> = fixtures()
        .into_iter()
        .map(|fixture| [vec![profile(fixture.profile), 0], fixture.body].concat())
        .collect();
    fuzz("scanner", &seeds, |input| {
        let [profile, kind, body @ ..] = input else { return };
        let profile = Profile::all()[usize::from(*profile) % Profile::all().len()];
        let kind = KINDS[usize::from(*kind) % KINDS.len()];
        let whole = scan(profile, kind, body, || usize::MAX);
        let mut random = Random(body.len() as u64);
        for longest in [1, 7, 90] {
            let cut = scan(profile, kind, body, || 1 + random.below(longest));
            assert_eq!(cut, whole, "{profile:?}, pieces of {longest} or less");
        }
    });
}

fn scan(
    profile: Profile,
    kind: Option<&str>,
    mut body: &[u8],
    mut piece: impl FnMut() -> usize,
) -> Scanned {
    let mut scanner = Scanner::new(profile, kind);
    while !body.is_empty() {
        let (head, tail) = body.split_at(piece().min(body.len()));
        scanner.feed(head);
        assert!(scanner.held_bytes() < BOUND, "{} bytes held", scanner.held_bytes());
        body = tail;
    }
    let usage = scanner.usage();
    let scanned = scanner.finish();
    assert_eq!(scanned.usage, usage);
    scanned
}

const KINDS: &[Option<&str>] =
    &[None, Some("application/json"), Some("text/event-stream"), Some("application/x-ndjson")];

/// The maximum size of a scanner's buffers, in bytes.
const BOUND: usize = 8 * 1024;
