use paceline_limiter::quota::Dimension;
use paceline_limiter::seam;

/// Returns the stored name of a dimension. Custom dimensions have a prefix, so that their names
/// can't collide with built-in ones.
pub(super) fn write(dimension: &Dimension) -> String {
    match dimension {
        Dimension::Custom(name) => format!("{CUSTOM}{name}"),
        known => known.as_str().to_owned(),
    }
}

/// Parses the stored name of a dimension.
pub(super) fn read(text: &str) -> Option<Dimension> {
    let custom = text.strip_prefix(CUSTOM).map(Dimension::custom);
    custom.or_else(|| seam::DIMENSIONS.into_iter().find(|known| known.as_str() == text))
}

const CUSTOM: &str = "custom:";
