//! Reads answers of API servers within bounds. Each answer is [`skimmed`]. For a cluster with untrusted
//! users, an answer beyond the size limit is rejected. A list with such an answer is requested again with a
//! smaller `limit`, down to 1. The reader still gets pages, only smaller pages.
//!
//! For a server that a tenant names, the whole answer has a time limit. Each byte of a slow server would
//! extend a timeout for a single read.

use std::{future::Future, num::NonZeroU32, time::Duration};

use http::{HeaderValue, Method, Request, Response, Uri, header::ACCEPT_ENCODING};
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body as Frames, Bytes};
use kube::client::Body;
use tokio::time::timeout;
use tower::BoxError;

use crate::bounds::{
    pruning::{Skimmed, Without, skimmed},
    unzip::Unzip,
};

/// Values of `limit` for the retries of a list page that is too large.
const FEWER: [u32; 2] = [10, 1];

/// A body of an answer: that of a list was read already.
pub(crate) type Answer<B> = Either<Limited<Skimmed<B>>, Full<Bytes>>;

/// The limits for reading answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers {
    /// Maximum bytes of an answer. The answer of a watch has no end, so no limit applies to a watch, except
    /// with a time limit.
    pub(crate) most: usize,
    pub(crate) without: Without,
    /// See [`Answers::within`], in milliseconds. A `Duration` would make each client larger.
    pub(crate) within: Option<NonZeroU32>,
    /// Whether the server may compress answers. `most` bounds the decompressed answer only piece by piece, so
    /// this is for servers that the caller trusts.
    pub(crate) zipped: bool,
}

/// The server was too slow.
#[derive(Debug, thiserror::Error)]
#[error("the server sent no complete answer within {0:?}")]
struct IncompleteAnswer(Duration);

impl Answers {
    /// All that can be read.
    pub(crate) const WHOLE: Self = Self {
        most: usize::MAX,
        without: Without::Nothing,
        within: None,
        zipped: false,
    };

    /// With a maximum time of a request and the whole answer; of a watch, the time until the answer begins.
    pub(crate) fn within(self, limit: Duration) -> Self {
        let milliseconds = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        Self {
            within: NonZeroU32::new(milliseconds.max(1)),
            ..self
        }
    }

    fn read<B: Frames<Data = Bytes>>(self, answer: Response<B>) -> Response<Limited<Skimmed<B>>> {
        let (head, body) = answer.into_parts();
        // A hostile server could send a small answer that fills the memory.
        let unzip = self.zipped.then(|| Unzip::new(&head.headers)).flatten();
        let body = skimmed(body, &head.headers, self.without, unzip);
        Response::from_parts(head, Limited::new(body, self.most))
    }
}

/// Sends a request by `send`.
pub(crate) async fn ask<B, E, Sent>(
    mut request: Request<Body>,
    answers: Answers,
    send: impl Fn(Request<Body>) -> Sent,
) -> Result<Response<Answer<B>>, BoxError>
where
    B: Frames<Data = Bytes>,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
    Sent: Future<Output = Result<Response<B>, E>>,
{
    // The events of a watch are small, and compression would hold events back.
    if answers.zipped && !is_watch(&request) {
        let gzip = HeaderValue::from_static("gzip");
        request.headers_mut().insert(ACCEPT_ENCODING, gzip);
    }
    let Some(within) = answers.within else {
        return ask_in_pages(request, answers, send).await;
    };
    let within = Duration::from_millis(within.get().into());
    let is_watch = is_watch(&request);
    let answered = async {
        let answer = ask_in_pages(request, answers, send).await?;
        if is_watch {
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        let whole = Full::new(body.collect().await?.to_bytes());
        Ok(Response::from_parts(head, Either::Right(whole)))
    };
    let answered = timeout(within, answered).await;
    answered.unwrap_or_else(|_| Err(IncompleteAnswer(within).into()))
}

fn is_watch<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|part| part == "watch=true")
}

async fn ask_in_pages<B, E, Sent>(
    request: Request<Body>,
    mut answers: Answers,
    send: impl Fn(Request<Body>) -> Sent,
) -> Result<Response<Answer<B>>, BoxError>
where
    B: Frames<Data = Bytes>,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
    Sent: Future<Output = Result<Response<B>, E>>,
{
    if is_watch(&request) && answers.within.is_none() {
        answers.most = usize::MAX;
    }
    let Some(size) = size_of(&request).filter(|_| answers.most != usize::MAX) else {
        let answer = send(request).await.map_err(Into::into)?;
        return Ok(answers.read(answer).map(Either::Left));
    };
    let (head, _nothing) = request.into_parts();
    let mut fewer = FEWER.into_iter().filter(|fewer| *fewer < size);
    let mut uri = head.uri.clone();
    loop {
        let mut again = Request::new(Body::empty());
        (*again.method_mut(), *again.uri_mut()) = (Method::GET, uri);
        again.headers_mut().clone_from(&head.headers);
        let (answer, body) = answers.read(send(again).await.map_err(Into::into)?).into_parts();
        match body.collect().await {
            Ok(whole) => {
                let whole = Full::new(whole.to_bytes());
                return Ok(Response::from_parts(answer, Either::Right(whole)));
            }
            Err(error) if error.is::<LengthLimitError>() => match fewer.next() {
                Some(fewer) => uri = of_size(&head.uri, fewer)?,
                None => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
}

/// How many objects of a list are asked for.
fn size_of<B>(request: &Request<B>) -> Option<u32> {
    let query = request
        .uri()
        .query()
        .filter(|_| request.method() == Method::GET)?;
    query
        .split('&')
        .find_map(|part| part.strip_prefix("limit="))?
        .parse()
        .ok()
}

fn of_size(uri: &Uri, size: u32) -> Result<Uri, BoxError> {
    let parts = uri.query().unwrap_or_default().split('&');
    let others = parts.filter(|part| !part.starts_with("limit="));
    let query: Vec<String> = others
        .map(str::to_owned)
        .chain([format!("limit={size}")])
        .collect();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{}?{}", uri.path(), query.join("&")).parse()?);
    Ok(Uri::from_parts(parts)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        convert::Infallible,
        io::Write as _,
        sync::{Arc, Mutex},
    };

    use flate2::{Compression, write::GzEncoder};
    use http::header::CONTENT_ENCODING;

    use super::*;

    /// The URIs of all requests, and the result from a fake server whose objects have 100 bytes each.
    async fn asked(method: Method, uri: &str, most: usize) -> (Vec<String>, Result<usize, BoxError>) {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let mut request = Request::new(Body::empty());
        (*request.method_mut(), *request.uri_mut()) = (method, uri.parse().unwrap());
        let answers = Answers {
            most,
            ..Answers::WHOLE
        };
        let answer = ask(request, answers, |request| {
            let sent = Arc::clone(&sent);
            async move {
                let size = size_of(&request).unwrap_or(1).min(30);
                sent.lock().unwrap().push(request.uri().to_string());
                let body = Full::new(Bytes::from(vec![b'x'; 100 * size as usize]));
                Ok::<_, Infallible>(Response::new(body))
            }
        });
        let read = async { length_of(answer.await?).await };
        let read = read.await;
        let sent = sent.lock().unwrap().clone();
        (sent, read)
    }

    async fn length_of(answer: Response<Answer<Full<Bytes>>>) -> Result<usize, BoxError> {
        Ok(answer.into_body().collect().await?.to_bytes().len())
    }

    #[tokio::test]
    async fn a_list_that_is_too_large_is_asked_for_in_smaller_parts() {
        let list = "/api/v1/pods?labelSelector=a%3Db&limit=50&continue=c";
        for (most, sizes, length) in [
            (10_000, vec![50], Some(3000)),
            (2999, vec![50, 10], Some(1000)),
            (100, vec![50, 10, 1], Some(100)),
            (99, vec![50, 10, 1], None),
        ] {
            let (sent, read) = asked(Method::GET, list, most).await;
            let of: Vec<_> = sent
                .iter()
                .map(|uri| size_of(&Request::get(uri).body(()).unwrap()).unwrap())
                .collect();
            assert_eq!((of, read.ok()), (sizes, length), "{most}");
            let smallest = sent.last().unwrap();
            assert!(
                smallest.contains("labelSelector=a%3Db") && smallest.contains("continue=c"),
                "{smallest}"
            );
        }
    }

    /// A wait of the caller bounds the time of a watch.
    #[tokio::test]
    async fn a_tenants_answer_is_read_whole_and_a_watch_in_pieces() {
        let answers = Answers {
            most: 99,
            ..Answers::WHOLE
        };
        let answers = answers.within(Duration::from_secs(60));
        for (uri, size, is_whole, is_read) in [
            ("/api/v1/pods/a", 99, true, true),
            ("/api/v1/pods?watch=true", 99, false, true),
            ("/api/v1/pods?watch=true", 100, false, false),
        ] {
            let request = Request::get(uri).body(Body::empty()).unwrap();
            let send = |_| async move {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(vec![b'x'; size]))))
            };
            let answer = ask(request, answers, send).await.unwrap();
            assert_eq!(matches!(answer.body(), Either::Right(_)), is_whole, "{uri}");
            assert_eq!(length_of(answer).await.is_ok(), is_read, "{uri} {size}");
        }
    }

    #[tokio::test]
    async fn only_answers_of_trusted_servers_are_decompressed() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&[b'x'; 5000]).unwrap();
        let zipped = encoder.finish().unwrap();
        for (uri, accepts, is_asked, length) in [
            ("/api/v1/pods", true, true, 5000),
            ("/api/v1/pods", false, false, zipped.len()),
            ("/api/v1/pods?watch=true", true, false, 5000),
        ] {
            let answers = Answers {
                zipped: accepts,
                ..Answers::WHOLE
            };
            let request = Request::get(uri).body(Body::empty()).unwrap();
            let body = zipped.clone();
            let send = |request: Request<Body>| {
                let asks = request.headers().get(ACCEPT_ENCODING);
                assert_eq!(asks.is_some_and(|asks| asks == "gzip"), is_asked, "{uri}");
                let answer = Response::builder().header(CONTENT_ENCODING, "gzip");
                let answer = answer.body(Full::new(Bytes::from(body.clone()))).unwrap();
                async move { Ok::<_, Infallible>(answer) }
            };
            let answer = ask(request, answers, send).await.unwrap();
            assert_eq!(length_of(answer).await.unwrap(), length, "{uri}");
        }
    }

    #[tokio::test]
    async fn all_else_is_asked_once() {
        for (method, uri, is_bounded) in [
            (Method::GET, "/api/v1/pods/a", true),
            (Method::GET, "/api/v1/pods?watch=true&limit=50", false),
            (Method::PATCH, "/api/v1/pods/a?fieldManager=m", true),
            (Method::DELETE, "/api/v1/pods?limit=50", true),
        ] {
            let (sent, read) = asked(method, uri, 99).await;
            assert_eq!(sent, [uri]);
            assert_eq!(read.is_err(), is_bounded, "{uri}");
        }
    }
}
