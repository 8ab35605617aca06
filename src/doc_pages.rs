//! The Rust blocks of the pages for users, as doctests.

#[doc = include_str!("../README.md")]
struct Readme;
#[doc = include_str!("../docs/cluster.md")]
struct Cluster;
#[doc = include_str!("../docs/coming-from.md")]
struct ComingFrom;
#[doc = include_str!("../docs/providers.md")]
struct Providers;
