//! A `paceline serve` process.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::cli::rig::{CommandOutput, TestHome};
use paceline_testing::process::InteractiveProcess;

/// A server that is killed at the end of its test.
pub(crate) struct Served {
    process: InteractiveProcess,
    addr: SocketAddr,
    home: Option<TestHome>,
}

impl Served {
    /// Starts a server with a configuration on a free port.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_in(TestHome::new(), config, |_| ())
    }

    /// Starts a server in an existing home; `set` changes the command.
    pub(crate) fn start_in(home: TestHome, config: &str, set: impl FnOnce(&mut Command)) -> Self {
        home.write("paceline.yaml", config);
        let mut command = home.paceline("serve --config paceline.yaml --port 0");
        set(command.stderr(Stdio::null()));
        Self { home: Some(home), ..Self::spawn(&mut command) }
    }

    /// Starts a server with this command.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut process = InteractiveProcess::start(command);
        let line = process.read_line().expect("the server prints its address");
        let addr = line.strip_prefix("listening on http://").expect("an address");
        let addr = addr.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        Self { process, addr, home: None }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Returns the content of a file in its home, once it contains `text`: the log is written by a thread.
    pub(crate) fn read_with(&self, name: &str, text: &str) -> String {
        let path = self.home.as_ref().expect("a server with a home").path(name);
        loop {
            let content = std::fs::read_to_string(&path).expect("a text file");
            if content.contains(text) {
                return content;
            }
            std::thread::yield_now();
        }
    }

    pub(crate) fn process(&mut self) -> &mut InteractiveProcess {
        &mut self.process
    }

    /// Returns the resident memory of the process, in bytes.
    pub(crate) fn memory(&mut self) -> u64 {
        let path = format!("/proc/{}/status", self.process.guard().get_mut().id());
        let status = std::fs::read_to_string(path).expect("a running process on Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.expect("VmRSS in kB") * 1024
    }

    /// Returns true while the process runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.process.guard().get_mut().try_wait().expect("the process status is readable").is_none()
    }

    /// Sends SIGTERM and waits for a successful exit.
    #[cfg(unix)]
    pub(crate) fn terminate(mut self) {
        self.process.guard().signal("-TERM");
        let output = self.ended();
        assert_eq!(output.code, Some(0), "{output:?}");
    }

    /// Waits for the end of the process. Returns its exit code and the output that was not read yet.
    #[cfg(unix)]
    pub(crate) fn ended(self) -> CommandOutput {
        CommandOutput::from(self.process.output())
    }
}
