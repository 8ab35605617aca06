use std::fs;

/// Returns the identity of this process: PID namespace, PID and start time, since PIDs are reused.
/// Returns `None` if unknown.
pub(super) fn current() -> Option<String> {
    let (_, started) = proc_stat("self")?;
    Some(format!("{} {} {started}", namespace()?, std::process::id()))
}

/// Returns whether a process is known to have ended; `false` for a process of another PID namespace.
pub(super) fn has_ended(process: &str) -> bool {
    let mut parts = process.split(' ');
    let (Some(space), Some(number), Some(started)) = (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    if namespace().as_deref() != Some(space) || number.parse::<u32>().is_err() {
        return false;
    }
    proc_stat(number).is_none_or(|(state, since)| state == "Z" || state == "X" || since != started)
}

fn namespace() -> Option<String> {
    Some(fs::read_link("/proc/self/ns/pid").ok()?.to_str()?.to_owned())
}

/// Returns the state of a process and its start time in clock ticks since boot; see
/// proc_pid_stat(5).
fn proc_stat(number: &str) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The process name before it may contain spaces and parentheses.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    Some((fields.next()?.to_owned(), fields.nth(18)?.to_owned()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn process_is_identified_by_pid_and_start_time() {
        let current = current().unwrap();
        assert!(!has_ended(&current));
        let other = current.rsplit_once(' ').unwrap().0.to_owned() + " 1";
        assert!(has_ended(&other), "the same number, started at another time");
        let elsewhere = current.replacen("pid:[", "pid:[9", 1);
        assert!(!has_ended(&elsewhere));
        assert!(!has_ended("nonsense"));
    }

    #[test]
    fn killed_child_has_ended_before_wait() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (_, started) = proc_stat(&child.id().to_string()).unwrap();
        let process = format!("{} {} {started}", namespace().unwrap(), child.id());
        assert!(!has_ended(&process));
        child.kill().unwrap();
        while !has_ended(&process) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
