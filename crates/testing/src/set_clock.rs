//! A library that a server preloads, so that a test can set the server's clock. It replaces the C
//! library's functions for the time of day (monotonic clocks are unchanged); libfaketime crashes
//! Redis, whose allocator reads the clock before libraries are initialized.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The clock of a server process, with an offset to the machine's clock.
#[derive(Debug)]
pub struct SetClock(TempDir);

impl SetClock {
    /// Compiles the library with the C compiler that Rust links with.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-O2", "-x", "c", "-o"])
            .arg(folder.path().join("clock.so"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/set_clock.c");
        let status = compiler.arg(source).stdin(Stdio::null()).status().unwrap();
        assert!(status.success());
        let clock = Self(folder);
        clock.set_offset(0);
        clock
    }

    /// Sets the clock to this many seconds after the machine's clock.
    pub fn set_offset(&self, seconds: i64) {
        // A rename replaces the file at once, so that no reader sees an empty one.
        let (new, file) = (self.0.path().join("new"), self.0.path().join("offset"));
        std::fs::write(&new, seconds.to_string()).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    /// Returns the environment of a process with this clock.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let path = |name| self.0.path().join(name).to_string_lossy().into_owned();
        vec![("LD_PRELOAD", path("clock.so")), ("CLOCK_OFFSET", path("offset"))]
    }
}
