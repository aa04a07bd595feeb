//! Requests and streams on their path.

use super::fixture::{
    Client, PATIENCE, PUT, RANGE, WATCH, World, content, in_time, read, send_until_stopped, trailers,
};
use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, Request, Response};
use std::future::poll_fn;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What the gate and the kernel may hold of a stream while the receiver takes nothing.
const BUFFERED: usize = 4 << 20;

#[tokio::test]
async fn headers_messages_trailers_and_status_pass_unchanged() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let request = Request::post(format!("http://etcd-main-client:2379{PUT}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "5S")
        .header("user-agent", "grpc-go/1.71")
        .header("token", "a.b");
    let mut asked = client.send(request.body(()).unwrap()).await;
    let question = vec![7; 900_000];
    let sending = async {
        let mut left = Bytes::from(question.clone());
        while !left.is_empty() {
            asked.body.reserve_capacity(left.len());
            let capacity = in_time(poll_fn(|context| asked.body.poll_capacity(context))).await;
            let piece = left.split_to(capacity.unwrap().unwrap());
            asked.body.send_data(piece, left.is_empty()).unwrap();
        }
    };
    let answering = async {
        let mut arrived = world.etcd.next().await;
        let received = content(arrived.request.body_mut()).await;
        assert!(received == question);
        arrived
    };
    let ((), mut arrived) = tokio::join!(sending, answering);
    let headers = arrived.request.headers();
    assert_eq!(
        arrived.request.uri().to_string(),
        format!("http://etcd-main-client:2379{PUT}")
    );
    for (name, value) in [
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("grpc-timeout", "5S"),
        ("user-agent", "grpc-go/1.71"),
        ("token", "a.b"),
    ] {
        assert_eq!(headers[name], value);
    }
    assert_eq!(headers.len(), 5, "{headers:?}");
    let head = Response::builder()
        .header("content-type", "application/grpc")
        .header("x", "y");
    let mut stream = arrived
        .respond
        .send_response(head.body(()).unwrap(), false)
        .unwrap();
    stream.send_data(Bytes::from_static(b"answer"), false).unwrap();
    let mut status = trailers("11");
    status.insert(
        "grpc-message",
        "etcdserver: revision has been compacted".parse().unwrap(),
    );
    stream.send_trailers(status.clone()).unwrap();
    let response = in_time(asked.response).await.unwrap();
    assert_eq!(
        (response.headers().len(), &response.headers()["x"]),
        (2, &"y".parse().unwrap())
    );
    let mut body = response.into_body();
    assert_eq!(content(&mut body).await, b"answer");
    assert_eq!(body.trailers().await.unwrap().unwrap(), status);
    world.shows("etcdbr_gate_requests_total{class=\"write\"} 1").await;
    world.shows("etcdbr_gate_writes_under_way 0").await;
}

/// An error of etcd comes without a body: its status is in the head.
#[tokio::test]
async fn a_status_without_a_body_passes() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let asked = client.call(RANGE).await;
    let mut arrived = world.etcd.next().await;
    let head = Response::builder().header("grpc-status", "14").body(()).unwrap();
    arrived.respond.send_response(head, true).unwrap();
    let response = in_time(asked.response).await.unwrap();
    assert!(response.body().is_end_stream());
    assert_eq!(read(response).await, (Vec::new(), "14".to_owned()));
}

/// A watch and a lease keep-alive: messages in both directions, in any order.
#[tokio::test]
async fn a_stream_carries_messages_in_both_directions() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let mut asked = client.ask(WATCH).await;
    let mut arrived = world.etcd.next().await;
    let mut etcd = arrived.begin();
    let mut response = in_time(asked.response).await.unwrap().into_body();
    for _ in 0..50 {
        asked
            .body
            .send_data(Bytes::from_static(b"create"), false)
            .unwrap();
        let asked = in_time(arrived.request.body_mut().data()).await.unwrap().unwrap();
        assert_eq!(asked, "create");
        arrived
            .request
            .body_mut()
            .flow_control()
            .release_capacity(6)
            .unwrap();
        etcd.send_data(Bytes::from_static(b"event"), false).unwrap();
        let event = in_time(response.data()).await.unwrap().unwrap();
        assert_eq!(event, "event");
        response.flow_control().release_capacity(5).unwrap();
    }
    // The client ends its direction, and etcd the stream.
    asked.body.send_data(Bytes::new(), true).unwrap();
    assert!(content(arrived.request.body_mut()).await.is_empty());
    etcd.send_trailers(trailers("0")).unwrap();
    assert!(content(&mut response).await.is_empty());
    assert_eq!(response.trailers().await.unwrap().unwrap()["grpc-status"], "0");
}

#[tokio::test]
async fn a_reset_passes_with_its_reason_in_both_directions() {
    let mut world = World::begin().await;
    let client = world.client().await;
    for reason in [
        Reason::CANCEL,
        Reason::REFUSED_STREAM,
        Reason::INTERNAL_ERROR,
        Reason::ENHANCE_YOUR_CALM,
    ] {
        // etcd resets a request, and a stream.
        let asked = client.call(RANGE).await;
        world.etcd.next().await.respond.send_reset(reason);
        assert_eq!(in_time(asked.response).await.unwrap_err().reason(), Some(reason));
        let asked = client.ask(WATCH).await;
        let mut arrived = world.etcd.next().await;
        let mut etcd = arrived.begin();
        let mut response = in_time(asked.response).await.unwrap().into_body();
        etcd.send_reset(reason);
        let reset = in_time(response.data()).await.unwrap().unwrap_err();
        assert_eq!(reset.reason(), Some(reason));
        // The client resets a stream.
        let mut asked = client.ask(WATCH).await;
        let mut arrived = world.etcd.next().await;
        let mut etcd = arrived.begin();
        asked.body.send_reset(reason);
        let reset = in_time(arrived.request.body_mut().data())
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(reset.reason(), Some(reason));
        in_time(poll_fn(|context| etcd.poll_reset(context)))
            .await
            .unwrap();
    }
    // A read that the client gives up is given up at etcd.
    let mut asked = client.call(RANGE).await;
    let mut arrived = world.etcd.next().await;
    asked.body.send_reset(Reason::CANCEL);
    let reset = in_time(poll_fn(|context| arrived.respond.poll_reset(context))).await;
    assert_eq!(reset.unwrap(), Reason::CANCEL);
    // The connection goes on.
    let asked = client.call(RANGE).await;
    world.etcd.next().await.answer(b"answer");
    assert_eq!(read(in_time(asked.response).await.unwrap()).await.0, b"answer");
}

#[tokio::test]
async fn an_etcd_that_ends_its_connection_in_order_costs_no_request() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let mut under_way = client.call(WATCH).await;
    let mut first = world.etcd.next().await;
    let mut stream = first.begin();
    world.etcd.says_goodbye();
    // Each request after the GOAWAY goes to a new connection.
    let mut connections = Vec::new();
    for _ in 0..20 {
        let asked = client.call(PUT).await;
        let arrived = world.etcd.next().await;
        connections.push(arrived.connection);
        arrived.answer(b"answer");
        assert_eq!(read(in_time(asked.response).await.unwrap()).await.1, "0");
    }
    assert!(
        connections.ends_with(&[1]) && connections.is_sorted(),
        "{connections:?}"
    );
    stream.send_data(Bytes::from_static(b"event"), false).unwrap();
    stream.send_trailers(trailers("0")).unwrap();
    let response = in_time(&mut under_way.response).await.unwrap();
    assert_eq!(read(response).await, (b"event".to_vec(), "0".to_owned()));
}

#[tokio::test]
async fn a_client_is_cut_where_its_connection_to_etcd_breaks() {
    let mut world = World::begin().await;
    let mut client = world.client().await;
    let asked = client.call(PUT).await;
    let arrived = world.etcd.next().await;
    world.etcd.breaks().await;
    in_time(asked.response).await.unwrap_err();
    client.end().await.unwrap_err();
    drop(arrived);
    world
        .shows("etcdbr_gate_connections_total{result=\"broken\"} 1")
        .await;
    world.shows("etcdbr_gate_open_connections 0").await;
    // etcd is gone: a client is cut at once.
    let stream = TcpStream::connect(world.address).await.unwrap();
    let mut end = [0; 64];
    let read = in_time(async {
        stream.readable().await.unwrap();
        stream.try_read(&mut end)
    });
    assert!(!matches!(read.await, Ok(1..)));
}

#[tokio::test]
async fn a_thousand_streams_of_a_connection_run_side_by_side() {
    const STREAMS: usize = 1_000;
    let mut world = World::begin().await;
    let client = world.client().await;
    let (mut asked, mut arrived) = (Vec::new(), Vec::new());
    for _ in 0..STREAMS {
        asked.push(client.ask(WATCH).await);
    }
    for _ in 0..STREAMS {
        let mut stream = world.etcd.next().await;
        let body = stream.begin();
        arrived.push((stream, body));
    }
    for (_, etcd) in arrived.iter_mut().rev() {
        etcd.send_data(Bytes::from_static(b"event"), false).unwrap();
    }
    for asked in &mut asked {
        let mut response = in_time(&mut asked.response).await.unwrap().into_body();
        assert_eq!(in_time(response.data()).await.unwrap().unwrap(), "event");
    }
}

/// The sender of each direction is stopped when the receiver takes nothing, and other streams go on.
#[tokio::test]
async fn a_slow_receiver_stops_the_sender_and_no_other_stream() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let mut slow = Vec::new();
    for _ in 0..10 {
        let asked = client.ask(WATCH).await;
        let mut arrived = world.etcd.next().await;
        let mut etcd = arrived.begin();
        let response = in_time(asked.response).await.unwrap();
        let sent = send_until_stopped(&mut etcd).await;
        assert!(sent < BUFFERED, "the gate has taken {sent} bytes");
        slow.push((asked.body, arrived, etcd, response));
        if slow.len() == 2 {
            let sent = send_until_stopped(&mut slow[0].0).await;
            assert!(sent < BUFFERED, "the gate has taken {sent} bytes");
        }
    }
    let other = timeout(PATIENCE, async {
        let asked = client.call(RANGE).await;
        world.etcd.next().await.answer(b"answer");
        read(asked.response.await.unwrap()).await
    });
    assert_eq!(other.await.unwrap().0, b"answer");
    // The first of the slow streams is read in the end.
    let (_, _, mut etcd, response) = slow.remove(0);
    let mut body = response.into_body();
    etcd.send_reset(Reason::NO_ERROR);
    let chunk = in_time(body.data()).await;
    assert!(chunk.is_some());
}

/// A response of hundreds of MB passes, with no more memory than the windows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_response_streams() {
    const SIZE: usize = 200 << 20;
    let mut world = World::begin().await;
    let client = world.client().await;
    let asked = client.call(RANGE).await;
    let mut arrived = world.etcd.next().await;
    let mut etcd = arrived.begin();
    let sending = async {
        let mut left = SIZE;
        while left > 0 {
            etcd.reserve_capacity(left.min(64 << 10));
            let capacity = in_time(poll_fn(|context| etcd.poll_capacity(context))).await;
            let piece = capacity.unwrap().unwrap().min(left);
            etcd.send_data(vec![1; piece].into(), false).unwrap();
            left -= piece;
        }
        etcd.send_trailers(HeaderMap::new()).unwrap();
    };
    let receiving = async {
        let mut body = in_time(asked.response).await.unwrap().into_body();
        let mut received = 0;
        while let Some(chunk) = in_time(body.data()).await {
            received += chunk.as_ref().unwrap().len();
            body.flow_control()
                .release_capacity(chunk.unwrap().len())
                .unwrap();
        }
        received
    };
    let ((), received) = tokio::join!(sending, receiving);
    assert_eq!(received, SIZE);
}

#[tokio::test]
async fn headers_that_are_too_large_end_their_request_only() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let request = Request::post(format!("http://etcd{PUT}")).header("token", "x".repeat(100_000));
    let asked = client.send(request.body(()).unwrap()).await;
    let refused = in_time(asked.response).await;
    assert!(
        refused.as_ref().is_err() || refused.as_ref().is_ok_and(|refused| refused.status() == 431),
        "{refused:?}"
    );
    let asked = client.call(PUT).await;
    world.etcd.next().await.answer(b"answer");
    assert_eq!(read(in_time(asked.response).await.unwrap()).await.0, b"answer");
}

#[tokio::test]
async fn a_request_without_an_authority_ends_alone() {
    let mut world = World::begin().await;
    let client = world.client().await;
    // h2 takes the request for one of HTTP/1.1, and sends no `:authority`.
    let request = Request::post(PUT).body(()).unwrap();
    let response = in_time(client.send(request).await.response).await.unwrap();
    assert_eq!(response.status(), 400);
    assert!(!world.etcd.has_arrived());
    let asked = client.call(PUT).await;
    world.etcd.next().await.answer(b"answer");
    assert_eq!(read(in_time(asked.response).await.unwrap()).await.0, b"answer");
}

#[tokio::test]
async fn connect_is_refused() {
    let world = World::begin().await;
    let client: Client = world.client().await;
    let request = Request::connect("etcd:2379").body(()).unwrap();
    let response = in_time(client.send(request).await.response).await.unwrap();
    assert_eq!(response.status(), 405);
}
