//! Help teaches: every command has it, with examples, and the exit codes are documented.

use crate::process::millrace;

#[test]
fn every_command_has_help_with_examples() {
    let commands: [&[&str]; 13] = [
        &["serve"],
        &["quickstart"],
        &["topic", "create"],
        &["topic", "list"],
        &["topic", "describe"],
        &["topic", "delete"],
        &["topic", "add-partitions"],
        &["group", "list"],
        &["group", "describe"],
        &["group", "delete"],
        &["log", "inspect"],
        &["config", "check"],
        &["config", "reference"],
    ];
    for words in commands {
        let args: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
        let ended = millrace(&args);
        assert_eq!(ended.code, Some(0), "{words:?}");
        assert!(ended.stdout.contains("Example"), "{words:?}: {}", ended.stdout);
        assert!(ended.stdout.contains("--format"), "{words:?}: {}", ended.stdout);
    }
}

#[test]
fn the_exit_codes_are_in_the_help() {
    let help = millrace(&["--help"]).stdout;
    for code in 0..=7 {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(&format!("{code}  "))),
            "{code}: {help}"
        );
    }
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    assert_eq!(millrace(&["serv"]).code, Some(2));
    assert_eq!(millrace(&["topic", "create"]).code, Some(2));
    let ended = millrace(&["serve", "--data-dir", "x", "--set", "nothing"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("--set num.partitions=6"), "{}", ended.stderr);
}
