use compact_str::CompactString;

/// Without the feature `regex` there is none.
#[derive(Debug)]
pub(super) enum Whole {}

impl Whole {
    pub(super) fn of(_: &str) -> Option<Self> {
        None
    }

    pub(super) fn name(&self) -> &CompactString {
        match *self {}
    }

    pub(super) fn matches(&self, _: &str) -> bool {
        match *self {}
    }
}
