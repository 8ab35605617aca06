use redis::{Connection, Pipeline, Value};

use super::super::text::{SOURCES, ScriptText};
use super::super::{Call, Response};
use paceline_testing::servers::Redis;

/// A Redis server, and a script whose time the tests set.
pub(super) struct Server {
    redis: Redis,
    connection: Connection,
    text: ScriptText,
}

impl Server {
    pub(super) fn start() -> Self {
        Self::with_changes(&[])
    }

    /// Starts a server whose script has no fast paths.
    pub(super) fn without_fast_path() -> Self {
        Self::with_changes(&[
            ("local fast = #jumps == 0", "local fast = false and #jumps == 0"),
            ("local at, fast = p, #jumps == 0", "local at, fast = p, false and #jumps == 0"),
        ])
    }

    fn with_changes(changes: &[(&str, &str)]) -> Self {
        let redis = Redis::start();
        let connection = connect(&redis);
        let mut text = SOURCES.concat();
        let own_time = ("redis.call('TIME')", "{ 0, tonumber(ARGV[3]) }");
        for (old, new) in changes.iter().chain([&own_time]) {
            assert_eq!(text.matches(old).count(), 1);
            text = text.replace(old, new);
        }
        let text = ScriptText::new(text);
        Self { redis, connection, text }
    }

    /// Opens another connection.
    pub(super) fn connect(&self) -> Connection {
        connect(&self.redis)
    }

    /// Runs the script at time `now`.
    pub(super) fn call(&mut self, call: &Call<'_>, now: u64) -> Response {
        let command = call.with(&self.text, ScriptText::by_text).arg(now).to_owned();
        let value: Value = command.query(&mut self.connection).unwrap();
        Response::read(call, &value).unwrap()
    }

    /// Adds a call to a pipeline.
    pub(super) fn queue(&self, calls: &mut Pipeline, call: &Call<'_>, now: u64) {
        calls.add_command(call.with(&self.text, ScriptText::by_hash).arg(now).to_owned());
    }

    pub(super) fn responses(&mut self, calls: &Pipeline) -> Vec<Value> {
        calls.query(&mut self.connection).unwrap()
    }

    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

fn connect(redis: &Redis) -> Connection {
    redis::Client::open(redis.url()).unwrap().get_connection().unwrap()
}
