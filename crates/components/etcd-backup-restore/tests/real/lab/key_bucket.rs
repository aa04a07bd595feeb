use super::{BUCKET, Lab, S3Server};
use testkit::Moto;

/// The bucket of a lab in moto, which stores any key and every version. The file-based server stores neither.
pub struct KeyBucket {
    moto: Moto,
}

impl KeyBucket {
    /// Starts moto and makes it the store of the lab.
    pub async fn start(lab: &Lab) -> Self {
        let moto = Moto::start().await.unwrap();
        moto.put_object(BUCKET, "", "").await.unwrap();
        Self::with(lab, moto)
    }

    /// Starts a bucket with versions, which may be locked.
    pub async fn with_locks(lab: &Lab) -> Self {
        let moto = Moto::start().await.unwrap();
        moto.create_bucket_with_locks(BUCKET).await.unwrap();
        Self::with(lab, moto)
    }

    fn with(lab: &Lab, moto: Moto) -> Self {
        S3Server::write_credentials_of(&moto.endpoint, &lab.credentials());
        Self { moto }
    }

    /// Address of the server.
    pub fn endpoint(&self) -> &str {
        &self.moto.endpoint
    }

    /// Writes an object under exactly this key.
    pub async fn put_key(&self, key: &str, content: &str) {
        self.moto.put_object(BUCKET, key, content).await.unwrap();
    }

    /// Writes an object that cannot be deleted.
    pub async fn put_locked(&self, key: &str, content: &str) {
        self.moto.put_locked_object(BUCKET, key, content).await.unwrap();
    }

    /// The keys of all versions.
    pub async fn versions(&self) -> Vec<String> {
        let listed = self.moto.s3("GET", &format!("/{BUCKET}/?versions"), "", "").await;
        let listed = listed.unwrap();
        let keys = listed.split("<Key>").skip(1);
        keys.filter_map(|key| key.split_once("</Key>"))
            .map(|(key, _)| key.to_owned())
            .collect()
    }
}
