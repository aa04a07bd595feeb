//! The bodies of requests and responses on their path through the gate. A body is read as fast as the
//! receiver takes the content: flow control of HTTP/2 passes through in both directions.

use super::failure::{EtcdFailure, cancelled};
use super::open_streams::OpenStream;
use super::prepared_share::RequestPlace;
use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};
use tower::BoxError;

/// The code of gRPC after which etcd's client repeats reads and resumes watches.
pub(super) const UNAVAILABLE: &str = "14";

/// When the gate ends a stream.
struct StreamEnd(Pin<Box<WaitForCancellationFutureOwned>>);

impl StreamEnd {
    fn new(end: CancellationToken) -> Self {
        Self(Box::pin(end.cancelled_owned()))
    }

    fn has_come(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll_unpin(context).is_ready()
    }
}

/// The body of a request.
pub(super) struct RequestBody {
    content: Incoming,
    end: Option<RequestEnd>,
}

/// The end of the requests of a stream. A reset towards etcd also ends the responses, and would cut the
/// message under way: the reset waits for the end of the response.
struct RequestEnd {
    stream: StreamEnd,
    response: StreamEnd,
}

impl RequestBody {
    pub(super) fn new(content: Incoming) -> Self {
        Self { content, end: None }
    }

    /// After `stream` no message of the client reaches etcd. The request is reset when `response` has come,
    /// too.
    pub(super) fn of_stream(
        content: Incoming,
        stream: &CancellationToken,
        response: &CancellationToken,
    ) -> Self {
        let [stream, response] = [stream, response].map(|end| StreamEnd::new(end.clone()));
        let end = Some(RequestEnd { stream, response });
        Self { content, end }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(end) = &mut self.end
            && end.stream.has_come(context)
        {
            return if end.response.has_come(context) {
                Poll::Ready(Some(Err(cancelled())))
            } else {
                Poll::Pending
            };
        }
        Pin::new(&mut self.content)
            .poll_frame(context)
            .map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

/// The body of a response.
pub(super) struct ResponseBody {
    /// `None` without a body, and after the gate has ended the stream.
    content: Option<Incoming>,
    /// `None` for a response with a single message.
    stream: Option<ResponseStream>,
    failure: Option<EtcdFailure>,
    /// Of a request with the certificate of a preparation. The content holds the place, too.
    place: Option<RequestPlace>,
}

/// Content that holds the place of its request until h2 has written the content to the socket of the client.
/// h2 takes a response into its buffer before the client reads, so the body ends earlier.
struct PlacedContent {
    content: Bytes,
    _place: RequestPlace,
}

impl PlacedContent {
    fn with_place(content: Bytes, place: &RequestPlace) -> Bytes {
        if content.is_empty() {
            return content;
        }
        Bytes::from_owner(Self {
            content,
            _place: place.clone(),
        })
    }
}

impl AsRef<[u8]> for PlacedContent {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

/// The responses of a stream.
struct ResponseStream {
    open: OpenStream,
    end: StreamEnd,
    position: MessagePosition,
    /// Reports the end of the response to the body of the request.
    _ended: DropGuard,
}

impl ResponseStream {
    /// Whether the gate ends the stream now. A client that gets a trailer within a message reports an
    /// internal error instead of the status.
    fn ends_now(&mut self, context: &mut Context<'_>) -> bool {
        self.position.is_between_messages() && self.end.has_come(context)
    }

    /// What the client gets of a frame: after the end of the stream, the rest of the message under way.
    fn pass(&mut self, frame: Frame<Bytes>, context: &mut Context<'_>) -> Frame<Bytes> {
        match frame.into_data() {
            Ok(mut data) => {
                if self.end.has_come(context) {
                    data.truncate(self.position.rest_of_message(&data));
                }
                self.position.advance(&data);
                self.open.record_message();
                Frame::data(data)
            }
            Err(frame) => frame,
        }
    }
}

impl ResponseBody {
    pub(super) fn empty() -> Self {
        Self {
            content: None,
            stream: None,
            failure: None,
            place: None,
        }
    }

    /// Holds the place of the request.
    pub(super) fn with_place(self, place: Option<RequestPlace>) -> Self {
        Self { place, ..self }
    }

    pub(super) fn new(content: Incoming, failure: &EtcdFailure) -> Self {
        Self {
            content: Some(content),
            failure: Some(failure.clone()),
            ..Self::empty()
        }
    }

    pub(super) fn of_stream(
        content: Incoming,
        failure: &EtcdFailure,
        open: OpenStream,
        ended: DropGuard,
    ) -> Self {
        let stream = ResponseStream {
            end: StreamEnd::new(open.end().clone()),
            open,
            position: MessagePosition::default(),
            _ended: ended,
        };
        Self {
            stream: Some(stream),
            ..Self::new(content, failure)
        }
    }

    /// Whether the gate ends the stream now. hyper asks for a frame when the client takes further content.
    fn ends_now(&mut self, context: &mut Context<'_>) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        stream.open.record_read();
        stream.ends_now(context)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ends_now(context) {
            (self.content, self.stream) = (None, None);
            let status = HeaderName::from_static("grpc-status");
            let trailers = HeaderMap::from_iter([(status, HeaderValue::from_static(UNAVAILABLE))]);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        let this = &mut *self;
        let Some(incoming) = &mut this.content else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(incoming).poll_frame(context));
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                let frame = match &mut this.stream {
                    Some(stream) => stream.pass(frame, context),
                    None => frame,
                };
                Some(Ok(match &this.place {
                    Some(place) => frame.map_data(|content| PlacedContent::with_place(content, place)),
                    None => frame,
                }))
            }
            Some(Err(error)) => Some(Err(match &this.failure {
                Some(failure) => failure.judge(error),
                None => error.into(),
            })),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.content.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Some(content) => content.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

/// Position in a sequence of gRPC messages: a byte of flags, four bytes of length, the message.
#[derive(Clone, Copy, Default)]
struct MessagePosition {
    /// Bytes of the head that were read.
    head: u8,
    length: u32,
    /// Bytes of the message that are missing.
    left: u32,
}

impl MessagePosition {
    const HEAD: u8 = 5;

    fn advance(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.left > 0 {
                let read = bytes.len().min(self.left as usize);
                self.left -= u32::try_from(read).unwrap_or(self.left);
                bytes = bytes.get(read..).unwrap_or_default();
                continue;
            }
            // The flags are shifted out by the length.
            self.length = (self.length << 8) | u32::from(*first);
            self.head += 1;
            if self.head == Self::HEAD {
                (self.head, self.left) = (0, self.length);
            }
            bytes = rest;
        }
    }

    /// Number of bytes up to the next end of a message, or of all bytes.
    fn rest_of_message(mut self, bytes: &[u8]) -> usize {
        let mut read = 0;
        for byte in bytes.chunks(1) {
            self.advance(byte);
            read += byte.len();
            if self.is_between_messages() {
                break;
            }
        }
        read
    }

    fn is_between_messages(&self) -> bool {
        self.head == 0 && self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_message_is_found_however_the_bytes_are_cut() {
        let messages: [&[u8]; 4] = [b"", b"a", &[7; 300], &[0; 9_000]];
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for message in messages {
            bytes.push(1);
            bytes.extend(u32::try_from(message.len()).unwrap_or_default().to_be_bytes());
            bytes.extend(message);
            ends.push(bytes.len());
        }
        for size in [1, 2, 3, 5, 7, 100, 16_384, bytes.len()] {
            let (mut position, mut read) = (MessagePosition::default(), 0);
            for chunk in bytes.chunks(size) {
                let end = ends.iter().find(|end| **end > read);
                let rest = end.map_or(chunk.len(), |end| chunk.len().min(end - read));
                assert_eq!(position.rest_of_message(chunk), rest, "{size}: {read}");
                position.advance(chunk);
                read += chunk.len();
                assert_eq!(
                    position.is_between_messages(),
                    ends.contains(&read),
                    "{size}: {read}"
                );
            }
        }
    }
}
