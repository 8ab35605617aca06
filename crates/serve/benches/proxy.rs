//! Benchmarks the latency that the proxy adds to a request.
//!
//! The load is 64 keep-alive connections; the upstream on this machine responds immediately, so that
//! all parts share the processors. Measured once at a fixed rate below capacity, and once at full
//! speed, where each request also waits for the 63 others.
//!
//! `cargo bench -p paceline-serve --bench proxy`; arguments: seconds of each run, requests per second.
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use paceline_serve::{Server, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval_at};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let seconds = Duration::from_secs(numbers.next().unwrap_or(5));
    let rate = u32::try_from(numbers.next().unwrap_or(2_000))?.max(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let upstream = upstream().await?;
        let config = paceline_serve::parse(&config(upstream))?;
        let limiter = config.limiter()?;
        let proxy = Server::bind(config, limiter, Tokens::default()).await?;
        for (name, rate) in [(format!("{rate}/s"), Some(rate)), ("full speed".into(), None)] {
            println!("{CONNECTIONS} connections, {name}");
            // Three alternating runs, so that other load on the machine affects both.
            let (mut direct, mut proxied) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                direct.extend(load(upstream, "", rate, seconds / 3).await?);
                proxied.extend(load(proxy.addr(), "/up", rate, seconds / 3).await?);
            }
            let (direct, proxied) =
                (print_latency("direct", direct), print_latency("through the proxy", proxied));
            println!("  added in the median: {:.3} ms\n", (proxied - direct) * 1e3);
        }
        Ok(())
    })
}

/// Sends requests over all connections, and returns the latency of each.
async fn load(
    addr: SocketAddr,
    prefix: &str,
    rate: Option<u32>,
    time: Duration,
) -> std::io::Result<Vec<Duration>> {
    let body = format!("{}{}\"}}]}}", BODY, "word ".repeat(200));
    let head = "content-type: application/json\r\nauthorization: Bearer sk-bench";
    let request = format!(
        "POST {prefix}/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let start = Instant::now() + Duration::from_millis(100);
    let mut tasks = Vec::new();
    for number in 0..CONNECTIONS {
        let (request, mut stream) = (request.clone(), TcpStream::connect(addr).await?);
        stream.set_nodelay(true)?;
        tasks.push(tokio::spawn(async move {
            let pause = rate.map(|rate| Duration::from_secs(1) * CONNECTIONS / rate);
            let first = start + pause.unwrap_or_default() * number / CONNECTIONS;
            let mut turn = interval_at(first.into(), pause.unwrap_or(Duration::from_secs(1)));
            turn.set_missed_tick_behavior(MissedTickBehavior::Skip);
            let (mut latencies, mut response) = (Vec::new(), Vec::with_capacity(4_096));
            while Instant::now() < start + time {
                if rate.is_some() {
                    turn.tick().await;
                }
                let sent = Instant::now();
                stream.write_all(request.as_bytes()).await?;
                read(&mut stream, &mut response).await?;
                latencies.push(sent.elapsed());
            }
            // The first requests open connections.
            Ok::<_, std::io::Error>(latencies.split_off(latencies.len().min(3)))
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.map_err(std::io::Error::other)??);
    }
    Ok(all)
}

/// Prints the percentiles, and returns the median in seconds.
fn print_latency(name: &str, mut latencies: Vec<Duration>) -> f64 {
    latencies.sort_unstable();
    let of = |part: usize| latencies[(latencies.len() * part / 1_000).min(latencies.len() - 1)];
    let [median, p90, p99] = [500, 900, 990].map(of);
    let count = latencies.len();
    println!("  {name:>17}: median {median:?}, p90 {p90:?}, p99 {p99:?} of {count}");
    median.as_secs_f64()
}

/// Responds to every request immediately with the same completion.
async fn upstream() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move {
                let length = RESPONSE.len();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
                let response = format!("{head}\r\ncontent-length: {length}\r\n\r\n{RESPONSE}");
                let mut request = Vec::with_capacity(4_096);
                while read(&mut stream, &mut request).await.is_ok() {
                    if stream.write_all(response.as_bytes()).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    Ok(addr)
}

/// Reads one message with a `content-length`.
async fn read(stream: &mut TcpStream, text: &mut Vec<u8>) -> std::io::Result<()> {
    text.clear();
    let mut whole = None;
    while whole.is_none_or(|whole| text.len() < whole) {
        if stream.read_buf(text).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let end = memchr::memmem::find(text, b"\r\n\r\n").map(|at| at + 4);
        whole = whole.or_else(|| Some(end? + length(&text[..end?])));
    }
    Ok(())
}

fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    value.and_then(|length| length.trim().parse().ok()).unwrap_or(0)
}

fn config(upstream: SocketAddr) -> String {
    format!(
        "providers: [openai]
quotas: {{gpt-4o: {{rpm: 600000000, tpm: 600000000000}}}}
serve:
  listen: '127.0.0.1:0'
  upstreams: {{up: {{base_url: 'http://{upstream}', provider: openai}}}}"
    )
}

const CONNECTIONS: u32 = 64;

const BODY: &str =
    r#"{"model": "gpt-4o", "max_tokens": 100, "messages": [{"role": "user", "content": ""#;

const RESPONSE: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1763770000,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Paris is the capital of France, and has been for most of its history."},"finish_reason":"stop"}],"usage":{"prompt_tokens":214,"completion_tokens":16,"total_tokens":230}}"#;
