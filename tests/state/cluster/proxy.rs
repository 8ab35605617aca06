//! A TCP proxy that drops responses.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards all bytes, but closes the connection instead of forwarding every n-th response of the
/// script, which was executed.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    dropped: Arc<AtomicU64>,
    /// The open streams; `None` after `close`.
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Proxy {
    pub(super) fn start(server: SocketAddr, every: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (responses, dropped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let (drops, opened) = (Arc::clone(&dropped), Arc::clone(&open));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Some(opened) = &mut *opened.lock().unwrap() else { break };
                let Ok(server) = TcpStream::connect(server) else { continue };
                opened.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let (to_server, to_client) =
                    (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || forward(client, to_server, |_| true));
                let (responses, drops) = (Arc::clone(&responses), Arc::clone(&drops));
                thread::spawn(move || {
                    forward(server, to_client, |response| {
                        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
                        let is_kept = response[0] != b'$' || count(&responses) % every != every - 1;
                        if !is_kept {
                            count(&drops);
                        }
                        is_kept
                    });
                });
            }
        });
        Self { address, dropped, open }
    }

    /// Closes all connections, and accepts no more.
    pub(super) fn close(&self) {
        for stream in self.open.lock().unwrap().take().into_iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Returns the number of dropped responses.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, is_kept: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !is_kept(&buffer[..read]) || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
