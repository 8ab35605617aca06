use std::fs;

/// This process, so that others can tell when it has ended: its namespace, its number, and when it
/// started, since numbers are given again. `None` where that can't be known.
pub(super) fn current() -> Option<String> {
    let (_, started) = proc_stat("self")?;
    Some(format!("{} {} {started}", namespace()?, std::process::id()))
}

/// Whether a process is known to have ended; one of another namespace is not.
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

/// A process's state, and when it started, in ticks since the machine did: proc_pid_stat(5).
fn proc_stat(number: &str) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name before may hold anything, spaces and brackets too.
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
