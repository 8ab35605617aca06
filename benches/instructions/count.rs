//! The harness of the counted programs.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Runs the case that the argument names. Without one, prints the names of all cases, each with the
/// number of its operations that are counted.
pub(crate) fn run(cases: &[(&str, fn())]) {
    let Some(wanted) = std::env::args().nth(1) else {
        cases.iter().for_each(|(name, _)| println!("{name} {OPERATIONS}"));
        return;
    };
    let (_, case) = cases.iter().find(|(name, _)| *name == wanted).expect("a known case");
    case();
}

/// Runs an operation a few times, so that what the first ones allocate is there, and then counted.
pub(crate) fn count(mut operation: impl FnMut()) {
    (0..WARM_UP).for_each(|_| operation());
    counted_operations(&mut operation);
}

/// The function whose instructions valgrind counts, with those of its callees: found by its name.
#[inline(never)]
fn counted_operations(operation: &mut dyn FnMut()) {
    for _ in 0..OPERATIONS {
        operation();
    }
}

/// The result of a future that has nothing to wait for; a runtime would add instructions of its own.
pub(crate) fn poll_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a counted operation waits"),
    }
}

const OPERATIONS: usize = 100;
const WARM_UP: usize = 20;
