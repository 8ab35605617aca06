//! tollgate keeps programs inside the limits of LLM APIs, and services inside their own.

pub mod engine;
pub mod limiter;
#[cfg(feature = "tower")]
pub mod middleware;
pub mod provider;
pub mod quota;

#[cfg(feature = "simulate")]
pub mod simulate;

#[cfg(feature = "cli")]
pub mod batch;
#[cfg(feature = "cli")]
pub mod cli;

#[cfg(all(doctest, feature = "reqwest"))]
#[doc = include_str!("../README.md")]
struct Readme;
