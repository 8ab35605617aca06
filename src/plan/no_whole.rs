use compact_str::CompactString;

/// Without the feature `regex` there is none.
#[derive(Debug)]
pub(crate) enum Whole {}

impl Whole {
    pub(crate) fn of(_: &str) -> Option<Self> {
        None
    }

    pub(crate) fn name(&self) -> &CompactString {
        match *self {}
    }

    pub(crate) fn matches(&self, _: &str) -> bool {
        match *self {}
    }
}
