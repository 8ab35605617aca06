//! Child processes of tests.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A child process that is killed when the guard is dropped.
#[derive(Debug)]
pub struct ChildGuard(Option<Child>);

impl ChildGuard {
    pub fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("the process starts")))
    }

    pub fn get_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("the process has not been waited for")
    }

    /// Sends a signal, named as an option of `kill`: `-INT`.
    #[cfg(unix)]
    pub fn signal(&mut self, signal: &str) {
        let id = self.get_mut().id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.expect("`kill` is installed").success());
    }

    /// Waits until the process exits, and returns its status and unread output.
    pub fn output(mut self) -> Output {
        let child = self.0.take().expect("the process has not been waited for");
        child.wait_with_output().expect("the process exits")
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A child process with which a test exchanges lines.
#[derive(Debug)]
pub struct InteractiveProcess {
    guard: ChildGuard,
    stdout: BufReader<ChildStdout>,
}

impl InteractiveProcess {
    pub fn start(command: &mut Command) -> Self {
        let mut guard = ChildGuard::start(command.stdout(Stdio::piped()));
        let stdout = guard.get_mut().stdout.take().expect("standard output is piped");
        Self { guard, stdout: BufReader::new(stdout) }
    }

    /// Reads the next line of its standard output; `None` at the end, or if the last line is incomplete.
    pub fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the output is UTF-8");
        line.strip_suffix('\n').map(str::to_owned)
    }

    /// Reads the next line that the process prints with [`print_message`]; `None` at the end.
    pub fn read_message(&mut self) -> Option<String> {
        loop {
            if let Some(message) = self.read_line()?.strip_prefix('#') {
                return Some(message.to_owned());
            }
        }
    }

    /// Writes a line to its standard input, which must be piped.
    pub fn write_line(&mut self, line: &str) {
        let stdin = self.guard.get_mut().stdin.as_mut().expect("standard input is piped");
        writeln!(stdin, "{line}").expect("the process reads its standard input");
    }

    pub fn kill(&mut self) {
        self.guard.get_mut().kill().expect("the process exists");
    }

    pub fn guard(&mut self) -> &mut ChildGuard {
        &mut self.guard
    }

    /// Waits until the process exits, and returns its status and unread output.
    pub fn output(mut self) -> Output {
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).expect("the output is readable");
        Output { stdout: rest, ..self.guard.output() }
    }
}

/// Returns a command that runs a single test of the current test program in a new process.
///
/// `module` is the test's `module_path!()`. The process gets the environment variable `variable`, by
/// which the test knows that it is the child. Its standard input is piped.
pub fn test_command(module: &str, test: &str, variable: &str, value: impl AsRef<OsStr>) -> Command {
    let (_program, module) = module.split_once("::").expect("a module of this program");
    let mut command = Command::new(std::env::current_exe().expect("the path of the test program"));
    command.args(["--exact", &format!("{module}::{test}"), "--nocapture"]);
    command.env(variable, value).stdin(Stdio::piped());
    command
}

/// Appends `command` to the arguments of `runner`, such as `sudo` or a shell, with its environment.
pub fn wrap_command(mut runner: Command, command: &Command) -> Command {
    runner.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    runner.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    runner
}

/// Returns a command whose files can hold only 8 blocks of 512 bytes. A write beyond that fails in the
/// middle, as on a full disk.
#[cfg(unix)]
pub fn with_full_disk(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"trap "" XFSZ; ulimit -f 8; exec "$0" "$@""#]);
    wrap_command(shell, command)
}

/// Prints a line for [`InteractiveProcess::read_message`], on a line separate from the test harness'
/// own output.
pub fn print_message(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n#{line}").and_then(|()| out.flush()).expect("the parent reads the output");
}
