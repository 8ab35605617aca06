//! Two machines as network namespaces, with a link that is cut.

use paceline::Timestamp;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::fleet::{BURST, RPM, Sent, Worker, excess};
use paceline_testing::full::full_or;
use paceline_testing::process::wrap_command;

/// Two namespaces with a link, removed on drop.
struct Machines {
    names: [String; 2],
    redis: Option<Child>,
}

impl Machines {
    /// Creates the namespaces; returns `None` if the system does not permit them.
    fn start() -> Option<Self> {
        let names = ["a", "b"].map(|name| format!("paceline-{}-{name}", std::process::id()));
        let [a, b] = &names;
        let machines = Self { names: names.clone(), redis: None };
        let ends = [format!("tg{}a", std::process::id()), format!("tg{}b", std::process::id())];
        let commands = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("link add {} type veth peer name {}", ends[0], ends[1]),
            format!("link set {} netns {a} name cable", ends[0]),
            format!("link set {} netns {b} name cable", ends[1]),
            format!("-n {a} addr add {NEAR}/24 dev cable"),
            format!("-n {b} addr add {FAR}/24 dev cable"),
            format!("-n {a} link set lo up"),
            format!("-n {b} link set lo up"),
            format!("-n {a} link set dev cable up"),
            format!("-n {b} link set dev cable up"),
        ];
        commands.iter().all(|command| run_ip(command)).then_some(machines)
    }

    /// Starts Redis on the first machine, and waits until the second one can reach it.
    fn start_redis(&mut self) {
        let mut redis = self.on(0);
        redis.args(["redis-server", "--bind", NEAR, "--port", "6379", "--protected-mode", "no"]);
        redis.args(["--save", "", "--appendonly", "no", "--dir", "/tmp"]);
        self.redis = Some(redis.stdout(Stdio::null()).spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let output = self.on(1).args(["redis-cli", "-h", NEAR, "ping"]).output().unwrap();
            if output.stdout.starts_with(b"PONG") {
                return;
            }
            assert!(Instant::now() < until, "redis-server doesn't respond over the link");
        }
    }

    /// Returns a command prefix that runs on one of the machines.
    fn on(&self, machine: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[machine]]);
        command
    }

    fn worker(&self, machine: usize, millis: u64) -> Worker {
        let worker = Worker::command(&format!("redis://{NEAR}:6379"), "share", millis);
        Worker::start(&mut wrap_command(self.on(machine), &worker))
    }

    fn set_link(&self, state: &str) {
        assert!(run_ip(&format!("-n {} link set dev cable {state}", self.names[1])));
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        if let Some(redis) = &mut self.redis {
            let _ = redis.kill();
            let _ = redis.wait();
        }
        for name in &self.names {
            run_ip(&format!("netns del {name}"));
        }
    }
}

fn run_ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

const NEAR: &str = "10.231.77.1";
const FAR: &str = "10.231.77.2";

#[test]
fn machine_cut_off_uses_local_share_and_reconnects() {
    let Some(mut machines) = Machines::start() else {
        println!("skipped: this system permits no network namespaces");
        return;
    };
    machines.start_redis();
    let phase = full_or(4, 2);
    let mut near = machines.worker(0, 3_000 * phase);
    let mut far = machines.worker(1, 3_000 * phase);
    let begin =
        near.wait_until_sent(Timestamp::UNIX_EPOCH).max(far.wait_until_sent(Timestamp::UNIX_EPOCH));
    // Three phases by the times in the output: connected, separated, and connected again.
    far.wait_until_sent(begin + Duration::from_secs(phase));
    machines.set_link("down");
    far.wait_until_sent(begin + Duration::from_secs(2 * phase));
    machines.set_link("up");
    let (near, far) = (near.read_rest(), far.read_rest());
    let within = |sent: &[Sent], from: u64, to: u64| {
        let range = begin + Duration::from_secs(from)..begin + Duration::from_secs(to);
        sent.iter().filter(|(at, _)| range.contains(at)).count() as u64
    };
    let separated = [&near, &far].map(|sent| within(sent, phase + 1, 2 * phase));
    let again = [&near, &far].map(|sent| within(sent, 2 * phase + 1, 3 * phase));
    println!(
        "near and far: {separated:?} separated, {again:?} reconnected, each in {} s",
        phase - 1
    );
    assert!(separated.into_iter().chain(again).all(|sent| sent > 0));
    // While separated, the far machine is limited to half of the limit, the near one to all of it.
    let refilled = RPM / 60 * (phase - 1);
    assert!(separated[1] <= refilled / 2 + BURST / 2, "the far machine exceeded its share");
    let mut all: Vec<_> = near.into_iter().chain(far).collect();
    all.sort_unstable();
    let most = (RPM / 60 * (phase + 1) + BURST) / 2;
    assert!(excess(&all) <= most, "excess by {} of {most}", excess(&all));
}
