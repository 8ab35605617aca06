use futures_util::StreamExt;
use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::{AsyncConnectionConfig, ConnectionInfo, IntoConnectionInfo, RedisError, RedisResult};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::bus::{Bus, MessageHandler};
use super::error::BusError;
use super::remote::{BusDriver, Message, PING_INTERVAL, RemoteBus, Shared, TIMEOUT, backoff};
use super::status::BusStatus;
use crate::cause::Cause;
use crate::dial;
use crate::tls::Tls;

/// A bus over the channels of Redis or Valkey (`PUBLISH`, `SUBSCRIBE`), driven by a dedicated
/// thread.
///
/// The bus connects in the background and retries indefinitely, even if the server is not running
/// yet. Messages published meanwhile wait for up to two seconds. A message counts as published when
/// the server has acknowledged it. The server stores no messages. With Redis Cluster, connect to
/// any node.
#[derive(Debug)]
pub struct RedisBus(RemoteBus);

impl RedisBus {
    /// Creates a bus for the server at a URL (`redis`, `rediss`, `valkey`, `valkeys`, `unix`), which may
    /// contain a user and password. Returns without waiting for the connection.
    ///
    /// # Errors
    /// Returns [`BusError`] if the URL is not supported or the thread cannot be started.
    pub fn connect(url: &str) -> Result<Self, BusError> {
        Self::connect_with_tls(url, Tls::default())
    }

    /// Creates a bus as [`connect`](Self::connect) does, with these certificates for TLS connections.
    ///
    /// # Errors
    /// Returns [`BusError`] in the cases of [`connect`](Self::connect), and for unusable files.
    pub fn connect_with_tls(url: &str, tls: Tls) -> Result<Self, BusError> {
        let expected = "redis://, valkey:// or unix://, or rediss:// or valkeys:// with TLS";
        let server = url.into_connection_info().map_err(|_| BusError::Url { expected })?;
        tls.config().map_err(BusError::Tls)?;
        RemoteBus::start("paceline-redis-bus", |driver| drive(server, tls, driver)).map(Self)
    }
}

impl Bus for RedisBus {
    fn publish(&self, subject: &str, message: &[u8]) {
        self.0.publish(subject, message);
    }

    fn subscribe(&self, subject: &str, handler: MessageHandler) {
        self.0.subscribe(subject, handler);
    }

    fn status(&self) -> BusStatus {
        self.0.status()
    }
}

async fn drive(server: ConnectionInfo, tls: Tls, mut driver: BusDriver) {
    let mut attempt = 0;
    let address = server.addr().to_string();
    loop {
        let opening = timeout(TIMEOUT, Session::open(&server, &tls, &driver.shared)).await;
        match opening
            .map_or_else(|_| Err(Cause::of_text("timed out")), |o| o.map_err(|e| Cause::of(&e)))
        {
            Ok(mut session) => {
                attempt = 0;
                driver.shared.on_connected();
                if session.run(&mut driver).await.is_ok() {
                    return;
                }
                // The next attempt to connect finds the cause.
                driver.shared.on_unavailable(None, &address);
            }
            Err(cause) => {
                driver.shared.on_unavailable(Some(&cause), &address);
                // Queued messages have already waited for this attempt and the pause before it.
                driver.discard_queued();
            }
        }
        attempt += 1;
        sleep(backoff(attempt)).await;
    }
}

/// A pair of connections, since a connection in subscriber mode cannot publish.
struct Session {
    sink: PubSubSink,
    incoming: PubSubStream,
    publisher: MultiplexedConnection,
    subscribed: usize,
}

/// The error for a lost connection.
struct ConnectionLost;

impl Session {
    async fn open(server: &ConnectionInfo, tls: &Tls, shared: &Shared) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        let publisher = dial::multiplexed(server.clone(), config, TIMEOUT, tls).await?;
        let (sink, incoming) = dial::pubsub(server.clone(), tls).await?.split();
        let mut session = Self { sink, incoming, publisher, subscribed: 0 };
        session.subscribe(shared).await?;
        Ok(session)
    }

    /// Publishes and delivers messages until the connection is lost; returns `Ok` when the bus is
    /// dropped.
    async fn run(&mut self, driver: &mut BusDriver) -> Result<(), ConnectionLost> {
        let mut ping = interval(PING_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = self.incoming.next() => {
                    let message = message.ok_or(ConnectionLost)?;
                    let subject = message.get_channel_name();
                    driver.shared.subscriptions.deliver(subject, message.get_payload_bytes());
                }
                message = driver.queue.recv() => {
                    let Some(message) = message else { return Ok(()) };
                    self.publish(&driver.shared, message).await?;
                }
                () = driver.shared.subscribed.notified() => {
                    with_timeout(self.subscribe(&driver.shared)).await?;
                }
                _ = ping.tick() => with_timeout(self.sink.ping::<()>()).await?,
            }
        }
    }

    async fn publish(&mut self, shared: &Shared, message: Message) -> Result<(), ConnectionLost> {
        let mut command = redis::cmd("PUBLISH");
        command.arg(message.subject).arg(&message.body[..]);
        let reply = shared.count_sending(async {
            let reply = command.query_async::<u64>(&mut self.publisher).await;
            if reply.as_ref().is_err_and(RedisError::is_timeout) { None } else { Some(reply) }
        });
        // An error reply of the server, such as a missing permission, affects this message alone.
        match reply.await {
            None => Err(ConnectionLost),
            Some(Err(error)) if error.is_io_error() || error.is_unrecoverable_error() => {
                Err(ConnectionLost)
            }
            _ => Ok(()),
        }
    }

    async fn subscribe(&mut self, shared: &Shared) -> RedisResult<()> {
        for subject in shared.subscriptions.subjects(self.subscribed) {
            self.sink.subscribe(&*subject).await?;
            self.subscribed += 1;
        }
        Ok(())
    }
}

/// Runs a command with a timeout; any error ends the session.
async fn with_timeout(
    task: impl Future<Output = Result<(), RedisError>>,
) -> Result<(), ConnectionLost> {
    match timeout(TIMEOUT, task).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(ConnectionLost),
    }
}
