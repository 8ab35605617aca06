use crate::cli::rig::TestHome;
use crate::serve::process::Served;

#[test]
fn c14_bench_counts_grants_of_running_server() {
    for protocol in ["", "--http2"] {
        let server = Served::start("serve: {max_requests: 5, window_millis: 3600000}");
        let output = TestHome::new().run(&format!(
            "bench http://{} --requests 40 --keys 4 --connections 8 --json {protocol}",
            server.addr()
        ));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
        let report = output.json();
        // Five grants for each of four keys.
        assert_eq!(report["statuses"], serde_json::json!({"200": 20, "429": 20}), "{report}");
        assert!(report["requests_per_second"].as_f64().is_some_and(|rate| rate > 0.0));
    }
}
