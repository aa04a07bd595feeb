//! The keys of a backup Secret that name a role of AWS, with the token for the role.
//!
//! Only the operator's Secrets of backups may have these keys. The token is in the Secret, and the issuer of
//! the token renews the token there. No identity of the seed, of a pod or of an instance is used. The Secret
//! of a Shoot must not have these keys, see [`external_credentials`].

use object_store::signer::Url;

use crate::aws_partition::aws_domain;
use crate::aws_secret::external_credentials;

const ROLE_ARN: &str = "roleARN";
const TOKEN: &str = "token";
const STS_ENDPOINT: &str = "stsEndpoint";
const ROLE_KEYS: [&str; 3] = [ROLE_ARN, TOKEN, STS_ENDPOINT];
const ACCOUNT_KEYS: [&str; 3] = ["accessKeyID", "secretAccessKey", "sessionToken"];

/// Bytes of the longest token that STS accepts.
const LONGEST_TOKEN: usize = 20_000;
/// Bytes of the longest ARN of IAM.
const LONGEST_ARN: usize = 2048;

/// Values of the keys of a backup Secret that decide about a role. An empty value counts as missing.
///
/// The type has no `Debug`, because the token is secret.
pub struct WebIdentityKeys {
    /// The key `roleARN`.
    pub role_arn: Option<String>,
    /// The key `token`.
    pub token: Option<String>,
    /// The key `stsEndpoint`: the URL of the token service, for stores outside of AWS.
    pub sts_endpoint: Option<String>,
    /// The endpoint of the object store; `None` for a store of AWS.
    pub store_endpoint: Option<String>,
    /// The region of the object store.
    pub region: String,
}

/// A role of AWS, and the token service that issues keys for the role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebIdentityRole {
    pub(crate) arn: String,
    /// The URL of the token service.
    pub(crate) sts: String,
}

impl WebIdentityKeys {
    /// The role that a backup Secret names; `None` for a Secret with the keys of an account. `names` are the
    /// names of all keys of the Secret.
    ///
    /// # Errors
    /// The end of a sentence that begins with the name of the Secret, with the remedy and without secrets.
    pub fn read_role(&self, names: &[&str]) -> Result<Option<WebIdentityRole>, String> {
        let further = names.iter().copied().filter(|name| !ROLE_KEYS.contains(name));
        if let Some(key) = external_credentials(further) {
            return Err(format!(
                "has the key {key}, which names credentials outside the Secret: remove the key, and use accessKeyID and \
                 secretAccessKey, with sessionToken for temporary keys, or use roleARN and token"
            ));
        }
        let find = |keys: [&'static str; 3]| keys.into_iter().find(|key| names.contains(key));
        let Some(key) = find(ROLE_KEYS) else {
            return Ok(None);
        };
        if let Some(account) = find(ACCOUNT_KEYS) {
            return Err(format!(
                "has the key {key} together with the key {account}: keep roleARN and token for a role, or accessKeyID and \
                 secretAccessKey for an account, and remove the others"
            ));
        }
        let (Some(arn), Some(token)) = (&self.role_arn, &self.token) else {
            let missing = if self.role_arn.is_none() { ROLE_ARN } else { TOKEN };
            return Err(format!(
                "has the key {key}, and {missing} is missing or empty: add {missing}, or remove roleARN, token and stsEndpoint and \
                 use accessKeyID and secretAccessKey"
            ));
        };
        if !is_role_arn(arn) {
            // The value is not shown: the token may be under the wrong key.
            return Err(
                "has a roleARN that is not the ARN of a role: write arn:<partition>:iam::<12 digits>:role/<name>".to_owned(),
            );
        }
        check_token(token).map_err(|why| format!("has a token that cannot be used: {why}"))?;
        Ok(Some(WebIdentityRole {
            arn: arn.clone(),
            sts: self.choose_sts()?,
        }))
    }

    /// The URL of the token service. The service gets the token, so the URL is derived for AWS only.
    fn choose_sts(&self) -> Result<String, String> {
        let Some(endpoint) = &self.sts_endpoint else {
            return self.derive_sts();
        };
        let is_store_plain = self.store_url().is_some_and(|url| url.scheme() == "http");
        let url = Url::parse(endpoint).ok().filter(|url| {
            let is_secure = url.scheme() == "https" || url.scheme() == "http" && is_store_plain;
            is_secure && url.has_host() && url.username().is_empty() && url.password().is_none()
        });
        match url {
            Some(url) if url.query().is_none() && url.fragment().is_none() => Ok(url.to_string()),
            _ => Err(
                "has an stsEndpoint that cannot be used: write the https URL of the token service, without user and query; http is \
                 allowed only beside an endpoint with http"
                    .to_owned(),
            ),
        }
    }

    fn derive_sts(&self) -> Result<String, String> {
        let region = &self.region;
        if region.is_empty() || !region.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-') {
            return Err(format!(
                "has the region {region:?}, which is not a region of AWS: correct region, or add stsEndpoint"
            ));
        }
        let domain = aws_domain(region);
        let suffix = format!(".{domain}");
        let is_inside = |url: Url| url.host_str().is_some_and(|host| host.ends_with(&suffix));
        let is_of_aws = self.store_endpoint.is_none() || self.store_url().is_some_and(is_inside);
        if is_of_aws {
            Ok(format!("https://sts.{region}.{domain}/"))
        } else {
            Err(format!(
                "has roleARN and an endpoint outside of {domain}: add stsEndpoint, the URL of the service that issues keys for the \
                 role"
            ))
        }
    }

    fn store_url(&self) -> Option<Url> {
        Url::parse(self.store_endpoint.as_ref()?).ok()
    }
}

/// The form that STS requires of a token. STS checks the signature.
pub(crate) fn check_token(token: &str) -> Result<(), String> {
    if token.len() > LONGEST_TOKEN {
        return Err(format!(
            "the token has {} bytes, and STS accepts {LONGEST_TOKEN}: let the issuer write fewer claims",
            token.len()
        ));
    }
    let parts: Vec<_> = token.split('.').collect();
    let is_base64url = |part: &&str| {
        let mut bytes = part.bytes();
        !part.is_empty() && bytes.all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
    };
    if parts.len() == 3 && parts.iter().all(is_base64url) {
        return Ok(());
    }
    Err(
        "the token is not a JWT (three parts in base64url, separated by dots): write the token of the issuer into the key token"
            .to_owned(),
    )
}

fn is_role_arn(arn: &str) -> bool {
    let parts: Vec<_> = arn.splitn(6, ':').collect();
    let ["arn", partition, "iam", "", account, resource] = parts[..] else {
        return false;
    };
    let is_partition = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let is_name = |c: u8| c.is_ascii_alphanumeric() || b"+=,.@_-".contains(&c);
    let path = resource.strip_prefix("role/");
    let (path, name) = path.map_or(("", ""), |path| path.rsplit_once('/').unwrap_or(("", path)));
    arn.len() <= LONGEST_ARN
        && !partition.is_empty()
        && partition.bytes().all(is_partition)
        && account.len() == 12
        && account.bytes().all(|c| c.is_ascii_digit())
        && path.bytes().all(|c| c.is_ascii_graphic())
        && !name.is_empty()
        && name.bytes().all(is_name)
}

#[cfg(test)]
#[path = "tests/web_identity_secret.rs"]
mod tests;
