//! `tollgate serve` as a process of its own, watched from outside.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;

use crate::cli::rig::{Home, Running};

/// A server that doesn't outlive its test.
pub(crate) struct Served {
    running: Running,
    addr: SocketAddr,
    _home: Home,
}

impl Served {
    /// Starts one with this configuration, on a free port; it listens.
    pub(crate) fn start(config: &str) -> Self {
        let home = Home::new();
        home.write("tollgate.yaml", config);
        let mut command = home.tollgate("serve --config tollgate.yaml --port 0");
        let mut running = Running::start(command.stderr(Stdio::null()));
        let stdout = running.child().stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
        let addr = line.trim().strip_prefix("listening on http://").expect("an address");
        let addr = addr.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        Self { running, addr, _home: home }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Bytes of memory that it has of the machine.
    pub(crate) fn memory(&mut self) -> u64 {
        let path = format!("/proc/{}/status", self.running.child().id());
        let status = std::fs::read_to_string(path).expect("it runs, on Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.expect("Linux says so in kB") * 1024
    }

    /// Whether it has not ended, by itself or by a panic.
    pub(crate) fn is_running(&mut self) -> bool {
        self.running.child().try_wait().expect("it can be asked").is_none()
    }
}
