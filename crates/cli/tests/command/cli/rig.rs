//! A separate home directory for each process.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use paceline_testing::process::ChildGuard;

/// A temporary home directory: the command reads and writes only there.
pub(crate) struct TestHome(TempDir);

/// The exit code and output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestHome {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file in the home, which is also the working directory of the command.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("the file is written");
        path
    }

    /// Returns the `paceline` command with these arguments, separated by spaces.
    pub(crate) fn paceline(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
        command.current_dir(self.0.path()).args(arguments.split_whitespace());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PACELINE_") {
                command.env_remove(name);
            }
        }
        for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"] {
            command.env_remove(key);
        }
        command.env("HOME", self.0.path());
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_STATE_HOME", self.path("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> CommandOutput {
        output_of(&mut self.paceline(arguments))
    }
}

/// Runs a command to its end.
pub(crate) fn output_of(command: &mut Command) -> CommandOutput {
    CommandOutput::from(command.output().expect("the command runs"))
}

/// Runs a command to its end with this standard input.
pub(crate) fn run_with_input(command: &mut Command, input: &[u8]) -> CommandOutput {
    let mut running = ChildGuard::start(command.stdin(Stdio::piped()));
    // The command may close its input early.
    let _ = running.get_mut().stdin.take().expect("a pipe").write_all(input);
    ended(running)
}

/// Waits for the end of a command.
pub(crate) fn ended(child: ChildGuard) -> CommandOutput {
    CommandOutput::from(child.output())
}

impl CommandOutput {
    /// Parses stdout as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        Self { code: output.status.code(), stdout, stderr }
    }
}
