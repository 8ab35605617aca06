//! An exhaustive search through the states of a model.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// A system whose steps are chosen in every possible way.
pub(super) trait Model {
    type State: Clone + Debug + Eq + Hash;
    type Step: Copy + Debug;

    fn start(&self) -> Self::State;

    /// Returns the steps that are possible in a state.
    fn steps(&self, state: &Self::State) -> Vec<Self::Step>;

    /// Returns the next state.
    ///
    /// # Errors
    /// Returns the property that the step violates.
    fn take(&self, state: &Self::State, step: Self::Step) -> Result<Self::State, &'static str>;
}

/// The result of a search.
#[derive(Debug)]
pub(super) enum Found<S> {
    /// No reachable state violates a property; contains the number of states.
    Nothing(usize),
    /// The property that is violated by these steps, of which there are as few as possible.
    Violation(&'static str, Vec<S>),
}

/// Visits all reachable states, in order of their distance from the start.
pub(super) fn search<M: Model>(model: &M) -> Found<M::Step> {
    let start = model.start();
    let mut known = HashMap::from([(start.clone(), 0)]);
    // Each state with its predecessor and the step from there.
    let mut states = vec![(start, None)];
    let mut next = 0;
    while next < states.len() {
        let state = states[next].0.clone();
        let steps = model.steps(&state);
        assert!(!steps.is_empty(), "a dead end: {state:?}");
        for step in steps {
            let reached = match model.take(&state, step) {
                Ok(reached) => reached,
                Err(property) => return Found::Violation(property, path(&states, next, step)),
            };
            if !known.contains_key(&reached) {
                known.insert(reached.clone(), states.len());
                states.push((reached, Some((next, step))));
            }
        }
        next += 1;
    }
    Found::Nothing(states.len())
}

fn path<S, Step: Copy>(states: &[(S, Option<(usize, Step)>)], at: usize, last: Step) -> Vec<Step> {
    let mut steps = vec![last];
    let mut at = at;
    while let Some((previous, step)) = states[at].1 {
        steps.push(step);
        at = previous;
    }
    steps.reverse();
    steps
}
