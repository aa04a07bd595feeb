//! The keys of an account.

use std::{fmt, sync::Arc};

use object_store::aws::AwsCredential;
use runtime::{Result, client::Credentials};

/// The keys of an account, from a Secret and from nowhere else: an account without keys is refused, so that a
/// Shoot never acts with the role of the seed's own instances.
#[derive(Clone)]
pub struct Account {
    credential: Arc<AwsCredential>,
    origin: String,
}

impl Account {
    /// The keys that a Secret has. `sessionToken` belongs to temporary keys.
    ///
    /// # Errors
    /// The Secret lacks a key.
    pub fn from_secret(credentials: &Credentials) -> Result<Self> {
        Ok(Self {
            credential: Arc::new(AwsCredential {
                key_id: credentials.text("accessKeyID")?,
                secret_key: credentials.text("secretAccessKey")?,
                token: credentials.optional_text("sessionToken")?,
            }),
            origin: credentials.origin().to_owned(),
        })
    }

    /// The access key. The access key names the account and is not secret.
    pub fn key_id(&self) -> &str {
        &self.credential.key_id
    }

    /// The keys, for a signature.
    pub fn credential(&self) -> &AwsCredential {
        &self.credential
    }

    /// The Secret, for messages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The text without keys: an answer of EC2 or an error of the client may quote the request.
    pub fn redact(&self, text: &str) -> String {
        let AwsCredential {
            key_id,
            secret_key,
            token,
        } = &*self.credential;
        let mut text = text.replace(secret_key, "(secretAccessKey)");
        if let Some(token) = token {
            text = text.replace(token, "(sessionToken)");
        }
        text.replace(key_id, "(accessKeyID)")
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(keys)")
    }
}
