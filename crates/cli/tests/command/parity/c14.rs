use crate::cli::rig::Home;
use crate::serve::process::Served;

#[test]
fn c14_a_running_server_is_measured_and_what_it_grants_is_counted() {
    for protocol in ["", "--http2"] {
        let server = Served::start("serve: {max_requests: 5, window_millis: 3600000}");
        let told = Home::new().run(&format!(
            "bench http://{} --requests 40 --keys 4 --connections 8 --json {protocol}",
            server.addr()
        ));
        assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
        let report = told.json();
        // Five of each of four keys.
        assert_eq!(report["statuses"], serde_json::json!({"200": 20, "429": 20}), "{report}");
        assert!(report["requests_per_second"].as_f64().is_some_and(|rate| rate > 0.0));
    }
}
