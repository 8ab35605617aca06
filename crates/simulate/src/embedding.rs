//! Embeddings: vectors of length 1 with equal components.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns an embedding with this number of components, within a maximum.
pub(super) fn vector(dimensions: u64) -> Vec<f32> {
    let dimensions = dimensions.clamp(1, MAX_DIMENSIONS);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a few thousand"
    )]
    let component = (1.0 / (dimensions as f64).sqrt()) as f32;
    (0..dimensions).map(|_| component).collect()
}

/// Returns an embedding as little-endian `f32` in Base64.
pub(super) fn base64(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|component| component.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

/// More than any model has.
const MAX_DIMENSIONS: u64 = 16_384;
