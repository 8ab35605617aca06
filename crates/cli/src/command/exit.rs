use std::fmt::Display;
use std::process::ExitCode;

use crate::terminal::notify;

/// The exit code of the command.
///
/// | code | meaning | examples |
/// |---|---|---|
/// | 0 | success | all requests succeeded; allowed; the file is valid |
/// | 1 | completed with failures | some requests failed; refused; no such key |
/// | 2 | error | wrong arguments, an unusable file, a run that had to stop |
/// | 130 | interrupted | Ctrl-C; run the same command again to continue |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// 0: success.
    Success,
    /// 1: some requests failed.
    SomeFailed,
    /// 1: the request would be refused.
    Refused,
    /// 1: no such key or file.
    Missing,
    /// 1: the server stopped, but its state could not be saved.
    Unsaved,
    /// 2: wrong arguments, unusable files, or a run that had to stop (401, no credit left, a wait
    /// or outage that is too long).
    Stopped,
    /// 130: interrupted by Ctrl-C.
    Interrupted,
}

impl Exit {
    /// Returns the code.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::SomeFailed | Self::Refused | Self::Missing | Self::Unsaved => 1,
            Self::Stopped => 2,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Prints the error that stopped a command, and returns its exit code.
pub(super) fn stopped(message: &dyn Display) -> Exit {
    notify(message);
    Exit::Stopped
}

/// Returns the message of an error that stops a command.
pub(super) fn text(error: impl Display) -> String {
    error.to_string()
}

/// The end of `--help`.
pub(super) const AFTER_HELP: &str = "\
Run `paceline COMMAND --help` for details and examples.

Examples:
  Send a file of requests to the simulated provider, without an API key:
    paceline batch prompts.jsonl -o trial.jsonl --simulate

  Send it to OpenAI within your limits:
    OPENAI_API_KEY=... paceline batch prompts.jsonl -o results.jsonl --rpm 500 --tpm 30000

  Run the server and proxy, and show the usage of its limits:
    paceline serve --config paceline.yaml &
    paceline show --config paceline.yaml

Exit codes:
  0    success: all requests succeeded, the request would be allowed, the file is valid
  1    completed with failures: some requests failed, the request would be refused, no such key
  2    error: wrong arguments, an unusable file, or a run that had to stop
  130  interrupted by Ctrl-C

Data goes to standard output, everything else to standard error. Errors start with `paceline:`.

Files:
  $XDG_CONFIG_HOME/paceline/config.yaml   configuration, optional [else ~/.config/paceline]
  $XDG_STATE_HOME/paceline/state.db       state [else ~/.local/state/paceline]

Environment:
  PACELINE_CONFIG               configuration file
  PACELINE_<SECTION>__<FIELD>   overrides a value of the file, e.g. PACELINE_STORE__FLUSH=2s
  NO_COLOR                      disables colors";
