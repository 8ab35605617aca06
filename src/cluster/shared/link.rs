use std::fmt;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, RedisResult, ServerErrorKind, Value,
};

use super::failure::Failure;
use super::script::{Call, Response};
use super::sentinel::connect_to_master;
use super::url::Server;
use crate::cluster::dial::{self, CONNECT_TIMEOUT, Node};
use crate::cluster::tls::Tls;

/// A connection to a single server or a cluster. Clones share the connection; responses arrive in
/// the order of the calls.
#[derive(Clone)]
pub(super) enum Link {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection<Node>),
}

impl Link {
    /// Opens a connection. With Sentinel, looks up the current master first.
    pub(super) async fn open(server: &Server, timeout: Duration, tls: &Tls) -> RedisResult<Self> {
        let options = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(timeout));
        match server {
            Server::Single(info) => {
                let opened = dial::multiplexed(info.clone(), options, CONNECT_TIMEOUT, tls).await;
                opened.map(Self::Single)
            }
            Server::Sentinel { sentinels, master, login } => {
                let sentinel = sentinels.first().ok_or((ErrorKind::EmptySentinelList, "none"))?;
                let opened = connect_to_master(sentinel, master, login, &options, tls).await;
                opened.map(Self::Single)
            }
            Server::Cluster(nodes) => {
                let client = ClusterClientBuilder::new(nodes.clone())
                    .connection_timeout(CONNECT_TIMEOUT)
                    .response_timeout(timeout)
                    .retries(REDIRECTIONS)
                    .min_retry_wait(MIN_REDIRECT_WAIT_MS)
                    .max_retry_wait(MAX_REDIRECT_WAIT_MS)
                    .build()?;
                client.get_async_generic_connection().await.map(Self::Cluster)
            }
        }
    }

    /// Runs the script.
    ///
    /// # Errors
    /// Returns [`Failure`]; it is then unknown whether the call was executed.
    pub(super) async fn call(&mut self, call: &Call<'_>) -> Result<Response, Failure> {
        let mut value = self.query::<Value>(&call.by_hash()).await;
        if let Err(error) = &value
            && error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
        {
            value = self.query(&call.by_text()).await;
        }
        Response::read(call, &value?).map_err(|_| Failure::UNREADABLE)
    }

    pub(super) async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        match self {
            Self::Single(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

const MIN_REDIRECT_WAIT_MS: u64 = 10;
const MAX_REDIRECT_WAIT_MS: u64 = 100;
/// The maximum number of redirections of a call to a cluster whose slots have moved.
const REDIRECTIONS: u32 = 3;
