//! A TCP proxy that loses answers.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards all bytes, but cuts the connection instead of every n-th answer to the script, after
/// its execution.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    cut: Arc<AtomicU64>,
    /// The open streams; `None` after the cut.
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Proxy {
    pub(super) fn to(server: SocketAddr, every: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (answers, cut) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let (cuts, opened) = (Arc::clone(&cut), Arc::clone(&open));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Some(opened) = &mut *opened.lock().unwrap() else { break };
                let Ok(server) = TcpStream::connect(server) else { continue };
                opened.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let (to_server, to_client) =
                    (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || pass(client, to_server, |_| true));
                let (answers, cuts) = (Arc::clone(&answers), Arc::clone(&cuts));
                thread::spawn(move || {
                    pass(server, to_client, |answer| {
                        let number = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
                        let passes = answer[0] != b'$' || number(&answers) % every != every - 1;
                        if !passes {
                            number(&cuts);
                        }
                        passes
                    });
                });
            }
        });
        Self { address, cut, open }
    }

    /// Closes all connections and accepts no more.
    pub(super) fn cut_off(&self) {
        for stream in self.open.lock().unwrap().take().into_iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Returns the number of lost answers.
    pub(super) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, passes: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !passes(&buffer[..read]) || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
