use std::sync::LazyLock;

use redis::{Cmd, Script};

/// The text of a script and its hash.
#[derive(Debug)]
pub(super) struct ScriptText {
    text: String,
    hash: String,
}

impl ScriptText {
    pub(super) fn new(text: String) -> Self {
        let hash = Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }

    /// Returns a command by hash; a `NOSCRIPT` error means that the server does not know the script
    /// yet.
    pub(super) fn by_hash(&self) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hash);
        command
    }

    /// Returns a command with the text, after which the server knows the script.
    pub(super) fn by_text(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(&self.text);
        command
    }
}

/// The production script, which reads only the server's clock; tests substitute another one.
pub(super) static TEXT: LazyLock<ScriptText> = LazyLock::new(|| ScriptText::new(SOURCES.concat()));

pub(super) const SOURCES: [&str; 15] = [
    include_str!("lua/call.lua"),
    include_str!("lua/fast_path.lua"),
    include_str!("lua/lease_path.lua"),
    include_str!("lua/numbers.lua"),
    include_str!("lua/token.lua"),
    include_str!("lua/concurrency.lua"),
    include_str!("lua/sliding.lua"),
    include_str!("lua/windows.lua"),
    include_str!("lua/parts.lua"),
    include_str!("lua/turns.lua"),
    include_str!("lua/tickets.lua"),
    include_str!("lua/times.lua"),
    include_str!("lua/operations.lua"),
    include_str!("lua/lease.lua"),
    include_str!("lua/run.lua"),
];
