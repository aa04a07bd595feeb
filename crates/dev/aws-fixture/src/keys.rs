//! Keys of accounts, as issued by moto.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use runtime::client::Credentials;
use testkit::Moto;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The account of all keys that moto did not issue.
pub const HOME: &str = "123456789012";
/// The account of a wrong Secret.
pub const OTHER: &str = "210987654321";

/// Issues keys of an account: moto assumes a role of any account.
pub async fn issue(moto: &Moto, account: &str) -> Result<Credentials> {
    let form = format!(
        "Action=AssumeRole&Version=2011-06-15&RoleSessionName=test&RoleArn=arn%3Aaws%3Aiam%3A%3A{account}%3Arole%2Ftest"
    );
    let request = format!(
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=writer/20260101/us-east-1/sts/aws4_request, SignedHeaders=host, \
         Signature=0\r\n\r\n{form}",
        moto.port,
        form.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", moto.port)).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let field = |name: &str| {
        let (_, rest) = answer.split_once(&format!("<{name}>"))?;
        rest.split('<').next().map(|value| value.as_bytes().to_vec())
    };
    let mut data = BTreeMap::new();
    for (key, name) in [
        ("accessKeyID", "AccessKeyId"),
        ("secretAccessKey", "SecretAccessKey"),
        ("sessionToken", "SessionToken"),
    ] {
        data.insert(key.to_owned(), field(name).with_context(|| answer.clone())?);
    }
    Ok(Credentials::new("garden/other", data))
}
