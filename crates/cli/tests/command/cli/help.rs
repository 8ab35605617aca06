//! Help texts and argument errors.

use clap::CommandFactory;
use paceline_cli::command::Cli;

use super::rig::{TestHome, output_of};

#[test]
fn help_of_every_command_has_exit_codes_and_example() {
    let home = TestHome::new();
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let output = home.run(&format!("{name} --help"));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{name}");
        for part in ["Example", "Exit codes:", "Usage: paceline"] {
            assert!(output.stdout.contains(part), "{name} --help has no {part}\n{}", output.stdout);
        }
    }
}

#[test]
fn help_of_every_command_has_long_text() {
    let home = TestHome::new();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(long.len() > about.len(), "{name} has no long text: {long:?}");
        assert!(long.starts_with(&about), "{name}: the long text starts differently: {long:?}");
        for arguments in [format!("{name} --help"), format!("help {name}")] {
            let output = words(&home.run(&arguments).stdout);
            assert!(output.contains(&words(&long)), "{arguments}: {output}");
        }
        let short = words(&home.run(&format!("{name} -h")).stdout);
        assert!(!short.contains(&words(&long)), "{name} -h is short");
    }
}

#[test]
fn errors_have_prefix_and_escape_control_characters() {
    let home = TestHome::new();
    for wrong in ["", "batch", "shwo", "show --nope", "completions ksh", "config check gone.yaml"] {
        let output = home.run(wrong);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{wrong}: {output:?}");
        let is_error = |line: &str| line.starts_with("paceline: ") && line.len() > 20;
        assert!(wrong.is_empty() || output.stderr.lines().any(is_error), "{wrong}: {output:?}");
    }
    for command in ["show --config", "config check"] {
        let output = output_of(home.paceline(command).arg("\u{1b}[31m"));
        assert_eq!(output.code, Some(2), "{command}");
        assert!(
            output.stderr.contains("\\u{1b}[31m") && !output.stderr.contains('\u{1b}'),
            "{output:?}"
        );
    }
}

#[test]
fn help_lists_all_commands_in_groups() {
    let home = TestHome::new();
    for arguments in ["help", "--help", "-h"] {
        let output = home.run(arguments);
        assert_eq!(output.code, Some(0), "{arguments}");
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().expect("every command has a short help").to_string();
            let line = output
                .stdout
                .lines()
                .find(|line| line.split_whitespace().next() == Some(command.get_name()));
            let line = line.unwrap_or_else(|| panic!("{} is missing", command.get_name()));
            assert!(line.contains(&about), "{line}: {about}");
        }
        for group in ["Limits:", "Requests:", "Setup:"] {
            assert!(output.stdout.contains(group), "{group} is missing\n{}", output.stdout);
        }
    }
    assert!(home.run("--help").stdout.contains("Exit codes:"));
}
