//! EC2 with a sick zone: moto behind a server that changes some answers and records all calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use aws_fixture::answers;
use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use runtime::clock;
use testkit::Moto;
use tokio::{net::TcpListener, task::JoinSet};

/// More than a call of the provider carries.
const LARGEST: usize = 1 << 20;

/// An answer that differs from the answer of moto.
#[derive(Clone, Debug)]
pub enum SickAnswer {
    /// A terminated instance is reported as `shutting-down` for ever.
    ShuttingDown,
    /// `TerminateInstances` is refused with this code.
    TerminationRefused(&'static str),
    /// The NAT gateway is reported in this state.
    NatGateway {
        /// ID of the NAT gateway.
        id: String,
        /// State by the word of EC2.
        state: &'static str,
    },
    /// `DescribeSubnets` omits the subnet with this ID.
    WithoutSubnet(String),
}

/// A recorded call.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// Action by the word of EC2.
    pub action: String,
    /// Parameters as a form.
    pub form: String,
    /// Time of the arrival.
    pub at: Time,
}

/// The server of one shoot.
pub struct SickEc2 {
    /// Address for the provider and the machine controllers.
    pub endpoint: String,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

struct Shared {
    moto: String,
    client: Client<HttpConnector, Full<Bytes>>,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    sick: Option<SickAnswer>,
    calls: Vec<RecordedCall>,
    changed_answers: usize,
}

impl SickEc2 {
    /// Starts a server that changes no answer yet.
    pub async fn start(moto: &Moto) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            moto: moto.endpoint.clone(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            record: Mutex::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let mut server = JoinSet::new();
        server.spawn(async move {
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self {
            endpoint,
            shared,
            _server: server,
        })
    }

    /// Changes answers from now on.
    pub fn fall_sick(&self, answer: SickAnswer) {
        self.shared.record().sick = Some(answer);
    }

    /// Number of answers that differed from the answers of moto.
    pub fn changed_answers(&self) -> usize {
        self.shared.record().changed_answers
    }

    /// All calls after the first `from`, in the order of their arrival.
    pub fn calls_after(&self, from: usize) -> Vec<RecordedCall> {
        self.shared.record().calls.iter().skip(from).cloned().collect()
    }
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass_on(&self, request: Request) -> Result<Response> {
        let (mut head, body) = request.into_parts();
        let body = to_bytes(body, LARGEST).await?;
        let form = String::from_utf8_lossy(&body).into_owned();
        let action = form.split('&').find_map(|pair| pair.strip_prefix("Action="));
        let action = action.unwrap_or_default().to_owned();
        let sick = {
            let mut record = self.record();
            let (action, at) = (action.clone(), Time(clock::now()));
            record.calls.push(RecordedCall { action, form, at });
            record.sick.clone()
        };
        if let (Some(SickAnswer::TerminationRefused(code)), "TerminateInstances") = (&sick, action.as_str()) {
            self.record().changed_answers += 1;
            return Ok(refusal(code));
        }
        head.uri = format!("{}/", self.moto).parse()?;
        let answer = self
            .client
            .request(http::Request::from_parts(head, Full::new(body)))
            .await?;
        let status = answer.status();
        let text = answer.into_body().collect().await?.to_bytes();
        let text = String::from_utf8_lossy(&text).into_owned();
        let shown = sick.and_then(|sick| sick.shown(&action, &text));
        if shown.as_ref().is_some_and(|shown| *shown != text) {
            self.record().changed_answers += 1;
        }
        Ok((status, shown.unwrap_or(text)).into_response())
    }
}

impl SickAnswer {
    /// The changed answer to a call of this action.
    fn shown(&self, action: &str, answer: &str) -> Option<String> {
        match (self, action) {
            (Self::ShuttingDown, "DescribeInstances") => {
                Some(answer.replace("<name>terminated</name>", "<name>shutting-down</name>"))
            }
            (Self::NatGateway { id, state }, "DescribeNatGateways") => with_state(answer, id, state),
            (Self::WithoutSubnet(id), "DescribeSubnets") => Some(answers::without(answer, id)),
            _ => None,
        }
    }
}

/// The list of NAT gateways with another state of one gateway. Each gateway has one ID and one state.
fn with_state(answer: &str, id: &str, state: &str) -> Option<String> {
    let (tag, end) = ("<state>", "</state>");
    let at = answer.find(&format!("<natGatewayId>{id}<"))?;
    let index = answer[..at].matches("<natGatewayId>").count();
    let start = answer.match_indices(tag).nth(index)?.0 + tag.len();
    let length = answer[start..].find(end)?;
    let mut changed = answer.to_owned();
    changed.replace_range(start..start + length, state);
    Some(changed)
}

fn refusal(code: &str) -> Response {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code><Message>Refused by the test.</Message>\
         </Error></Errors><RequestID>0</RequestID></Response>"
    );
    (StatusCode::FORBIDDEN, text).into_response()
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    match shared.pass_on(request).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
    }
}
