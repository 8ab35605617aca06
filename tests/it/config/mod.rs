//! The configuration file.

mod watch;
