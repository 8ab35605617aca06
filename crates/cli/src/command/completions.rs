use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::output::Output;
use super::{Cli, Exit};

/// The arguments of `tollgate completions`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell that is to complete
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

impl CompletionsArgs {
    /// # Errors
    /// Says why `out` can't be written to.
    pub(super) fn run(&self, out: &mut Output<'_>) -> Result<Exit, String> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tollgate", &mut script);
        out.write(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Success)
    }
}

pub(super) const ABOUT: &str = "\
Print a script by which a shell completes tollgate's commands and options.";

const EXAMPLES: &str = "\
Examples:
  bash, for this user:
    tollgate completions bash > ~/.local/share/bash-completion/completions/tollgate

  zsh, in a folder of $fpath:
    tollgate completions zsh > ~/.zfunc/_tollgate

  fish:
    tollgate completions fish > ~/.config/fish/completions/tollgate.fish

  PowerShell, in $PROFILE:
    tollgate completions powershell | Out-String | Invoke-Expression

Exit codes:
  0    the script was printed
  2    no such shell, or standard output can't be written to";
