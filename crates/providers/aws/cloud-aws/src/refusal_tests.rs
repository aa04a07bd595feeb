#![allow(clippy::unwrap_used, clippy::panic)]
use rstest::rstest;

use super::*;

fn refused(code: &str, message: &str) -> Failed {
    Failed::Refused(refusal("RunInstances", code, message))
}

fn refusal(action: &'static str, code: &str, message: &str) -> ServiceError {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code>\
         <Message>{message}</Message></Error></Errors><RequestID>1</RequestID></Response>"
    );
    ServiceError::read(&Call::new(action), &account(), &text).unwrap()
}

fn account() -> Account {
    let keys = [("accessKeyID", "AKIA-ONE"), ("secretAccessKey", "s3cret")];
    let data = keys.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()));
    Account::from_secret(&runtime::client::Credentials::new("garden/aws", data.into())).unwrap()
}

#[rstest]
#[case(
    "AuthFailure",
    Some(ErrorCode::ErrInfraUnauthenticated),
    "in the Secret garden/aws"
)]
#[case(
    "UnauthorizedOperation",
    Some(ErrorCode::ErrInfraUnauthorized),
    "do ec2:RunInstances"
)]
#[case(
    "DependencyViolation",
    Some(ErrorCode::ErrRetryableInfraDependencies),
    "take that away"
)]
#[case(
    "InsufficientInstanceCapacity",
    Some(ErrorCode::ErrInfraResourcesDepleted),
    "another machine type"
)]
#[case(
    "VpcLimitExceeded",
    Some(ErrorCode::ErrInfraQuotaExceeded),
    "raise this quota"
)]
#[case(
    "AddressLimitExceeded",
    Some(ErrorCode::ErrInfraQuotaExceeded),
    "raise this quota"
)]
#[case(
    "InvalidParameterValue",
    Some(ErrorCode::ErrConfigurationProblem),
    "correct the configuration"
)]
#[case("InvalidSubnetID.NotFound", None, "")]
#[case("InvalidSubnet.Conflict", None, "is not of this shoot")]
#[case("InvalidPermission.Duplicate", None, "is not of this shoot")]
#[case("RouteAlreadyExists", None, "is not of this shoot")]
#[case("Resource.AlreadyAssociated", None, "is not of this shoot")]
#[case("NatGatewayNotFound", None, "")]
#[case("BandwidthLimitExceeded", None, "")]
#[case("RequestLimitExceeded", None, "")]
#[case("InternalError", None, "")]
#[case("SomethingNew", None, "")]
fn who_has_to_act(#[case] code: &str, #[case] expected: Option<ErrorCode>, #[case] told: &str) {
    let error = Error::from(refused(code, "No."));
    assert_eq!(error.codes().first().copied(), expected, "{error}");
    let said = error.to_string();
    assert!(said.contains(code) && said.contains(told), "{said}");
}

#[test]
fn a_long_secret_word_of_ec2_is_left_out() {
    let said = "You are not authorized. Encoded authorization failure message: 4kYb";
    let error = Error::from(refused("UnauthorizedOperation", said)).to_string();
    assert!(!error.contains("4kYb"), "{error}");
}

#[test]
fn a_wrong_clock_is_not_reported_as_wrong_keys() {
    for (code, ahead, expected) in [
        ("AuthFailure", Some(700), "is 700 s ahead of the clock of EC2"),
        ("RequestExpired", Some(-700), "is 700 s behind the clock of EC2"),
        ("RequestTimeTooSkewed", None, "differs from the clock of EC2"),
    ] {
        let Failed::Refused(refusal) = refused(code, "No.") else {
            panic!("{code} is a refusal")
        };
        let ahead = ahead.map(SignedDuration::from_secs);
        let error = Error::from(Failed::Refused(ServiceError { ahead, ..refusal }));
        assert_eq!(
            (error.class(), error.codes()),
            ("Transient", [].as_slice()),
            "{error}"
        );
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn an_expired_session_token_is_named() {
    let Failed::Refused(refusal) = refused("RequestExpired", "Request has expired.") else {
        panic!("it is a refusal")
    };
    let refusal = ServiceError {
        is_temporary: true,
        ahead: Some(SignedDuration::from_secs(1)),
        ..refusal
    };
    let error = Error::from(Failed::Refused(refusal));
    assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthenticated]);
    assert!(error.to_string().contains("sessionToken"), "{error}");
}

#[test]
fn only_a_throttled_call_was_not_carried_out_for_sure() {
    assert!(refused("RequestLimitExceeded", "").is_throttled());
    assert!(!refused("VpcLimitExceeded", "").is_throttled());
    assert!(!refused("InternalError", "").is_throttled());
    assert!(refused("InvalidVpcID.NotFound", "").is_missing());
}

#[rstest]
// EC2's sentences.
#[case(
    "DescribeVpcs",
    "AWS was not able to validate the provided access credentials",
    false
)]
#[case(
    "ReleaseAddress",
    "AWS was not able to validate the provided access credentials",
    false
)]
#[case(
    "DescribeVpcs",
    "You do not have permission to access the specified resource",
    false
)]
#[case("ReleaseAddress", "The address '203.0.113.7' does not belong to you", true)]
#[case(
    "RunInstances",
    "AWS was not able to validate the provided access credentials",
    false
)]
#[case("RunInstances", "Not authorized for images: [ami-1]", true)]
fn a_refused_object_of_a_different_account_is_not_reported_as_wrong_keys(
    #[case] action: &'static str,
    #[case] message: &str,
    #[case] is_of_other_account: bool,
) {
    let refusal = refusal(action, "AuthFailure", message);
    let failed = Failed::Refused(refusal.clone());
    assert!(!failed.is_missing(), "{message}");
    let expected = match (is_of_other_account, action) {
        // EC2 refuses to release an address in use with this code.
        (true, "ReleaseAddress") => ErrorCode::ErrRetryableInfraDependencies,
        (true, _) => ErrorCode::ErrInfraDependencies,
        (false, _) => ErrorCode::ErrInfraUnauthenticated,
    };
    let error = Error::from(failed);
    assert_eq!(error.codes(), [expected], "{error}");

    // A wrong clock is neither.
    let ahead = Some(SignedDuration::from_secs(700));
    let skewed = Failed::Refused(ServiceError { ahead, ..refusal });
    assert!(!skewed.is_missing());
    assert_eq!(Error::from(skewed).class(), "Transient");
}

#[rstest]
#[case("InternalError", false, true)]
#[case("InternalError", true, true)]
#[case("SomethingNew", false, false)]
#[case("SomethingNew", true, true)]
#[case("InvalidParameterValue", true, true)]
#[case("InternalServerError", true, true)]
#[case("RequestLimitExceeded", true, false)]
#[case("InsufficientInstanceCapacity", true, false)]
fn a_call_may_have_been_carried_out_where_ec2_failed(
    #[case] code: &str,
    #[case] is_server_error: bool,
    #[case] is_fault: bool,
) {
    let refusal = ServiceError {
        is_server_error,
        ..refusal("AllocateAddress", code, "No.")
    };
    let failed = Failed::Refused(refusal);
    assert_eq!((failed.is_fault(), failed.is_undone()), (is_fault, !is_fault));
    if is_fault {
        let error = Error::from(failed);
        assert!(
            error.codes().is_empty() && error.class() == "Transient",
            "{error}"
        );
    }
}

#[rstest]
#[case(
    "InsufficientFreeAddressesInSubnet",
    Some(ErrorCode::ErrInfraQuotaExceeded),
    "free addresses in the public subnet"
)]
#[case(
    "AddressLimitExceeded",
    Some(ErrorCode::ErrInfraQuotaExceeded),
    "raise this quota"
)]
#[case("Gateway.NotAttached", None, "")]
#[case("InvalidAllocationID.NotFound", None, "")]
#[case("InternalError", None, "")]
fn a_failed_gateway_has_the_code_of_its_failure(
    #[case] code: &str,
    #[case] expected: Option<ErrorCode>,
    #[case] remedy: &str,
) {
    let failure = ServiceError::of_failure(CREATE_NAT_GATEWAY, &account(), code, "No.");
    let error = failure.error_with(format!("nat-1 has failed: {code}"));
    assert_eq!(error.codes().first().copied(), expected, "{error}");
    let report = error.to_string();
    assert!(
        report.starts_with("nat-1 has failed") && report.contains(remedy),
        "{report}"
    );
}

#[test]
fn what_is_no_answer_of_ec2_is_none() {
    let call = Call::new("A");
    assert_eq!(
        ServiceError::read(&call, &account(), "<html>Bad Gateway</html>"),
        None
    );
    assert_eq!(ServiceError::read(&call, &account(), ""), None);
}
