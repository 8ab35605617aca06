use clap::{Args, Command};
use clap_complete::Shell;

use super::exit::Exit;
use super::stdout::Stdout;

/// The arguments of `paceline completions`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

impl CompletionsArgs {
    /// Runs the command and prints its output.
    ///
    /// # Errors
    /// Returns an error of standard output.
    pub(super) fn run(&self, mut command: Command, out: &mut Stdout<'_>) -> Result<Exit, String> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "paceline", &mut script);
        out.write(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Success)
    }
}

pub(super) const ABOUT: &str = "\
Generate a completion script for a shell.

The script completes the commands and options of paceline. It is printed to standard output.";

const EXAMPLES: &str = "\
Examples:
  bash, for the current user:
    paceline completions bash > ~/.local/share/bash-completion/completions/paceline

  zsh, in a directory of $fpath:
    paceline completions zsh > ~/.zfunc/_paceline

  fish:
    paceline completions fish > ~/.config/fish/completions/paceline.fish

  PowerShell, in $PROFILE:
    paceline completions powershell | Out-String | Invoke-Expression

Exit codes:
  0    the script was printed
  2    unknown shell, or standard output can't be written";
