//! The way to an object store, for clients of the crate `object_store`: each request leaves only while it is permitted.
//!
//! The library repeats what failed and sends parts of an upload by itself, so the right is looked at beneath it. A request
//! that is under way when the right is lost is given up; one that was refused is not tried again.

use async_trait::async_trait;
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
        ReqwestConnector,
    },
};

use crate::Permit;

/// Makes clients whose every request needs the permit.
#[derive(Clone, Debug)]
pub struct StoreConnector(pub Permit);

#[derive(Debug)]
struct Guarded {
    permit: Permit,
    client: HttpClient,
}

impl HttpConnector for StoreConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        let permit = self.0.clone();
        Ok(HttpClient::new(Guarded { permit, client }))
    }
}

#[async_trait]
impl HttpService for Guarded {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let client = self.client.clone();
        let answered = self.permit.effect(async move { client.execute(request).await });
        // The library tries again what is of another kind.
        let refused = |refused| HttpError::new(HttpErrorKind::Unknown, refused);
        answered.await.map_err(refused)?
    }
}
