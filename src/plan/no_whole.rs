use crate::quota::Key;

/// Without the feature `regex` there is none.
#[derive(Debug)]
pub(crate) enum Whole {}

impl Whole {
    pub(crate) fn of(_: &str) -> Option<Self> {
        None
    }

    pub(crate) fn name(&self) -> &Key {
        match *self {}
    }

    pub(crate) fn matches(&self, _: &str) -> bool {
        match *self {}
    }
}
