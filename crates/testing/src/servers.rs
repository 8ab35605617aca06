//! Redis and NATS servers for tests, on free ports of 127.0.0.1. A server is killed when its value is
//! dropped.
#![allow(clippy::disallowed_methods, reason = "starting a real server takes real time")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::set_clock::SetClock;

/// A Redis server without persistence.
#[derive(Debug)]
pub struct Redis(ServerProcess);

impl Redis {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a server with additional arguments, such as `--maxmemory 1mb`.
    pub fn with(more: &[&str]) -> Self {
        Self::with_environment(more, &[])
    }

    /// Starts a server whose clock can be set.
    pub fn with_clock() -> (Self, SetClock) {
        let clock = SetClock::new();
        (Self::with_environment(&[], &clock.environment()), clock)
    }

    fn with_environment(more: &[&str], environment: &Environment) -> Self {
        let mut arguments = vec!["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"];
        arguments.extend(more);
        let server = ServerProcess::start("redis-server", environment, |port, folder| {
            let own = ["--port", &port.to_string(), "--dir", &folder.to_string_lossy()];
            arguments.iter().map(ToString::to_string).chain(own.map(ToOwned::to_owned)).collect()
        });
        server.wait_for("PING\r\n", "+PONG");
        Self(server)
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.0.address)
    }

    pub fn server(&mut self) -> &mut ServerProcess {
        &mut self.0
    }

    /// Restarts the server on the same port, without its data.
    pub fn restart(&mut self) {
        self.0.restart();
        self.0.wait_for("PING\r\n", "+PONG");
    }
}

/// A NATS server.
#[derive(Debug)]
pub struct Nats(ServerProcess);

impl Nats {
    pub fn start() -> Self {
        let server = ServerProcess::start("nats-server", &[], |port, _| {
            ["-a", "127.0.0.1", "-p", &port.to_string()].map(ToOwned::to_owned).to_vec()
        });
        server.wait_for("", "INFO");
        Self(server)
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.0.address)
    }

    pub fn server(&mut self) -> &mut ServerProcess {
        &mut self.0
    }

    pub fn restart(&mut self) {
        self.0.restart();
        self.0.wait_for("", "INFO");
    }
}

/// A server process.
#[derive(Debug)]
pub struct ServerProcess {
    program: &'static str,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    child: Child,
    pub address: SocketAddr,
    _folder: TempDir,
}

impl ServerProcess {
    pub(crate) fn start(
        program: &'static str,
        environment: &Environment,
        arguments: impl Fn(u16, &Path) -> Vec<String>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Another process may take the port before the server does: try another one.
        for _ in 0..20 {
            let address = free();
            let arguments = arguments(address.port(), folder.path());
            let mut child = spawn(program, &arguments, environment);
            if is_up(&mut child, address) {
                let environment = environment.to_vec();
                return Self { program, arguments, environment, child, address, _folder: folder };
            }
            let _ = child.wait();
        }
        panic!("{program} didn't start");
    }

    /// Kills the server without a clean shutdown, as a power failure would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn restart(&mut self) {
        self.kill_if_alive();
        self.child = spawn(self.program, &self.arguments, &self.environment);
        assert!(is_up(&mut self.child, self.address), "{} didn't start again", self.program);
    }

    /// Suspends the process: its connections stay open, but it doesn't respond.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Resumes a suspended process.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap();
        assert!(status.success());
    }

    fn kill_if_alive(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until a response to `question` contains `answer`.
    fn wait_for(&self, question: &str, answer: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            let mut response = [0; 1_024];
            let read = TcpStream::connect(self.address).and_then(|mut stream| {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.write_all(question.as_bytes())?;
                stream.read(&mut response)
            });
            if read.is_ok_and(|n| String::from_utf8_lossy(&response[..n]).contains(answer)) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        panic!("{} doesn't respond", self.program);
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill_if_alive();
    }
}

/// The environment variables of a server.
type Environment = [(&'static str, String)];

fn spawn(program: &str, arguments: &[String], environment: &Environment) -> Child {
    let mut command = Command::new(program);
    command.envs(environment.iter().map(|(name, value)| (*name, value)));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| {
        panic!("{program} can't be started ({error}); scripts/test.sh installs it")
    })
}

pub(crate) fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Waits until the server listens. Returns `false` if it exits or the timeout expires.
fn is_up(child: &mut Child, address: SocketAddr) -> bool {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        if TcpStream::connect(address).is_ok() {
            return child.try_wait().unwrap().is_none();
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    false
}

/// The timeout of a start, generous because other tests keep the machine busy.
const TIMEOUT: Duration = Duration::from_secs(20);
