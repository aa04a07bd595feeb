//! The calls of an isolation: our ACL in front of subnets, and the former ACLs back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::meta::ErrorCode;
use jiff::{SignedDuration, Timestamp};
use runtime::{Error, Result, clock};

use super::plan::{
    Before, ChangedByHand, Unconfirmed, before, closing, opening, reopened, tag, unconfirmed, unlisted,
};
use crate::{
    Ec2, Tag, Tagged,
    acls::{Entry, NetworkAcl},
    identity::HomeAccount,
    infrastructure::Names,
    tags::SHOOT_UID,
    token::token,
};

/// Requeue delay while EC2 does not show the last change yet.
const ACL_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The name of our ACL, after the shoot's technical id.
const ISOLATED: &str = "isolated";

/// The ACL of a shoot that denies all packets. A shoot has a single such ACL: two zones are never closed.
#[derive(Clone, Debug)]
pub struct ZoneAcl {
    ec2: Ec2,
    names: Names,
    name: String,
    vpc: String,
    closing: String,
    home: HomeAccount,
}

/// The network of a zone as EC2 shows the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneObservation {
    /// The record that [`ZoneAcl::open`] needs.
    pub before: Before,
    /// The manual changes to a closed zone, as sentences. The next closing reverts the changes.
    pub reopened: Vec<String>,
}

/// A closed zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedZone {
    /// The id of the ACL in front of the subnets.
    pub acl: String,
    /// The subnets of the zone that do not exist any more. No packet passes such a subnet.
    pub missing_subnets: Vec<String>,
}

impl ZoneAcl {
    /// The ACL of the shoot with this technical id, in the VPC of the shoot. `closing` differs between two
    /// closings of a zone. So the client token of a former, removed ACL is not used for the new ACL.
    #[must_use]
    pub fn new(ec2: Ec2, technical_id: &str, vpc: &str, closing: &str) -> Self {
        let names = Names::for_cluster(technical_id);
        Self {
            ec2,
            name: names.one(ISOLATED),
            names,
            vpc: vpc.to_owned(),
            closing: closing.to_owned(),
            home: HomeAccount::default(),
        }
    }

    /// The same with the uid of the Shoot: an ACL with a different uid is foreign.
    #[must_use]
    pub fn of_shoot(self, uid: Option<&str>) -> Self {
        Self {
            names: self.names.of_shoot(uid),
            ..self
        }
    }

    /// The same with the account of the zone: keys of a different account are refused before a subnet or an
    /// ACL counts as gone.
    #[must_use]
    pub fn in_account(self, home: HomeAccount) -> Self {
        Self { home, ..self }
    }

    /// The ACL of each subnet before the isolation. This function changes no object.
    ///
    /// # Errors
    /// The former ACL of a subnet is unknown.
    pub async fn read_former_acls(
        &self,
        subnets: &BTreeSet<String>,
        known: Option<&Before>,
    ) -> Result<Before> {
        Ok(self.observe(subnets, known).await?.before)
    }

    /// As [`ZoneAcl::read_former_acls`], with the manual changes since the zone was closed.
    ///
    /// # Errors
    /// See [`ZoneAcl::read_former_acls`]; the keys belong to a different account, or an ACL with our name
    /// belongs to a different Shoot: [`Error::Config`].
    pub async fn observe(
        &self,
        subnets: &BTreeSet<String>,
        known: Option<&Before>,
    ) -> Result<ZoneObservation> {
        let acls = self.acls(known).await?;
        if acls.is_empty() {
            return Err(Error::config(
                ErrorCode::ErrRetryableInfraDependencies,
                format!(
                    "the VPC {} of the zone is not in the account: reconcile the shoot, so that the Infrastructure reports the cause",
                    self.vpc
                ),
            ));
        }
        self.refuse_foreign(&acls, known)?;
        let is_ours = |acl: &NetworkAcl| self.is_ours(acl, known);
        let mut before = before(subnets, &acls, is_ours, known)?;
        before.missing = self.missing(subnets, &acls, known).await?;
        let (ours, _) = self.ours(&acls, known);
        before.isolation_acl = ours.map(|ours| ours.network_acl_id.clone());
        Ok(ZoneObservation {
            reopened: known.map_or_else(Vec::new, |known| reopened(known, &acls, is_ours)),
            before,
        })
    }

    /// The subnets that EC2 does not know, with the time since when.
    async fn missing(
        &self,
        subnets: &BTreeSet<String>,
        acls: &[NetworkAcl],
        known: Option<&Before>,
    ) -> Result<BTreeMap<String, Timestamp>> {
        let mut missing = BTreeMap::new();
        for subnet in unlisted(subnets, acls) {
            if self.ec2.subnet(subnet).await?.is_none() {
                let since = known.and_then(|known| known.missing.get(subnet)).copied();
                missing.insert(subnet.clone(), since.unwrap_or_else(clock::now));
            }
        }
        Ok(missing)
    }

    /// Makes the ACL unless the ACL exists, in front of no subnet, and returns `before` with the id of the
    /// ACL. The caller keeps the id before [`ZoneAcl::close`], as EC2 may not list the ACL when a different
    /// process opens the subnets.
    ///
    /// # Errors
    /// EC2 refuses or does not answer.
    pub async fn make(&self, before: &Before) -> Result<Before> {
        if before.isolation_acl.is_some() {
            return Ok(before.clone());
        }
        let acls = self.acls(None).await?;
        let id = if let Some(ours) = self.ours(&acls, None).0 {
            ours.network_acl_id.clone()
        } else {
            let mut tags = self.names.tags(&self.name);
            tags.extend(former(before));
            let token = token(&self.closing, &self.name);
            let made = self.ec2.create_network_acl(&self.vpc, &token, &tags).await?;
            made.network_acl_id
        };
        Ok(Before {
            isolation_acl: Some(id),
            ..before.clone()
        })
    }

    /// Puts the ACL that [`ZoneAcl::make`] has made in front of the subnets, and reverts manual changes.
    /// Returns when EC2 shows all changes. A subnet that EC2 does not show is awaited after all known subnets
    /// are closed.
    ///
    /// # Errors
    /// EC2 does not show the changes yet: [`Error::NotReady`].
    pub async fn close(&self, subnets: &BTreeSet<String>, before: &Before) -> Result<ClosedZone> {
        let acls = self.acls(Some(before)).await?;
        let (Some(ours), others) = self.ours(&acls, Some(before)) else {
            return Err(Error::not_ready(
                ACL_POLL_INTERVAL,
                format!("EC2 does not show the network ACL {} yet", self.name),
            ));
        };
        let mut changed = false;
        let id = &ours.network_acl_id;
        // The record of the former ACLs stays readable in the tags of our ACL until the former ACLs are back.
        // A deletion of the Infrastructure finds our ACL by the tags.
        let own = self.names.tags(&self.name);
        let missing: Vec<Tag> = former(before)
            .chain(own)
            .filter(|tag| ours.tag(&tag.key) != Some(tag.value.as_str()))
            .collect();
        if !missing.is_empty() {
            self.ec2.set_tags(id, &missing).await?;
            changed = true;
        }
        changed |= self.deny_all(ours).await?;
        for swap in closing(subnets, &acls, id) {
            self.ec2.replace_association(&swap.association, &swap.acl).await?;
            changed = true;
        }
        // Duplicate ACLs of concurrent attempts.
        for other in others.iter().filter(|other| other.associations.is_empty()) {
            self.ec2.delete_network_acl(&other.network_acl_id).await?;
            changed = true;
        }
        if changed || !others.is_empty() {
            self.confirm(subnets, before, id).await?;
        }
        Ok(ClosedZone {
            acl: id.clone(),
            missing_subnets: self.gone(subnets, &acls, before)?,
        })
    }

    /// The subnets that are gone.
    ///
    /// # Errors
    /// EC2 may still show a subnet that is not listed: [`Error::NotReady`].
    fn gone(&self, subnets: &BTreeSet<String>, acls: &[NetworkAcl], before: &Before) -> Result<Vec<String>> {
        let (now, bound) = (clock::now(), self.ec2.listed_within());
        let bound = SignedDuration::try_from(bound).unwrap_or(SignedDuration::MAX);
        let is_gone = |subnet: &&String| {
            let since = before.missing.get(*subnet);
            since.is_some_and(|since| now.duration_since(*since).abs() >= bound)
        };
        let (gone, awaited): (Vec<&String>, Vec<&String>) =
            unlisted(subnets, acls).into_iter().partition(is_gone);
        if awaited.is_empty() {
            return Ok(gone.into_iter().cloned().collect());
        }
        let awaited: Vec<&str> = awaited.into_iter().map(String::as_str).collect();
        Err(Error::not_ready(
            ACL_POLL_INTERVAL,
            format!(
                "EC2 does not show the network ACL of the subnets {}; all other subnets of the zone are closed",
                awaited.join(", ")
            ),
        ))
    }

    /// Gives each subnet with an ACL of the isolation the former ACL back. Deletes the ACLs of the isolation
    /// when EC2 shows the former ACLs. Returns the manual changes since the zone was closed.
    ///
    /// # Errors
    /// A former ACL is gone: [`Error::Config`], after all existing former ACLs are back. `deleting`: the
    /// VPC's default ACL replaces an ACL that is gone. EC2 does not show yet that the subnets are open:
    /// [`Error::NotReady`].
    pub async fn open(&self, before: Option<&Before>, deleting: bool) -> Result<Vec<ChangedByHand>> {
        let acls = self.acls(before).await?;
        self.refuse_foreign(&acls, before)?;
        let opening = opening(before, &acls, |acl| self.is_ours(acl, before), deleting);
        for swap in &opening.swaps {
            self.ec2.replace_association(&swap.association, &swap.acl).await?;
        }
        if !opening.stuck.is_empty() {
            return Err(Error::config(
                ErrorCode::ErrInfraDependencies,
                opening.stuck.join("; "),
            ));
        }
        let shown = if opening.swaps.is_empty() {
            None
        } else {
            Some(self.acls(before).await?)
        };
        self.confirm_opened(before, shown.as_deref().unwrap_or(&acls))
            .await?;
        for acl in acls.iter().filter(|acl| self.is_ours(acl, before)) {
            self.ec2.delete_network_acl(&acl.network_acl_id).await?;
        }
        // EC2 refuses this while the ACL is in front of a subnet, also where EC2 shows neither.
        if let Some(id) = before.and_then(|before| before.isolation_acl.as_ref())
            && !acls.iter().any(|acl| acl.network_acl_id == *id)
        {
            self.ec2.delete_network_acl(id).await?;
        }
        Ok(opening.changed)
    }

    /// All ACLs of the VPC. An ACL with a known id that is not listed is looked up by the id. This ACL comes
    /// first, because the listing shows an older state of the subnets of the ACL.
    async fn acls(&self, before: Option<&Before>) -> Result<Vec<NetworkAcl>> {
        let mut acls = self.ec2.network_acls(&self.vpc).await?;
        // Each VPC has a default ACL. A list with an ACL proves that the keys belong to the account.
        if acls.is_empty() {
            let network = format!("the network of {}", self.names.vpc());
            self.home.confirm(&self.ec2, &network).await?;
        }
        if let Some(id) = before.and_then(|before| before.isolation_acl.as_ref())
            && !acls.iter().any(|acl| acl.network_acl_id == *id)
            && let Some(unlisted) = self.ec2.network_acl(id).await?
        {
            acls.insert(0, unlisted);
        }
        Ok(acls)
    }

    /// A subnet that no ACL names may be behind an ACL that is not listed yet.
    async fn confirm_opened(&self, before: Option<&Before>, acls: &[NetworkAcl]) -> Result<()> {
        let Unconfirmed {
            closed: mut not_open,
            unlisted,
        } = unconfirmed(before, acls, |acl| self.is_ours(acl, before));
        for subnet in unlisted {
            if self.ec2.subnet(&subnet).await?.is_some() {
                not_open.push(subnet);
            }
        }
        if not_open.is_empty() {
            return Ok(());
        }
        Err(Error::not_ready(
            ACL_POLL_INTERVAL,
            format!(
                "EC2 does not show yet that {} of the zone are open",
                not_open.join(", ")
            ),
        ))
    }

    /// Whether an ACL belongs to this isolation: by the recorded id, else by the tags. An administrator may
    /// have changed the tags of the recorded ACL.
    fn is_ours(&self, acl: &NetworkAcl, before: Option<&Before>) -> bool {
        let has_foreign_uid = self.names.owned().foreign_uid(acl).is_some();
        is_recorded(acl, before) || self.has_our_name(acl) && !has_foreign_uid
    }

    fn has_our_name(&self, acl: &NetworkAcl) -> bool {
        acl.name() == self.name && acl.tag(&self.names.owned().key()).is_some()
    }

    /// Refuses an ACL with our name of a different Shoot.
    fn refuse_foreign(&self, acls: &[NetworkAcl], before: Option<&Before>) -> Result<()> {
        let owned = self.names.owned();
        let has_our_name = |acl: &&NetworkAcl| self.has_our_name(acl) && !is_recorded(acl, before);
        let mut foreign = acls.iter().filter(has_our_name);
        let foreign = foreign.find_map(|acl| Some((acl.id(), owned.foreign_uid(acl)?)));
        let Some((acl, uid)) = foreign else {
            return Ok(());
        };
        let own = owned.shoot_uid().unwrap_or_default();
        Err(Error::config(
            ErrorCode::ErrInfraDependencies,
            format!(
                "the network ACL {acl} is named {} and belongs to a different Shoot: its tag {SHOOT_UID} is {uid}, and the uid of this \
                 Shoot is {own}. Nothing was changed: use a different account or a different name for this Shoot. Only if the network \
                 ACL belongs to this Shoot, set the tag to {own}",
                self.name
            ),
        ))
    }

    /// The ACL of the isolation: the recorded ACL, else the ACL that closes most subnets, else the lowest id;
    /// and all further ACLs of the isolation.
    fn ours<'a>(
        &self,
        acls: &'a [NetworkAcl],
        before: Option<&Before>,
    ) -> (Option<&'a NetworkAcl>, Vec<&'a NetworkAcl>) {
        let is_ours = |acl: &&NetworkAcl| self.is_ours(acl, before);
        let mut ours: Vec<&NetworkAcl> = acls.iter().filter(is_ours).collect();
        ours.sort_by_key(|acl| {
            (
                !is_recorded(acl, before),
                std::cmp::Reverse(acl.associations.len()),
                acl.network_acl_id.as_str(),
            )
        });
        let mut ours = ours.into_iter();
        (ours.next(), ours.collect())
    }

    /// Sets the rules of our ACL. An ACL denies packets without a rule, so that foreign rules are deleted
    /// first. Returns whether a rule was changed.
    async fn deny_all(&self, ours: &NetworkAcl) -> Result<bool> {
        let wanted = Entry::that_deny_all();
        let extra = ours.rules().filter(|entry| !wanted.contains(entry));
        let missing = wanted
            .iter()
            .filter(|entry| !ours.rules().any(|there| there == *entry));
        let mut changed = false;
        for entry in extra {
            self.ec2.delete_entry(&ours.network_acl_id, entry).await?;
            changed = true;
        }
        for entry in missing {
            self.ec2.create_entry(&ours.network_acl_id, entry).await?;
            changed = true;
        }
        Ok(changed)
    }

    /// Confirms that EC2 shows our ACL in front of all subnets, with all rules.
    async fn confirm(&self, subnets: &BTreeSet<String>, before: &Before, id: &str) -> Result<()> {
        let acls = self.acls(Some(before)).await?;
        let wanted = Entry::that_deny_all();
        let denies = |acl: &NetworkAcl| {
            acl.rules().count() == wanted.len() && acl.rules().all(|entry| wanted.contains(entry))
        };
        let shown = acls.iter().any(|acl| acl.network_acl_id == id && denies(acl));
        let ours = acls.iter().filter(|acl| self.is_ours(acl, Some(before))).count();
        if shown && ours == 1 && closing(subnets, &acls, id).is_empty() {
            return Ok(());
        }
        Err(Error::not_ready(
            ACL_POLL_INTERVAL,
            format!("EC2 does not show yet that {id} is in front of all subnets of the zone"),
        ))
    }
}

fn is_recorded(acl: &NetworkAcl, before: Option<&Before>) -> bool {
    before.is_some_and(|before| before.isolation_acl.as_ref() == Some(&acl.network_acl_id))
}

/// The tags of our ACL that name the former ACLs.
fn former(before: &Before) -> impl Iterator<Item = Tag> {
    before.acls.iter().map(|(subnet, acl)| tag(subnet, acl))
}
