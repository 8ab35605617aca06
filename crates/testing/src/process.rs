//! Processes that tests start, listen to and end.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A process that doesn't outlive its test.
#[derive(Debug)]
pub struct Running(Option<Child>);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("it runs")))
    }

    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it is waited for once")
    }

    /// As `kill` sends it, by its name there: `-INT`.
    #[cfg(unix)]
    pub fn signal(&mut self, signal: &str) {
        let id = self.child().id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("there is a `kill`").success());
    }

    /// Waits until it has ended by itself: how, and what it said that nobody has heard yet.
    pub fn output(mut self) -> Output {
        let child = self.0.take().expect("it is waited for once");
        child.wait_with_output().expect("it ends")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// One that is talked with, line by line.
#[derive(Debug)]
pub struct Talking {
    running: Running,
    from: BufReader<ChildStdout>,
}

impl Talking {
    pub fn start(command: &mut Command) -> Self {
        let mut running = Running::start(command.stdout(Stdio::piped()));
        let stdout = running.child().stdout.take().expect("it is piped");
        Self { running, from: BufReader::new(stdout) }
    }

    /// The next line that it writes; `None` when it has ended, in the middle of a line or not.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("it writes text");
        line.strip_suffix('\n').map(str::to_owned)
    }

    /// Returns the next line that a [`role`] prints with [`say`]; `None` when it has ended.
    pub fn hear(&mut self) -> Option<String> {
        loop {
            if let Some(said) = self.line()?.strip_prefix('#') {
                return Some(said.to_owned());
            }
        }
    }

    /// Tells it a line, if its standard input is piped.
    pub fn tell(&mut self, line: &str) {
        let to = self.running.child().stdin.as_mut().expect("it is piped");
        writeln!(to, "{line}").expect("it listens");
    }

    pub fn kill(&mut self) {
        self.running.child().kill().expect("it is there");
    }

    pub fn running(&mut self) -> &mut Running {
        &mut self.running
    }

    /// Waits until it has ended by itself: how, and what it said that nobody has heard yet.
    pub fn output(mut self) -> Output {
        let mut rest = Vec::new();
        self.from.read_to_end(&mut rest).expect("it can be read");
        Output { stdout: rest, ..self.running.output() }
    }
}

/// This program once more, as one of its tests alone: that of this module and name, which is to do
/// something else where a variable tells it what. Its standard input is piped.
pub fn role((module, test): (&str, &str), variable: &str, told: impl AsRef<OsStr>) -> Command {
    let (_program, module) = module.split_once("::").expect("a module of this program");
    let mut command = Command::new(std::env::current_exe().expect("this test is a program"));
    command.args(["--exact", &format!("{module}::{test}"), "--nocapture"]);
    command.env(variable, told).stdin(Stdio::piped());
    command
}

/// A command as another runs it: the words of the one stand behind those of the other.
pub fn run_by(mut runner: Command, command: &Command) -> Command {
    runner.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    runner.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    runner
}

/// A command whose files hold 8 blocks of 512 bytes and no more, as on a full disk: a write breaks off in
/// the middle.
#[cfg(unix)]
pub fn on_a_full_disk(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"trap "" XFSZ; ulimit -f 8; exec "$0" "$@""#]);
    run_by(shell, command)
}

/// One line, past what the test harness holds back.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n#{line}").and_then(|()| out.flush()).expect("somebody listens");
}
