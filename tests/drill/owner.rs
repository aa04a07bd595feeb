//! The owner record of a shoot in DNS (R17-10..12, R17-21, R17-50).

use api::druid::Etcd;
use api::gardencore::Seed;
use kube::Api;
use runtime::Result;
use testkit::eventually;

use crate::evidence::require;
use crate::seed::RunningSeed;
use crate::subject::{ANSWER_WITHIN, Subject, transient};
use crate::world::DOMAIN;

impl Subject<'_> {
    pub fn owner_name(&self) -> String {
        format!("owner.{}.dev.internal.{DOMAIN}", self.name)
    }

    /// R17-13: the etcd of the owner checks the shoot's record.
    async fn check_etcd_asks(&self, seed: &RunningSeed, identity: Option<&str>) -> Result<()> {
        let etcds: Api<Etcd> = Api::namespaced(seed.client(), &self.namespace());
        let check = etcds.get("etcd-main").await?.spec.backup.owner_check;
        let asked = check
            .as_ref()
            .map(|check| (check.name.clone(), check.id.as_str()));
        require(
            asked == identity.map(|identity| (self.owner_name(), identity)),
            format!("etcd-main asks for {check:?}"),
        )
    }

    /// The owner record names this seed, or none, in this epoch, or in none.
    pub async fn check_owner(&self, seed: Option<&RunningSeed>, epoch: Option<i64>) -> Result<()> {
        let identity = match seed {
            None => None,
            Some(seed) => {
                let seeds: Api<Seed> = Api::all(self.world.garden());
                let status = seeds.get(seed.name).await?.status;
                let identity = status.and_then(|status| status.cluster_identity);
                require(identity.is_some(), "the Seed has no identity")?;
                self.check_etcd_asks(seed, identity.as_deref()).await?;
                identity
            }
        };
        let name = self.owner_name();
        let epoch = epoch.map(|epoch| epoch.to_string());
        for (name, wanted) in [(name.clone(), identity), (format!("epoch.{name}"), epoch)] {
            // The query uses UDP: an unanswered query is repeated. Any answer counts.
            let found = eventually("an answer of the name server", ANSWER_WITHIN, || {
                self.world.dns.texts(&name)
            });
            let found = found.await.map_err(transient)?;
            require(
                found == Vec::from_iter(wanted.clone()),
                format!("{name} is to say {wanted:?}, and says {found:?}"),
            )?;
        }
        Ok(())
    }
}
