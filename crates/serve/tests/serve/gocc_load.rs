//! Exact counts under concurrent load.

use reqwest::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::rig::{HttpReply, Rig, http2};

/// Sends requests over HTTP/2 from several tasks, and returns the number of grants.
async fn storm(client: &Client, tasks: usize, each: usize, url: impl Fn(usize) -> String) -> usize {
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let urls: Vec<_> = (0..each).map(|at| url(task * each + at)).collect();
            let client = client.clone();
            tokio::spawn(async move {
                let mut granted = 0;
                for url in urls {
                    granted += usize::from(HttpReply::of(client.post(url)).await.status == 200);
                }
                granted
            })
        })
        .collect();
    sum(tasks).await
}

/// Sends pipelined requests over several HTTP/1.1 connections, and returns the number of grants.
async fn pipelined(
    rig: &Rig,
    connections: usize,
    each: usize,
    key: impl Fn(usize) -> String,
) -> usize {
    let tasks: Vec<_> = (0..connections)
        .map(|connection| {
            let request = |at| {
                let close = if at + 1 == each { "connection: close\r\n" } else { "" };
                let key = key(connection * each + at);
                format!("POST /rate/{key} HTTP/1.1\r\nhost: localhost\r\n{close}\r\n")
            };
            let requests: String = (0..each).map(request).collect();
            let addr = rig.addr;
            tokio::spawn(async move {
                let (mut read, mut write) = TcpStream::connect(addr).await.unwrap().into_split();
                let writing = async { write.write_all(requests.as_bytes()).await.unwrap() };
                let mut responses = Vec::new();
                let (_, read) = tokio::join!(writing, read.read_to_end(&mut responses));
                read.unwrap();
                let responses = String::from_utf8(responses).unwrap();
                assert_eq!(responses.matches("HTTP/1.1 ").count(), each);
                responses.matches("HTTP/1.1 200 OK").count()
            })
        })
        .collect();
    sum(tasks).await
}

async fn sum(tasks: Vec<tokio::task::JoinHandle<usize>>) -> usize {
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_of_one_key_respect_the_limit() {
    let rig = Rig::new("max_requests: 5000").await;
    assert_eq!(storm(&http2(), 100, 60, |_| rig.url("/rate/k")).await, 5_000);
    assert_eq!(pipelined(&rig, 50, 200, |_| "l".to_owned()).await, 5_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_of_many_keys_respect_each_limit() {
    let rig = Rig::new("max_requests: 40").await;
    assert_eq!(pipelined(&rig, 50, 200, |at| format!("k-{}", at % 100)).await, 4_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundred_thousand_http_requests_are_answered() {
    let rig = Rig::new("max_requests: 1000000").await;
    let granted = pipelined(&rig, 10, 10_000, |at| format!("k-{}", at % 100)).await;
    assert_eq!(granted, 100_000);
    let all = rig.get("/debug").await.json();
    let instances = all["Instances"].as_object().unwrap();
    let approved = |one: &serde_json::Value| one["NumApprovedThisWindow"].as_u64().unwrap();
    assert_eq!(instances.values().map(approved).sum::<u64>(), 100_000);
}
