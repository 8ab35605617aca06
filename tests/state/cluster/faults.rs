//! The short form of `benches/faults`: one case for each fault.

#[path = "../../../benches/faults/ledger.rs"]
mod ledger;
#[path = "../../../benches/faults/matrix.rs"]
mod matrix;
#[path = "../../../benches/faults/member.rs"]
mod member;
#[path = "../../../benches/faults/proxy.rs"]
pub(super) mod proxy;

use matrix::Case;
use paceline_testing::process::test_command;

const MEMBER: &str = "PACELINE_FAULTS_MEMBER";

/// The process that the other test starts; does nothing as a test.
#[test]
fn fault_member() {
    if let Ok(spec) = std::env::var(MEMBER) {
        member::run(&spec);
    }
}

#[test]
fn ledger_finds_grants_above_the_limit() {
    ledger::check_judge();
}

#[test]
fn faults_admit_nothing_above_the_limit_and_all_are_served() {
    let start = |spec: &str| test_command(module_path!(), "fault_member", MEMBER, spec);
    let results: Vec<_> = std::thread::scope(|scope| {
        let cases: Vec<_> = Case::some().into_iter().zip(1..).collect();
        let running = cases.chunks(3).flat_map(|chunk| {
            let run = |&(case, seed): &(Case, u64)| scope.spawn(move || case.run(seed, &start));
            let running: Vec<_> = chunk.iter().map(run).collect();
            running.into_iter().map(|case| case.join().unwrap()).collect::<Vec<_>>()
        });
        running.collect()
    });
    for result in &results {
        println!("{result}");
    }
    for result in results {
        assert_eq!(result.excess, 0, "{result}");
        assert!(result.wait.is_some(), "{result}");
        assert!(!result.counts_more(), "{result}");
    }
}
