use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;

/// Compresses what is long, for who accepts that (gzip). Not around streams of events, each of which is
/// to arrive at once, and not around what passes to its client unchanged.
pub(super) fn compressed() -> CompressionLayer<SizeAbove> {
    CompressionLayer::new().compress_when(SizeAbove::new(LONG))
}

/// In bytes: what is shorter goes in one packet anyway.
const LONG: u64 = 1_024;
