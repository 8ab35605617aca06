use futures_util::StreamExt;
use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::{AsyncConnectionConfig, ConnectionInfo, IntoConnectionInfo, RedisError, RedisResult};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::bus::{Bus, MessageHandler};
use super::error::BusError;
use super::remote::{BusDriver, Message, PING_INTERVAL, RemoteBus, Shared, TIMEOUT, backoff};
use super::status::BusStatus;
use crate::cluster::dial;

/// A bus over the channels of Redis or Valkey (`PUBLISH`, `SUBSCRIBE`), on a thread of its own.
///
/// It connects by itself and for ever, also to a server that isn't there yet; what is published
/// meanwhile waits for up to two seconds. A message counts as published once the server has
/// acknowledged it. Nothing is stored there. Of a Redis Cluster, any node will do.
#[derive(Debug)]
pub struct RedisBus(RemoteBus);

impl RedisBus {
    /// A bus over the server at a URL (`redis`, `rediss`), which may hold a user and a password.
    /// Returns before it is connected.
    ///
    /// # Errors
    /// If that is no such URL, or there can be no thread.
    pub fn connect(url: &str) -> Result<Self, BusError> {
        let wrong = |_| BusError::Url { expected: "redis:// or rediss://" };
        let server = url.into_connection_info().map_err(wrong)?;
        RemoteBus::start("tollgate-redis-bus", |driver| drive(server, driver)).map(Self)
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

async fn drive(server: ConnectionInfo, mut driver: BusDriver) {
    let mut attempt = 0;
    loop {
        match timeout(TIMEOUT, Session::open(&server, &driver.shared)).await {
            Ok(Ok(mut session)) => {
                attempt = 0;
                driver.shared.set_connected(true);
                if session.run(&mut driver).await.is_ok() {
                    return;
                }
                driver.shared.set_connected(false);
            }
            _ => {
                driver.shared.set_connected(false);
                // It has waited for the attempt and for the pause before.
                driver.discard_queued();
            }
        }
        attempt += 1;
        sleep(backoff(attempt)).await;
    }
}

/// Two connections: one that has subscribed can't publish.
struct Session {
    sink: PubSubSink,
    incoming: PubSubStream,
    publisher: MultiplexedConnection,
    subscribed: usize,
}

/// The connection is lost.
struct ConnectionLost;

impl Session {
    async fn open(server: &ConnectionInfo, shared: &Shared) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        let publisher = dial::multiplexed(server.clone(), config, TIMEOUT).await?;
        let (sink, incoming) = dial::pubsub(server.clone()).await?.split();
        let mut session = Self { sink, incoming, publisher, subscribed: 0 };
        session.subscribe(shared).await?;
        Ok(session)
    }

    /// Until the connection is lost; `Ok` once nobody publishes any more.
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
        let answer = command.query_async::<u64>(&mut self.publisher).await;
        shared.count(answer.is_ok());
        // An error that the server says, such as a lack of permission, is about this message alone.
        match answer {
            Err(error) if error.is_io_error() || error.is_unrecoverable_error() => {
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

/// What should not take long; an error of any kind ends the session.
async fn with_timeout(
    task: impl Future<Output = Result<(), RedisError>>,
) -> Result<(), ConnectionLost> {
    match timeout(TIMEOUT, task).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(ConnectionLost),
    }
}
