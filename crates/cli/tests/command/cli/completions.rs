//! `paceline completions`.

use std::process::Stdio;

use super::rig::{TestHome, ended};
use paceline_testing::process::ChildGuard;

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

#[test]
fn completions_list_commands_for_every_shell() {
    for shell in SHELLS {
        let output = TestHome::new().run(&format!("completions {shell}"));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{shell}");
        for name in ["batch", "count", "completions", "simulate", "max-in-flight"] {
            assert!(output.stdout.contains(name), "{shell}: {name} is missing");
        }
    }
    assert_eq!(TestHome::new().run("completions tcsh").code, Some(2));
}

#[test]
fn bash_accepts_completion_script() {
    let home = TestHome::new();
    let script = home.write("completions", &home.run("completions bash").stdout);
    let check = std::process::Command::new("bash").arg("-n").arg(script).output();
    assert!(check.is_ok_and(|output| output.status.success()));
}

#[test]
fn closed_pipe_is_success() {
    for arguments in ["completions bash", "count gpt-4o Hi --by estimate"] {
        let home = TestHome::new();
        let mut command = home.paceline(arguments);
        let (read, write) = std::io::pipe().expect("a pipe");
        drop(read);
        let output = ended(ChildGuard::start(command.stdout(Stdio::from(write))));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full exists");
    let home = TestHome::new();
    let mut command = home.paceline("completions bash");
    let output = ended(ChildGuard::start(command.stdout(full)));
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.starts_with("paceline: standard output: cannot write: "), "{output:?}");
}
