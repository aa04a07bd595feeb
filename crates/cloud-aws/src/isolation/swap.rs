//! The calls: our ACL in front of subnets, and the former ones back.

use std::collections::BTreeSet;
use std::time::Duration;

use api::meta::ErrorCode;
use runtime::{Error, Result};

use super::plan::{Before, ChangedByHand, before, closing, opening, tag};
use crate::{
    Ec2, Tag, Tagged,
    acls::{Entry, NetworkAcl},
    infrastructure::Names,
    token::token,
};

/// How soon to look again when EC2 does not show yet what it has done.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// What our ACL is called, after the shoot's technical id.
const ISOLATED: &str = "isolated";

/// The ACL of a shoot that lets nothing pass. There is one: two zones are never closed.
#[derive(Clone, Debug)]
pub struct ZoneAcl {
    ec2: Ec2,
    names: Names,
    name: String,
    vpc: String,
    closing: String,
}

impl ZoneAcl {
    /// That of the shoot with this technical id, in its VPC. `closing`: what differs from one time that a zone is closed to the next, so
    /// that an ACL of before, which is gone, is not taken for the one that is made.
    #[must_use]
    pub fn new(ec2: Ec2, technical_id: &str, vpc: &str, closing: &str) -> Self {
        let names = Names::of(technical_id);
        Self {
            ec2,
            name: names.one(ISOLATED),
            names,
            vpc: vpc.to_owned(),
            closing: closing.to_owned(),
        }
    }

    /// Which ACL each subnet had before it got ours. Changes nothing.
    ///
    /// # Errors
    /// It cannot be told.
    pub async fn look(&self, subnets: &BTreeSet<String>, known: Option<&Before>) -> Result<Before> {
        let acls = self.ec2.network_acls(&self.vpc).await?;
        before(subnets, &acls, |acl| self.is_ours(acl), known)
    }

    /// Puts ours in front of the subnets, and mends what somebody has changed of it. Returns its id when EC2 shows all of it.
    ///
    /// # Errors
    /// EC2 does not show it yet: [`Error::NotReady`]; a subnet is not there.
    pub async fn close(&self, subnets: &BTreeSet<String>, before: &Before) -> Result<String> {
        let acls = self.ec2.network_acls(&self.vpc).await?;
        let (ours, others) = self.ours(&acls);
        let mut changed = ours.is_none();
        let ours = match ours {
            Some(ours) => ours.clone(),
            None => self.make(before).await?,
        };
        let id = &ours.network_acl_id;
        // What ours was in front of subnets before stays readable until they are given back.
        let missing: Vec<Tag> = former(before)
            .filter(|tag| ours.tag(&tag.key) != Some(tag.value.as_str()))
            .collect();
        if !missing.is_empty() {
            self.ec2.set_tags(id, &missing).await?;
            changed = true;
        }
        changed |= self.deny_all(&ours).await?;
        for swap in closing(subnets, &acls, id)? {
            self.ec2.replace_association(&swap.association, &swap.acl).await?;
            changed = true;
        }
        // Made by attempts that did not know of each other.
        for other in others.iter().filter(|other| other.associations.is_empty()) {
            self.ec2.delete_network_acl(&other.network_acl_id).await?;
            changed = true;
        }
        if changed || !others.is_empty() {
            self.confirm(subnets, id).await?;
        }
        Ok(id.clone())
    }

    /// Gives each subnet with ours its former ACL back, then takes ours away. Returns what somebody has changed by hand meanwhile.
    ///
    /// # Errors
    /// A former ACL is gone: [`Error::Config`], after all others were given back. `deleting`: the VPC's default takes its place.
    pub async fn open(&self, before: Option<&Before>, deleting: bool) -> Result<Vec<ChangedByHand>> {
        let acls = self.ec2.network_acls(&self.vpc).await?;
        let opening = opening(before, &acls, |acl| self.is_ours(acl), deleting);
        for swap in &opening.swaps {
            self.ec2.replace_association(&swap.association, &swap.acl).await?;
        }
        if !opening.stuck.is_empty() {
            return Err(Error::config(
                ErrorCode::ErrInfraDependencies,
                opening.stuck.join("; "),
            ));
        }
        for acl in acls.iter().filter(|acl| self.is_ours(acl)) {
            self.ec2.delete_network_acl(&acl.network_acl_id).await?;
        }
        Ok(opening.changed)
    }

    fn is_ours(&self, acl: &NetworkAcl) -> bool {
        acl.name() == self.name && acl.tag(&self.names.owned().key()).is_some()
    }

    /// Of ours the one that closes most, or has the lowest id; and the others.
    fn ours<'a>(&self, acls: &'a [NetworkAcl]) -> (Option<&'a NetworkAcl>, Vec<&'a NetworkAcl>) {
        let mut ours: Vec<&NetworkAcl> = acls.iter().filter(|acl| self.is_ours(acl)).collect();
        ours.sort_by_key(|acl| {
            (
                std::cmp::Reverse(acl.associations.len()),
                acl.network_acl_id.as_str(),
            )
        });
        let mut ours = ours.into_iter();
        (ours.next(), ours.collect())
    }

    async fn make(&self, before: &Before) -> Result<NetworkAcl> {
        let mut tags = self.names.tags(&self.name);
        tags.extend(former(before));
        let token = token(&self.closing, &self.name);
        Ok(self.ec2.create_network_acl(&self.vpc, &token, &tags).await?)
    }

    /// What ours has no rule for it refuses anyway, so others' rules go first. Returns whether something was changed.
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

    /// EC2 shows ours in front of all subnets, with its rules.
    async fn confirm(&self, subnets: &BTreeSet<String>, id: &str) -> Result<()> {
        let acls = self.ec2.network_acls(&self.vpc).await?;
        let wanted = Entry::that_deny_all();
        let denies = |acl: &NetworkAcl| {
            acl.rules().count() == wanted.len() && acl.rules().all(|entry| wanted.contains(entry))
        };
        let shown = acls.iter().any(|acl| acl.network_acl_id == id && denies(acl));
        let ours = acls.iter().filter(|acl| self.is_ours(acl)).count();
        if shown && ours == 1 && closing(subnets, &acls, id)?.is_empty() {
            return Ok(());
        }
        Err(Error::not_ready(
            LOOK_AGAIN,
            format!("EC2 does not show yet that {id} is in front of all subnets of the zone"),
        ))
    }
}

/// The tags of ours that name the former ones.
fn former(before: &Before) -> impl Iterator<Item = Tag> {
    before.acls.iter().map(|(subnet, acl)| tag(subnet, acl))
}
