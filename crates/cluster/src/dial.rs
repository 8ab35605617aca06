//! Connections to Redis and Valkey. The redis crate opens plain connections; TLS connections use
//! [our own configuration](crate::tls).

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_ok;
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster_async::Connect;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo, Pipeline, RedisError, RedisFuture, RedisResult, Value,
};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::cause::HANDSHAKE_TIMED_OUT;
use crate::tls::Tls;

/// Opens a multiplexed connection for commands; clones share the connection.
///
/// A TLS connection must be established within `connect_timeout` and the time for its handshake; for others,
/// `options` sets the timeout.
pub(super) async fn multiplexed(
    info: ConnectionInfo,
    options: AsyncConnectionConfig,
    connect_timeout: Duration,
    tls: &Tls,
) -> RedisResult<MultiplexedConnection> {
    let ConnectionAddr::TcpTls { .. } = info.addr() else {
        return Client::open(info)?.get_multiplexed_async_connection_with_config(&options).await;
    };
    let open = async {
        let (stream, settings) = (connect_tls(&info, tls).await?, info.redis_settings());
        MultiplexedConnection::new_with_config(settings, stream, options).await
    };
    let timed_out = |_| io::Error::from(io::ErrorKind::TimedOut);
    let (connection, driver) =
        timeout(connect_timeout + CONNECT_TIMEOUT, open).await.map_err(timed_out)??;
    // The driver ends when the last clone of the connection is dropped.
    tokio::spawn(driver);
    Ok(connection)
}

/// Opens a connection for subscriptions.
pub(super) async fn pubsub(info: ConnectionInfo, tls: &Tls) -> RedisResult<PubSub> {
    match info.addr() {
        ConnectionAddr::TcpTls { .. } => {
            PubSub::new(info.redis_settings(), connect_tls(&info, tls).await?).await
        }
        _ => Client::open(info)?.get_async_pubsub().await,
    }
}

async fn connect_tls(info: &ConnectionInfo, tls: &Tls) -> RedisResult<TlsStream<TcpStream>> {
    let ConnectionAddr::TcpTls { host, port, insecure: false, .. } = info.addr() else {
        let message = "insecure TLS is not supported; the server certificate is always verified";
        return Err(RedisError::from((ErrorKind::InvalidClientConfig, message)));
    };
    let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
    let config = tls.config().map_err(|error| {
        let message = "unusable certificate file";
        RedisError::from((ErrorKind::InvalidClientConfig, message, error.to_string()))
    })?;
    let connector = TlsConnector::from(Arc::new(config));
    let addresses = lookup_host((host.as_str(), *port)).await?;
    let attempts: Vec<_> = addresses.map(|address| Box::pin(TcpStream::connect(address))).collect();
    if attempts.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the host name resolves to no address",
        )
        .into());
    }
    // Uses the first address that accepts, as the redis crate does for plain connections.
    let (stream, _) = select_ok(attempts).await?;
    stream.set_nodelay(true)?;
    let handshake = timeout(CONNECT_TIMEOUT, connector.connect(name, stream)).await;
    Ok(handshake.map_err(|_| io::Error::other(HANDSHAKE_TIMED_OUT))??)
}

/// A connection to one node of a Redis Cluster.
#[derive(Clone)]
pub(super) struct Node(MultiplexedConnection);

impl Connect for Node {
    fn connect_with_config<'a, T>(info: T, options: AsyncConnectionConfig) -> RedisFuture<'a, Self>
    where
        T: IntoConnectionInfo + Send + 'a,
    {
        Box::pin(async move {
            let info = info.into_connection_info()?;
            let tls = NODE_TLS.with_borrow(Clone::clone);
            multiplexed(info, options, CONNECT_TIMEOUT, &tls).await.map(Self)
        })
    }
}

/// Sets the certificates of connections to the nodes of a Redis Cluster that this thread opens.
///
/// The redis crate opens these connections in a task of its own, and passes nothing of ours to them. The
/// task runs on the thread of the runtime, which serves one store only.
pub(super) fn set_node_tls(tls: Tls) {
    NODE_TLS.set(tls);
}

thread_local! {
    static NODE_TLS: RefCell<Tls> = RefCell::default();
}

impl ConnectionLike for Node {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.0.req_packed_command(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.0.req_packed_commands(commands, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }
}

/// The timeout for establishing a connection. With the redis crate's defaults, a call took up to
/// 9.4 s.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);
