use std::fmt;
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionInfo, ErrorKind, FromRedisValue, RedisError, RedisResult,
    ServerErrorKind, Value,
};

use super::failure::Failure;
use super::script::{Call, Response};
use super::sentinel::find_master;
use super::url::Server;
use crate::dial::{self, CONNECT_TIMEOUT, Node};
use crate::tls::Tls;

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
        if let Server::Cluster(nodes) = server {
            let client = ClusterClientBuilder::new(nodes.clone())
                .connection_timeout(CONNECT_TIMEOUT)
                .response_timeout(timeout)
                .retries(REDIRECTIONS)
                .min_retry_wait(MIN_REDIRECT_WAIT_MS)
                .max_retry_wait(MAX_REDIRECT_WAIT_MS)
                .build()?;
            return client.get_async_generic_connection().await.map(Self::Cluster);
        }
        let (options, node) = (options(timeout), find_node(server, timeout, tls).await?);
        dial::multiplexed(node, options, CONNECT_TIMEOUT, tls).await.map(Self::Single)
    }

    /// Opens a connection for messages, which any node of a cluster delivers.
    pub(super) async fn subscribe(
        server: &Server,
        timeout: Duration,
        tls: &Tls,
    ) -> RedisResult<PubSub> {
        dial::pubsub(find_node(server, timeout, tls).await?, tls).await
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

/// Returns the address of the server, of a Sentinel's master, or of a node of a cluster.
async fn find_node(server: &Server, timeout: Duration, tls: &Tls) -> RedisResult<ConnectionInfo> {
    let none = || RedisError::from((ErrorKind::InvalidClientConfig, "no host"));
    match server {
        Server::Single(info) => Ok(info.clone()),
        Server::Cluster(nodes) => nodes.first().cloned().ok_or_else(none),
        Server::Sentinel { sentinels, master, login } => {
            let sentinel = sentinels.first().ok_or_else(none)?;
            find_master(sentinel, master, login, &options(timeout), tls).await
        }
    }
}

fn options(timeout: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(timeout))
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
