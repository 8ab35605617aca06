use std::process::ExitCode;

/// How the command ended, as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// 0: all requests succeeded, in this run or an earlier one.
    Success,
    /// 1: the run came to its end, but some requests failed.
    SomeFailed,
    /// 2: wrong arguments, files that can't be used, or a run that was stopped because no request
    /// could have succeeded (401, no credit left).
    Stopped,
    /// 130: interrupted by Ctrl-C; the same command goes on where it stopped.
    Interrupted,
}

impl Exit {
    /// The code.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::SomeFailed => 1,
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
