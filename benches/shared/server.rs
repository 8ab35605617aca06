use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cmd;

use super::delay::delayed;

/// The CPU time of the server: seconds in total, microseconds in scripts, and the number of script calls.
pub(crate) struct ServerTime {
    pub(crate) cpu: f64,
    pub(crate) script: f64,
    pub(crate) calls: u64,
    /// The number of writes of hashes, in scripts too.
    pub(crate) writes: u64,
}

impl ServerTime {
    pub(crate) async fn read(redis: &mut MultiplexedConnection) -> Self {
        let read = |section: &str| cmd("INFO").arg(section).clone();
        let cpu: String = read("cpu").query_async(redis).await.unwrap();
        let commands: String = read("commandstats").query_async(redis).await.unwrap();
        let field = |text: &str, name: &str, end: &[char]| {
            let rest = text.split(name).nth(1)?;
            rest.split(end).next()?.trim().parse::<f64>().ok()
        };
        let of = |command: &str| {
            let line = commands.lines().find(|line| line.starts_with(command)).unwrap_or_default();
            let calls = field(line, "calls=", &[',']).unwrap_or(0.0);
            (calls, field(line, "usec=", &[',']).unwrap_or(0.0))
        };
        let all = ["evalsha", "eval", "incrby"].map(|name| of(&format!("cmdstat_{name}:")));
        let second = |name| field(&cpu, name, &['\r', '\n']).unwrap_or(0.0);
        Self {
            cpu: second("used_cpu_user:") + second("used_cpu_sys:"),
            script: all.iter().map(|of| of.1).sum(),
            calls: all.iter().map(|of| of.0).sum::<f64>() as u64,
            writes: of("cmdstat_hset:").0 as u64,
        }
    }
}

/// A Redis server process, killed on drop.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no"]).stdout(Stdio::null());
        let child = command.spawn().expect("redis-server is installed");
        Self { child, port }
    }

    fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Returns the address at a round trip, through a proxy that delays.
    pub(crate) fn url_at(&self, round_trip: Duration) -> String {
        if round_trip.is_zero() {
            return self.url();
        }
        format!("redis://{}", delayed(self.address(), round_trip))
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn connect(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.url()).unwrap();
        loop {
            if let Ok(connection) = client.get_multiplexed_async_connection().await {
                return connection;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
