//! c05: `GET /debug`, `/debug/{key}`.

use crate::rig::Rig;

#[tokio::test]
async fn c05_debug_has_exactly_the_fields_of_gocc() {
    let rig = Rig::new("max_requests: 1").await;
    rig.count_granted(3, "/rate/k").await;
    let one = rig.get("/debug/k").await.json();
    let names = |value: &serde_json::Value| {
        value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        names(&one),
        "Config Found Key NumApprovedThisWindow NumDeniedThisWindow NumWaiting"
    );
    assert_eq!(names(&one["Config"]), "MaxRequestsInQueue MaxRequestsPerWindow WindowMillis");
    let all = rig.get("/debug").await.json();
    assert_eq!((names(&all).as_str(), &all["Instances"]["k"]), ("Instances", &one));
    assert_eq!(rig.get("/debug/l").await.status, 404);
}
