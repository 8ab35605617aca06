//! Receives the store's messages that waiting requests should ask again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use paceline_limiter::limiter::Clock;
use redis::{Msg, RedisResult};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::coordinator::Coordinator;
use super::link::Link;
use super::script::{Id, wake_channel};
use super::url::Server;
use crate::dial::CONNECT_TIMEOUT;

impl Coordinator {
    /// Listens for messages, and wakes the requests that they name. While there is no connection, waiting
    /// requests ask again by themselves.
    pub(super) async fn listen_for_wakes(self: Arc<Self>, server: Server) {
        let mut is_warned = false;
        for host in 0.. {
            self.store.connection.wait_until_available().await;
            let ended = self.listen_via(&server.via_host(host)).await;
            // The other connection may be lost too, which an idle process would not notice until its next
            // heartbeat.
            if self.store.is_listening.swap(false, Ordering::Relaxed) {
                self.store.connection.check_requested.notify_one();
            }
            if let Err(error) = ended
                && !error.is_io_error()
                && !std::mem::replace(&mut is_warned, true)
            {
                tracing::warn!(
                    %error,
                    "the shared store refuses a subscription, so that waiting requests ask more often"
                );
            }
            sleep(PAUSE).await;
        }
    }

    /// Listens until the connection is lost.
    async fn listen_via(&self, server: &Server) -> RedisResult<()> {
        let settings = &self.store.settings;
        let opening = timeout(
            CONNECT_TIMEOUT * (server.hops() + 1),
            Link::subscribe(server, settings.timeout, &settings.tls),
        );
        let Ok(opened) = opening.await else { return Ok(()) };
        let (mut sink, mut incoming) = opened?.split();
        match timeout(CALL_TIMEOUT, sink.subscribe(wake_channel(self.store.process))).await {
            Ok(subscribed) => subscribed?,
            Err(_) => return Ok(()),
        }
        self.store.is_listening.store(true, Ordering::Relaxed);
        // Messages may have been missed before.
        self.reservations.lock().wake_queued(self.store.ticks.now());
        let mut ping = interval(PING_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = incoming.next() => match message {
                    Some(message) => self.on_message(&message),
                    None => return Ok(()),
                },
                _ = ping.tick() => match timeout(CALL_TIMEOUT, sink.ping::<()>()).await {
                    Ok(answered) => answered?,
                    Err(_) => return Ok(()),
                },
            }
        }
    }

    fn on_message(&self, message: &Msg) {
        if let Ok(id) = message.get_payload_bytes().try_into() {
            self.reservations.lock().wake(Id(id));
        }
    }
}

/// The pause before the next attempt to listen.
const PAUSE: Duration = Duration::from_millis(500);
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
const PING_INTERVAL: Duration = Duration::from_secs(1);
