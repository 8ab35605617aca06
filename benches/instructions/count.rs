//! The harness for instruction counts.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Runs the case named by the argument. Without an argument, prints the names of all cases with their
/// numbers of counted operations.
pub(crate) fn run(cases: &[(&str, fn())]) {
    let Some(wanted) = std::env::args().nth(1) else {
        cases.iter().for_each(|(name, _)| println!("{name} {OPERATIONS}"));
        return;
    };
    let (_, case) = cases.iter().find(|(name, _)| *name == wanted).expect("a known case");
    case();
}

/// Runs an operation a few times to warm up, and then runs the counted operations.
pub(crate) fn count(mut operation: impl FnMut()) {
    (0..WARM_UP).for_each(|_| operation());
    counted_operations(&mut operation);
}

/// Runs the counted operations. Valgrind counts the instructions of this function, found by its name, and
/// of its callees.
#[inline(never)]
fn counted_operations(operation: &mut dyn FnMut()) {
    for _ in 0..OPERATIONS {
        operation();
    }
}

/// Polls a future that completes immediately. Avoids the instructions of a runtime.
pub(crate) fn poll_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a counted operation waits"),
    }
}

const OPERATIONS: usize = 100;
const WARM_UP: usize = 20;
