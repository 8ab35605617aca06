use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Starts a TCP proxy that delays all bytes by half of a round trip in each direction, and returns its
/// address. It ends with the process.
pub(crate) fn delayed(server: SocketAddr, round_trip: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(server) else { continue };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            forward(client, server, round_trip / 2);
            forward(back.0, back.1, round_trip / 2);
        }
    });
    address
}

fn forward(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, chunks) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + delay, buffer[..read].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in chunks {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
    });
}
