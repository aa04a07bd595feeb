use testkit::NameServer;

pub const ZONE: &str = "internal.example";
pub const OWNER: &str = "owner.demo.dev.internal.example";
const EPOCH: &str = "epoch.owner.demo.dev.internal.example";

/// A real authority of the zone with the owner record.
pub struct Zone {
    pub server: NameServer,
}

impl Zone {
    pub async fn start() -> Self {
        Self {
            server: NameServer::start(&[ZONE]).await.unwrap(),
        }
    }

    pub async fn owned_by(&self, seed: &str, epoch: i64) {
        self.write(&[seed], &[&epoch.to_string()]).await;
    }

    /// Sets exactly these texts for both names, in a single update, like a claimant.
    pub async fn write(&self, owner: &[&str], epoch: &[&str]) {
        let names = [(OWNER, owner), (EPOCH, epoch)];
        self.server.write_texts(ZONE, &names).await.unwrap();
    }
}
