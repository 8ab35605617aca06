//! `tollgate completions`.

use std::process::Stdio;

use super::rig::{Home, ended};
use tollgate_testing::process::Running;

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

#[test]
fn every_shell_is_told_every_command() {
    for shell in SHELLS {
        let told = Home::new().run(&format!("completions {shell}"));
        assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{shell}");
        for name in ["batch", "count", "completions", "simulate", "max-in-flight"] {
            assert!(told.stdout.contains(name), "{shell} is not told of {name}");
        }
    }
    assert_eq!(Home::new().run("completions tcsh").code, Some(2));
}

#[test]
fn bash_takes_the_script() {
    let home = Home::new();
    let script = home.write("completions", &home.run("completions bash").stdout);
    let check = std::process::Command::new("bash").arg("-n").arg(script).output();
    assert!(check.is_ok_and(|output| output.status.success()));
}

#[test]
fn whoever_closes_the_output_has_read_enough() {
    for arguments in ["completions bash", "count gpt-4o Hi --by estimate"] {
        let home = Home::new();
        let mut command = home.tollgate(arguments);
        let (read, write) = std::io::pipe().expect("a pipe");
        drop(read);
        let told = ended(Running::start(command.stdout(Stdio::from(write))));
        assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let home = Home::new();
    let mut command = home.tollgate("completions bash");
    let told = ended(Running::start(command.stdout(full)));
    assert_eq!(told.code, Some(2));
    assert!(told.stderr.starts_with("tollgate: standard output: cannot write: "), "{told:?}");
}
