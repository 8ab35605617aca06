//! c07: GoCC's flags and the `PACELINE_*` environment variables.

use crate::cli::rig::{TestHome, output_of};

#[test]
fn c07_invalid_flags_and_variables_are_rejected() {
    let home = TestHome::new();
    for flag in [
        "--max-requests=0",
        "--max-requests-in-queue=-1",
        "--window-millis=-1000",
        "--window-millis=9",
        "--window-millis=3600001",
        "--requests-can-set-rate=maybe",
        "--requests-can-mod-queue=2",
        "--config-file=nowhere.json",
        "--port=65536",
        "--log-format=xml",
        "--log-level=loud",
        "--log2xx=x",
        "--log4xx=x",
        "--log5xx=x",
        "--instance-urls=http://a",
    ] {
        let (name, value) = flag.split_once('=').unwrap();
        let ended = home.run(&format!("serve {flag}"));
        assert_eq!(ended.code, Some(2), "{flag}");
        let file = name == "--config-file";
        assert!(file || ended.stderr.contains(name), "{flag}: {}", ended.stderr);
        let variable = name.trim_start_matches('-').replace('-', "_").to_uppercase();
        let variable = format!("PACELINE_{variable}");
        let ended = output_of(home.paceline("serve").env(&variable, value));
        assert_eq!(ended.code, Some(2), "{variable}");
        assert!(file || ended.stderr.contains(&variable), "{variable}: {}", ended.stderr);
    }
}
