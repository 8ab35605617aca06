use std::future::ready;
use std::sync::Arc;

use async_nats::{Client, ConnectOptions, Event, ServerAddr, Subscriber};
use futures_util::StreamExt;
use futures_util::stream::SelectAll;
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::bus::{Bus, MessageHandler};
use super::error::BusError;
use super::remote::{BusDriver, Message, PING_INTERVAL, RemoteBus, Shared, TIMEOUT, backoff};
use super::status::BusStatus;
use crate::cause::Cause;
use crate::tls::Tls;

/// A bus over NATS, driven by a dedicated thread.
///
/// The bus connects in the background and retries indefinitely, even if the server is not running
/// yet. Messages published meanwhile wait for up to one second. A message counts as published when
/// the connection has accepted it, since NATS does not acknowledge messages. The bus pings the
/// server every second and reconnects after three missed replies.
#[derive(Debug)]
pub struct NatsBus(RemoteBus);

impl NatsBus {
    /// Creates a bus for the server at a URL (`nats`, `tls`, `ws`, `wss`), which may contain a user
    /// and password, or a token. Returns without waiting for the connection.
    ///
    /// # Errors
    /// Returns [`BusError`] if the URL is not supported or the thread cannot be started.
    pub fn connect(url: &str) -> Result<Self, BusError> {
        Self::connect_with_tls(url, &Tls::default())
    }

    /// Creates a bus as [`connect`](Self::connect) does, with these certificates for TLS connections.
    ///
    /// # Errors
    /// Returns [`BusError`] in the cases of [`connect`](Self::connect), and for unusable files.
    pub fn connect_with_tls(url: &str, tls: &Tls) -> Result<Self, BusError> {
        let unsupported = || BusError::Url { expected: "nats://, tls://, ws:// or wss://" };
        let address: ServerAddr = url.parse().map_err(|_| unsupported())?;
        if address.host().is_empty() {
            return Err(unsupported());
        }
        let (address, options) = split_credentials(address).ok_or_else(unsupported)?;
        let options = options.tls_client_config(tls.config().map_err(BusError::Tls)?);
        RemoteBus::start("paceline-nats", |driver| drive(address, options, driver)).map(Self)
    }
}

impl Bus for NatsBus {
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

/// Splits the credentials off the address, because the client logs addresses.
fn split_credentials(address: ServerAddr) -> Option<(ServerAddr, ConnectOptions)> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let options = match (address.username().map(decoded), address.password().map(decoded)) {
        (Some(user), Some(password)) => ConnectOptions::with_user_and_password(user, password),
        (Some(token), None) => ConnectOptions::with_token(token),
        (None, _) => ConnectOptions::new(),
    };
    let mut bare = address.into_inner();
    bare.set_username("").ok()?;
    bare.set_password(None).ok()?;
    Some((ServerAddr::from_url(bare).ok()?, options))
}

/// Sets options by which the client reconnects indefinitely and reports its connection state.
fn reconnecting(options: ConnectOptions, shared: &Arc<Shared>, server: String) -> ConnectOptions {
    let shared = Arc::clone(shared);
    options
        .name("paceline")
        .retry_on_initial_connect()
        .max_reconnects(None)
        .connection_timeout(TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .reconnect_delay_callback(backoff)
        .event_callback(move |event| {
            record_event(&shared, &event, &server);
            ready(())
        })
}

async fn drive(address: ServerAddr, options: ConnectOptions, mut driver: BusDriver) {
    let shared = Arc::clone(&driver.shared);
    let server = format!("{}:{}", address.host(), address.port());
    let options = reconnecting(options, &shared, server);
    let Ok(client) = options.connect(address).await else { return };
    let mut incoming = SelectAll::<Subscriber>::new();
    let mut subscribed = 0;
    loop {
        tokio::select! {
            Some(message) = incoming.next() => {
                shared.subscriptions.deliver(&message.subject, &message.payload);
            }
            message = driver.queue.recv() => {
                let Some(message) = message else { return };
                let sending = async { timeout(TIMEOUT, send(&client, &shared, message)).await.ok() };
                if !matches!(shared.count_sending(sending).await, Some(Ok(()))) {
                    driver.discard_queued();
                }
            }
            () = shared.subscribed.notified() => {
                let subjects = shared.subscriptions.subjects(subscribed);
                subscribed += subjects.len();
                subscribe(&client, &subjects, &mut incoming).await;
            }
        }
    }
}

/// Subscribes to more subjects. The client renews subscriptions itself after a reconnect; this
/// waits only while the client's queue is full, and fails only for an invalid subject.
async fn subscribe(client: &Client, subjects: &[Arc<str>], incoming: &mut SelectAll<Subscriber>) {
    for subject in subjects {
        match client.subscribe(subject.to_string()).await {
            Ok(subscriber) => incoming.push(subscriber),
            Err(error) => tracing::warn!(%subject, %error, "failed to subscribe to the bus"),
        }
    }
}

fn record_event(shared: &Arc<Shared>, event: &Event, server: &str) {
    match event {
        Event::Connected => shared.on_connected(),
        // Reports a failed attempt to connect too.
        Event::ClientError(error) => {
            let text = error.to_string();
            if text.contains(IO_ERROR) {
                tokio::spawn(probe(Arc::clone(shared), server.to_owned()));
            } else {
                shared.on_unavailable(Some(&Cause::of_text(&text)), server);
            }
        }
        Event::Disconnected | Event::Closed => shared.on_unavailable(None, server),
        _ => {}
    }
}

/// Connects to a server to find out why the client can't, since the client hides the cause.
async fn probe(shared: Arc<Shared>, server: String) {
    let cause = match timeout(TIMEOUT, TcpStream::connect(&server)).await {
        Ok(Ok(_)) => Cause::of_text("connection lost"),
        Ok(Err(error)) => Cause::of_text(&error.to_string()),
        Err(_) => Cause::of_text("timed out"),
    };
    shared.on_unavailable(Some(&cause), &server);
}

/// The client's text for a failed connection.
const IO_ERROR: &str = "IO error";

/// Sends a message once connected. Without a connection the client
/// would buffer the message for an unlimited time.
async fn send(client: &Client, shared: &Shared, message: Message) -> Result<(), NotSent> {
    shared.connected().await;
    client.publish(message.subject, message.body).await.map_err(|_| NotSent)?;
    client.flush().await.map_err(|_| NotSent)
}

/// The error for a message that the client did not accept.
struct NotSent;
