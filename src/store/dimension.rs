use crate::quota::Dimension;

/// A dimension as a file keeps it: one of the caller's own may have any name, ours too.
pub(super) fn write(dimension: &Dimension) -> String {
    match dimension {
        Dimension::Custom(name) => format!("{CUSTOM}{name}"),
        known => known.as_str().to_owned(),
    }
}

/// The dimension that was written as this.
pub(super) fn read(text: &str) -> Option<Dimension> {
    let custom = text.strip_prefix(CUSTOM).map(Dimension::custom);
    custom.or_else(|| Dimension::KNOWN.into_iter().find(|known| known.as_str() == text))
}

const CUSTOM: &str = "custom:";
