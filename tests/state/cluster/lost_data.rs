//! A server that comes back without its data.

use tollgate::quota::{Cost, Quota};
use tollgate_testing::full::full_or;
use tollgate_testing::servers::Redis;

use super::failure::send_command;
use super::shared::{closed, limiter, until};

#[test]
fn empty_server_is_told_of_all_keys() {
    let keys: u64 = full_or(30_000, 3_000);
    let mut redis = Redis::start();
    let (first, second) = (closed(&redis.url()), closed(&redis.url()));
    let [first, second] = [first, second].map(|builder| builder.connect().unwrap());
    let [user, other] = [&first, &second].map(|shared| limiter(shared, Quota::new().rpd(1)));
    for key in 0..keys {
        user.try_acquire(&format!("k{key}"), &Cost::new()).unwrap().settle(&Cost::new());
    }
    until("all ends are reported", || first.status().unacknowledged == 0);
    redis.restart();
    // The process that used the keys makes no further calls on them.
    let address = redis.server().address;
    until("the usage is restored", || {
        let size = send_command(address, "DBSIZE").trim_matches([':', '\r', '\n']).parse::<u64>();
        size.is_ok_and(|size| size >= keys)
    });
    let again =
        (0..keys).filter(|key| other.try_acquire(&format!("k{key}"), &Cost::new()).is_ok()).count();
    assert_eq!(again, 0, "of {keys} keys");
}
