//! A TCP proxy that holds responses back, as a long distance does.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Forwards all bytes, but holds the server's responses back while it is told to.
#[derive(Debug)]
pub(super) struct HeldProxy {
    pub(super) address: SocketAddr,
    holds: Arc<(Mutex<bool>, Condvar)>,
}

impl HeldProxy {
    pub(super) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let holds = Arc::new((Mutex::new(false), Condvar::new()));
        let shared = Arc::clone(&holds);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let (mut requests, mut to_server) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || std::io::copy(&mut requests, &mut to_server));
                let holds = Arc::clone(&shared);
                thread::spawn(move || forward_responses(server, client, &holds));
            }
        });
        Self { address, holds }
    }

    /// Holds responses back from now on.
    pub(super) fn hold(&self) {
        *self.holds.0.lock().unwrap() = true;
    }

    /// Forwards the responses that were held back: one round trip has passed.
    pub(super) fn release(&self) {
        *self.holds.0.lock().unwrap() = false;
        self.holds.1.notify_all();
    }
}

fn forward_responses(
    mut server: TcpStream,
    mut client: TcpStream,
    (holds, released): &(Mutex<bool>, Condvar),
) {
    let mut buffer = [0; 65_536];
    while let Ok(length @ 1..) = server.read(&mut buffer) {
        drop(released.wait_while(holds.lock().unwrap(), |holds| *holds).unwrap());
        if client.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = (server.shutdown(Shutdown::Both), client.shutdown(Shutdown::Both));
}
