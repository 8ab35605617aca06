use std::process::ExitCode;

/// How the command ended, as its exit code.
///
/// | code | every command | what it is |
/// |---|---|---|
/// | 0 | done | all requests succeeded; allowed; nothing wrong with the file |
/// | 1 | done, but | some requests failed; refused; no such key |
/// | 2 | stopped | wrong arguments, a file that can't be used, no request could have succeeded, too long a wait |
/// | 130 | interrupted | Ctrl-C; the same command goes on where it stopped |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// 0: done; allowed; all requests succeeded, in this run or an earlier one.
    Success,
    /// 1: the run came to its end, but some requests failed.
    SomeFailed,
    /// 1: the request would not be let in now.
    Refused,
    /// 1: there is nothing of that name.
    Missing,
    /// 1: the server has stopped, but its state could not be saved.
    Unsaved,
    /// 2: wrong arguments, files that can't be used, or a run that was stopped because no request
    /// could have succeeded (401, no credit left) or because the server or a limit took too long.
    Stopped,
    /// 130: interrupted by Ctrl-C; the same command goes on where it stopped.
    Interrupted,
}

impl Exit {
    /// The code.
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

/// The same for `--help`.
pub(super) const AFTER: &str = "\
Run `tollgate COMMAND --help` for details and examples.

Exit codes:
  0    success: all requests succeeded, the request would be allowed, the file is valid
  1    completed with failures: some requests failed, the request would be refused, no such key
  2    error: wrong arguments, an unusable file, or a run that had to stop
  130  interrupted by Ctrl-C

Data goes to standard output, everything else to standard error. Errors start with `tollgate:`.

Files:
  $XDG_CONFIG_HOME/tollgate/config.yaml   configuration, optional [else ~/.config/tollgate]
  $XDG_STATE_HOME/tollgate/state.db       state [else ~/.local/state/tollgate]

Environment:
  TOLLGATE_CONFIG               configuration file
  TOLLGATE_<SECTION>__<FIELD>   overrides a value of the file, e.g. TOLLGATE_STORE__FLUSH=2s
  NO_COLOR                      disables colors";
