//! middleware
