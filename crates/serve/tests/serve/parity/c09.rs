//! c09: no task per key.

use crate::rig::Rig;

#[tokio::test]
async fn c09_keys_spawn_no_tasks() {
    let rig = Rig::new("max_requests: 9").await;
    rig.post("/rate/first").await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for key in 0..1000 {
        assert_eq!(rig.post(&format!("/rate/key-{key}")).await.status, 200);
    }
    assert!(tasks() <= before + 2, "{before} before, {} now", tasks());
}
