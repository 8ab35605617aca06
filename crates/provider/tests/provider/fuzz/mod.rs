//! Fuzz targets: the readers of external bytes, run on mutated seeds.
//!
//! Each target is a test that runs two thousand mutated seeds, the same ones each time.
//! `PACELINE_FULL=1 cargo nextest run --release -p paceline-provider fuzz` runs a hundred
//! thousand; `PACELINE_FUZZ_SEED=n` starts from another random seed. An input that fails is printed
//! as a byte string, to be added as a test next to the reader.
//!
//! A new target is a file with a test that passes to [`fuzz`](paceline_testing::fuzz::fuzz) its
//! seeds (small ones, at least one of each kind) and a function of bytes that panics on an error.
//! The mutations know JSON, events, headers and numbers; they are not guided by coverage.

mod errors;
mod headers;
mod requests;
mod scanner;
