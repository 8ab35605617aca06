use clap::Parser;
use paceline_cli::command::Cli;

/// In the library, an amount is a `u64`, which can't be negative.
#[test]
fn g01_negative_limit_argument_is_error() {
    for limit in ["--rpm=-1", "--tpm=-5000", "--rpd=-1"] {
        let line = ["paceline", "batch", "in.jsonl", "-o", "out.jsonl", limit];
        let error = Cli::try_parse_from(line).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::ValueValidation, "{limit}");
    }
}
