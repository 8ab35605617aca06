//! limiter
