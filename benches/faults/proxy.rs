//! A TCP proxy that cuts connections and delays them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Forwards all bytes to a server.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The delay of each direction, in milliseconds.
    delay: AtomicU64,
    refuses: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::<State>::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.refuses.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(server) else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let copies = || Some((client.try_clone().ok()?, server.try_clone().ok()?));
                let (Some((a, b)), Some((c, d))) = (copies(), copies()) else { continue };
                shared.open.lock().unwrap().extend([client, server]);
                let (there, back) = (Arc::clone(&shared), Arc::clone(&shared));
                thread::spawn(move || forward(a, b, &there));
                thread::spawn(move || forward(d, c, &back));
            }
        });
        Self { address, state }
    }

    /// Closes all connections, and refuses new ones until [`mend`](Self::mend).
    pub(crate) fn cut(&self) {
        self.state.refuses.store(true, Ordering::Relaxed);
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn delay(&self, millis: u64) {
        self.state.delay.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn mend(&self) {
        self.delay(0);
        self.state.refuses.store(false, Ordering::Relaxed);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut buffer = [0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let delay = state.delay.load(Ordering::Relaxed);
        if delay > 0 {
            thread::sleep(Duration::from_millis(delay));
        }
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
