//! Models.
#![cfg(shuttle)]
