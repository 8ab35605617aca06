//! What the command says of itself.

use clap::CommandFactory;
use tollgate_cli::command::Cli;

use super::rig::{Home, told};

#[test]
fn every_command_tells_its_exit_codes_and_an_example() {
    let home = Home::new();
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let told = home.run(&format!("{name} --help"));
        assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{name}");
        for part in ["Example", "Exit codes:", "Usage: tollgate"] {
            assert!(told.stdout.contains(part), "{name} --help has no {part}\n{}", told.stdout);
        }
    }
}

#[test]
fn help_of_every_command_has_its_long_text() {
    let home = Home::new();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(long.len() > about.len(), "{name} has no long text: {long:?}");
        for arguments in [format!("{name} --help"), format!("help {name}")] {
            let told = words(&home.run(&arguments).stdout);
            assert!(told.contains(&words(&long)), "{arguments}: {told}");
        }
        let short = words(&home.run(&format!("{name} -h")).stdout);
        assert!(!short.contains(&words(&long)), "{name} -h is short");
    }
}

#[test]
fn every_error_says_whose_it_is_and_none_reaches_into_the_terminal() {
    let home = Home::new();
    for wrong in ["", "batch", "shwo", "show --nope", "completions ksh", "config check gone.yaml"] {
        let told = home.run(wrong);
        assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""), "{wrong}: {told:?}");
        let says = |line: &str| line.starts_with("tollgate: ") && line.len() > 20;
        assert!(wrong.is_empty() || told.stderr.lines().any(says), "{wrong}: {told:?}");
    }
    for command in ["show --config", "config check"] {
        let told = told(home.tollgate(command).arg("\u{1b}[31m"));
        assert_eq!(told.code, Some(2), "{command}");
        assert!(told.stderr.contains("\\u{1b}[31m") && !told.stderr.contains('\u{1b}'), "{told:?}");
    }
}

#[test]
fn the_list_of_commands_has_them_all_in_groups() {
    let home = Home::new();
    for arguments in ["help", "--help", "-h"] {
        let told = home.run(arguments);
        assert_eq!(told.code, Some(0), "{arguments}");
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().expect("every command has one").to_string();
            let line = told
                .stdout
                .lines()
                .find(|line| line.split_whitespace().next() == Some(command.get_name()));
            let line = line.unwrap_or_else(|| panic!("{} is missing", command.get_name()));
            assert!(line.contains(&about), "{line}: {about}");
        }
        for group in ["Limits:", "Requests:", "Setup:"] {
            assert!(told.stdout.contains(group), "{group} is missing\n{}", told.stdout);
        }
    }
    assert!(home.run("--help").stdout.contains("Exit codes:"));
}
