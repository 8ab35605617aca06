//! Checks that documented commands of the project name existing packages, targets and scripts.

use paceline_testing::markdown::root;

/// The command to run instead of a documented one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProjectCommand {
    /// The command `paceline` with these arguments.
    Paceline(String),
    /// None: the targets of the command exist.
    Checked,
}

/// Parses a `cargo` command or a `bash` command with a script of the repository; `None` for any other
/// command.
///
/// # Panics
/// Panics if the command names a package, target or script that doesn't exist.
pub(super) fn project_command(command: &str) -> Option<ProjectCommand> {
    let is_assignment = |word: &&str| word.contains('=') && !word.starts_with('-');
    let words: Vec<_> = command.split_whitespace().skip_while(is_assignment).collect();
    match *words.first()? {
        "bash" => {
            assert!(root().join(words[1]).is_file(), "{command}: no such script");
            Some(ProjectCommand::Checked)
        }
        "cargo" => Some(cargo(command, &words[1..])),
        _ => None,
    }
}

fn cargo(command: &str, words: &[&str]) -> ProjectCommand {
    if let Some((_, arguments)) = command.split_once(" -p paceline-cli -- ") {
        assert_eq!(words[0], "run", "{command}");
        return ProjectCommand::Paceline(arguments.to_owned());
    }
    let value = |names: &[&str]| {
        let at = words.iter().position(|word| names.contains(word));
        at.map(|at| words[at + 1])
    };
    let package = match value(&["-p", "--package"]) {
        Some(package) => {
            let folder = package.strip_prefix("paceline-").expect("a package of the workspace");
            root().join("crates").join(folder)
        }
        None => root(),
    };
    assert!(package.join("Cargo.toml").is_file(), "{command}: no such package");
    for (flag, folder) in [("--bench", "benches"), ("--test", "tests"), ("--example", "examples")] {
        if let Some(name) = value(&[flag]) {
            let folder = package.join(folder);
            let exists = folder.join(format!("{name}.rs")).is_file() || folder.join(name).is_dir();
            assert!(exists, "{command}: no such target");
        }
    }
    if let Some(path) = value(&["--path"]) {
        assert!(root().join(path).join("Cargo.toml").is_file(), "{command}: no such package");
    }
    ProjectCommand::Checked
}

#[test]
fn project_commands_are_run_or_checked() {
    let run = project_command("cargo run --release -p paceline-cli -- count gpt-4o hi");
    assert_eq!(run, Some(ProjectCommand::Paceline("count gpt-4o hi".to_owned())));
    let bench = "X=1 cargo bench -p paceline-cli --bench batch";
    assert_eq!(project_command(bench), Some(ProjectCommand::Checked));
    assert_eq!(project_command("curl http://127.0.0.1:8080/"), None);
}
