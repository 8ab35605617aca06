//! c09: state in shards, no task per key.

use crate::rig::Rig;

#[tokio::test]
async fn c09_a_key_takes_no_task_of_its_own() {
    let rig = Rig::new("max_requests: 9").await;
    rig.post("/rate/first").await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for key in 0..1000 {
        assert_eq!(rig.post(&format!("/rate/key-{key}")).await.status, 200);
    }
    assert!(tasks() <= before + 2, "{before} before, {} now", tasks());
}
