#![allow(clippy::unwrap_used)]
use permit::Permit;
use runtime::client::Credentials;

use super::*;
use crate::{Ec2Access, Failed, account::Account, refusal::ServiceError};

fn keys() -> Credentials {
    // As a process does at its start. A different test may have installed the provider before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let keys = [("accessKeyID", "a"), ("secretAccessKey", "b")];
    let data = keys.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()));
    Credentials::new("garden/aws", data.into())
}

#[test]
fn sts_is_asked_in_the_region_or_at_the_replaced_endpoint() {
    for (endpoint, region, sts) in [
        (None, "eu-west-1", "https://sts.eu-west-1.amazonaws.com/"),
        (None, "cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn/"),
        (Some("http://127.0.0.1:1"), "eu-west-1", "http://127.0.0.1:1/"),
    ] {
        let access = Ec2Access::new(endpoint.map(str::to_owned));
        let ec2 = access.open(&keys(), region, &Permit::sole("a test")).unwrap();
        assert_eq!(ec2.address(Service::Sts).to_string(), sts);
    }
}

#[test]
fn an_error_of_sts_is_reported_by_the_name_of_sts() {
    let text = "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type>\
         <Code>InvalidClientTokenId</Code><Message>The security token included in the request is invalid.</Message>\
         </Error><RequestId>1</RequestId></ErrorResponse>";
    let account = Account::from_secret(&keys()).unwrap();
    let call = Call::to(Service::Sts, "GetCallerIdentity");
    let refusal = ServiceError::read(&call, &account, text).unwrap();
    let error = Error::from(Failed::Refused(refusal));
    assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthenticated], "{error}");
    let report = error.to_string();
    assert!(
        report.starts_with("STS refuses GetCallerIdentity") && !report.contains("EC2"),
        "{report}"
    );
}

#[tokio::test]
async fn a_missing_answer_of_sts_is_reported_by_the_name_of_sts() {
    let access = Ec2Access::new(Some("http://127.0.0.1:1".to_owned()));
    let ec2 = access
        .open(&keys(), "eu-west-1", &Permit::sole("a test"))
        .unwrap();
    let report = ec2.account_id().await.unwrap_err().to_string();
    assert!(
        report.starts_with("STS in eu-west-1 gives no ") && !report.contains("EC2"),
        "{report}"
    );
}
