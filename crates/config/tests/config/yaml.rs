use std::fs;

use paceline_config::{self as config, Config};

use super::{parse_messages, parse_problems, parse_valid};

#[test]
fn invalid_yaml_is_refused_with_line() {
    for (text, line) in [
        ("quotas:\n\tgpt-4o: {rpm: 5}\n", 2),
        ("quotas: {gpt-4o: {rpm: 5}\n", 1),
        ("a: b: c\n", 1),
        ("quotas:\n  a: {rpm: 5}\n b: {rpm: 5}\n", 3),
        ("a: \"open\n", 1),
        ("a: *nowhere\n", 1),
        ("\u{0}", 1),
        ("[", 1),
    ] {
        let problems = parse_problems(text);
        assert_eq!(problems.len(), 1, "{text:?}: {problems:?}");
        let position = problems[0].origin.position().unwrap();
        assert!(position.line.abs_diff(line) <= 1, "{text:?}: {problems:?}");
        assert!(position.line <= text.lines().count(), "{text:?}: {problems:?}");
    }
}

#[test]
fn duplicate_name_is_refused() {
    let text = "quotas:\n  a: {rpm: 5}\n  b: {rpm: 5}\n  a: {rpm: 6}\n";
    assert_eq!(
        parse_messages(text),
        ["4:3: quotas.a: duplicate key (first on line 2); remove one"]
    );
    assert_eq!(parse_messages("share: 1\nshare: 1\n").len(), 1);
}

#[test]
fn second_document_merge_key_and_tag_are_refused() {
    for (text, reason) in [
        ("share: 1\n---\nshare: 0.5\n", "more than one document"),
        ("quotas: {a: &a {rpm: 5}, b: {<<: *a}}", "merge keys (<<) are not part of YAML 1.2"),
        ("quotas: {a: {rpm: !!int 5}}", "tags (!) are not supported"),
        ("quotas: !mine {}", "tags (!) are not supported"),
        ("? [a]\n: b\n", "a key must be a string"),
    ] {
        let messages = parse_messages(text);
        assert!(messages.len() == 1 && messages[0].contains(reason), "{text}: {messages:?}");
    }
}

#[test]
fn anchors_repeat_values_and_recursion_is_refused() {
    let config = parse_valid("quotas: {a: &limits {rpm: 5}, b: *limits}");
    assert_eq!(config.quotas[0].quota, config.quotas[1].quota);
    let recursive = "quotas: &a {x: *a}";
    assert!(
        parse_messages(recursive)[0]
            .contains("an alias must not refer to a value that contains it")
    );
}

#[test]
fn alias_bombs_and_deep_nesting_are_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    let messages = parse_messages(&text);
    assert!(messages[0].contains("more than 1000000 values"), "{messages:?}");
    let deep = format!("a: {}{}", "[".repeat(200), "]".repeat(200));
    assert!(self::parse_messages(&deep)[0].contains("nested more than 32 levels deep"));
}

#[test]
fn byte_order_mark_and_crlf_are_accepted() {
    assert_eq!(parse_valid("\u{feff}quotas: {a: {rpm: 5}}").quotas.len(), 1);
    assert_eq!(parse_messages("a: {}\r\n\r\nshare: 5\r\n")[1].split(' ').next(), Some("3:8:"));
}

#[test]
fn scalars_follow_the_core_schema() {
    assert_eq!(parse_valid("quotas: {a: {rpm: 0x10}}").quotas[0].quota.limits()[0].amount(), 16);
    assert_eq!(parse_valid("quotas: {a: {rpm: +7}}").quotas[0].quota.limits()[0].amount(), 7);
    assert_eq!(parse_valid("quotas: {1.5: {rpm: 7}, true: {}, no: {}}").quotas.len(), 3);
    assert_eq!(
        parse_valid("cluster: {redis: 'redis://h', account: no}").cluster.unwrap().account,
        "no"
    );
}

#[test]
fn unusable_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("paceline.yaml");
    let problem = |content: Option<&[u8]>| {
        match content {
            Some(content) => fs::write(&path, content).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let problems = config::check(&path).unwrap_err().problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].to_string().replace(folder.path().to_str().unwrap(), "")
    };
    assert_eq!(
        problem(Some(b"")),
        "/paceline.yaml: the file is empty; write `{}` for the defaults"
    );
    assert_eq!(
        problem(Some(b" \n\n")),
        "/paceline.yaml: the file is empty; write `{}` for the defaults"
    );
    assert_eq!(
        problem(Some(b"# Soon\n")),
        "/paceline.yaml: the file is empty; write `{}` for the defaults"
    );
    assert_eq!(problem(Some(b"share: 1\n\xff: 1\n")), "/paceline.yaml:2:1: invalid UTF-8");
    assert!(problem(None).starts_with("/paceline.yaml: can't read the file: No such file"));
    let file = fs::File::create(&path).unwrap();
    file.set_len(100 << 20).unwrap();
    let error = config::check(&path).unwrap_err().to_string();
    assert!(error.ends_with("paceline.yaml: is larger than 8 MiB"), "{error}");
    assert!(config::check(folder.path()).unwrap_err().to_string().contains("can't read the file"));
}

#[test]
fn hundred_thousand_quotas_are_read() {
    let mut text = "quotas:\n".to_owned();
    (0..100_000).for_each(|n| text.push_str(&format!("  key-{n}: {{rpm: 5, tpm: 100}}\n")));
    assert_eq!(Config::parse(&text).unwrap().quotas.len(), 100_000);
}
