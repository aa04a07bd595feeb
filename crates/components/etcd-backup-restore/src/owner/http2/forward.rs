//! A request on its path through the gate.

use super::body::{RequestBody, ResponseBody, UNAVAILABLE};
use super::etcd_connection::EtcdConnection;
use super::prepared_share::{PreparedRefusal, PreparedShare, RequestPlace};
use super::request_class::RequestClass;
use super::tasks::TaskAdder;
use super::traffic::{GateTraffic, HeldTooLong};
use crate::metrics::GateMetrics;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::rt::Executor;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// gRPC's code FAILED_PRECONDITION.
const FAILED_PRECONDITION: &str = "9";

/// etcd would take the certificate of this process for the user of every request.
const ENABLE_AUTHENTICATION: &str = "/etcdserverpb.Auth/AuthEnable";

/// The connection of a client.
pub(super) struct ClientConnection {
    pub(super) etcd: EtcdConnection,
    pub(super) traffic: Arc<GateTraffic>,
    pub(super) tasks: TaskAdder,
    /// `None` for a process of this seed.
    pub(super) share: Option<Arc<PreparedShare>>,
    pub(super) metrics: GateMetrics,
}

type Forwarded = Result<Response<ResponseBody>, BoxError>;

impl ClientConnection {
    /// Passes a request to etcd and the response to the client.
    pub(super) async fn forward(self: Arc<Self>, request: Request<Incoming>) -> Forwarded {
        let class = RequestClass::of_request(&request);
        self.metrics.request(class);
        if request.method() == Method::CONNECT {
            return Ok(refusal(StatusCode::METHOD_NOT_ALLOWED));
        }
        // h2 cannot send such a request to etcd, and the failure would end the connection.
        if request.uri().authority().is_none() {
            return Ok(refusal(StatusCode::BAD_REQUEST));
        }
        let is_grpc = is_grpc(&request);
        let share = self.share.as_ref();
        // `None` for a process of this seed.
        let place = match share.map(|share| share.admit_request(&request)).transpose() {
            Ok(place) => place,
            Err(refused) => return Ok(self.refuse(refused, is_grpc)),
        };
        if request.uri().path() == ENABLE_AUTHENTICATION && self.etcd.tls.etcd.is_some() {
            let why = "the gate does not pass the identity of clients on: etcd cannot authenticate users";
            return Ok(grpc_status(FAILED_PRECONDITION, why));
        }
        let forwarded = match class {
            RequestClass::Write => self.write(request, place).await,
            RequestClass::Read => self.read(request, place).await,
            RequestClass::Stream => self.stream(request, place).await,
        };
        match forwarded {
            Err(Failure::Ended(why)) if is_grpc => Ok(grpc_status(UNAVAILABLE, why)),
            Err(Failure::Ended(_)) => Ok(refusal(StatusCode::SERVICE_UNAVAILABLE)),
            Err(Failure::Etcd(error)) => Err(error),
            Ok(response) => Ok(response),
        }
    }

    /// The answer to a request of a preparation that the share refuses.
    fn refuse(&self, refused: PreparedRefusal, is_grpc: bool) -> Response<ResponseBody> {
        self.metrics.prepared_request_refused(refused);
        if is_grpc {
            let (code, message) = refused.grpc_status();
            grpc_status(code, message)
        } else {
            refusal(refused.http_status())
        }
    }

    /// The write goes on where the client gives up: etcd may have begun with the write.
    async fn write(
        self: Arc<Self>,
        request: Request<Incoming>,
        place: Option<RequestPlace>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let write = self.traffic.admit_write().await?;
        let (answer, answered) = oneshot::channel();
        let (sending, held) = (self.clone(), place.clone());
        self.tasks.execute(async move {
            let sent = sending.etcd.send(request.map(RequestBody::new)).await;
            // etcd sends the head when the write is done.
            drop((write, held));
            let _ = answer.send(sent);
        });
        // The tasks end with the connection only.
        let sent = answered.await.map_err(|gone| Failure::Etcd(gone.into()))?;
        Ok(self.passed(sent?, place))
    }

    async fn read(
        &self,
        request: Request<Incoming>,
        place: Option<RequestPlace>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let open = self.traffic.admit().await?;
        // A request that was held, and was given up, is no hash.
        if let Some(share) = &self.share
            && let Err(refused) = share.admit_hash(&request)
        {
            return Ok(self.refuse(refused, is_grpc(&request)));
        }
        let response = until(open.end(), self.etcd.send(request.map(RequestBody::new))).await?;
        Ok(self.passed(response, place))
    }

    async fn stream(
        &self,
        request: Request<Incoming>,
        place: Option<RequestPlace>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let open = self.traffic.admit().await?;
        let response_ended = CancellationToken::new();
        let request = request.map(|content| RequestBody::of_stream(content, open.end(), &response_ended));
        let ended = response_ended.drop_guard();
        let response = until(open.end(), self.etcd.send(request)).await?;
        let failure = &self.etcd.failure;
        Ok(response.map(|content| ResponseBody::of_stream(content, failure, open, ended).with_place(place)))
    }

    fn passed(&self, response: Response<Incoming>, place: Option<RequestPlace>) -> Response<ResponseBody> {
        response.map(|content| ResponseBody::new(content, &self.etcd.failure).with_place(place))
    }
}

/// Why no response of etcd is passed on.
enum Failure {
    /// The gate answers.
    Ended(&'static str),
    /// The stream is reset with this error's reason.
    Etcd(BoxError),
}

impl From<HeldTooLong> for Failure {
    fn from(_: HeldTooLong) -> Self {
        Self::Ended("the gate in front of etcd holds requests")
    }
}

impl From<BoxError> for Failure {
    fn from(error: BoxError) -> Self {
        Self::Etcd(error)
    }
}

async fn until<T>(
    end: &CancellationToken,
    sending: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = end.cancelled() => Err(Failure::Ended("the gate in front of etcd has ended the request")),
        sent = sending => Ok(sent?),
    }
}

fn is_grpc<B>(request: &Request<B>) -> bool {
    let content = request.headers().get(CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc"))
}

/// A response of the gate: the status in the head, and no body.
fn grpc_status(code: &'static str, message: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from_static(code));
    headers.insert("grpc-message", HeaderValue::from_static(message));
    response
}

fn refusal(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = status;
    response
}
