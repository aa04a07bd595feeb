//! The calls: our ACL in front of subnets, and the former ones back.

use std::collections::BTreeSet;
use std::time::Duration;

use api::meta::ErrorCode;
use runtime::{Error, Result};

use super::plan::{Before, ChangedByHand, Unconfirmed, before, closing, opening, tag, unconfirmed};
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
    /// That of the shoot with this technical id, in its VPC. `closing`: what differs from one time that a
    /// zone is closed to the next, so that an ACL of before, which is gone, is not taken for the one that is
    /// made.
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
        let acls = self.acls(known).await?;
        let mut before = before(subnets, &acls, |acl| self.is_ours(acl), known)?;
        let (ours, _) = self.ours(&acls);
        before.isolation_acl = ours.map(|ours| ours.network_acl_id.clone());
        Ok(before)
    }

    /// Makes the ACL unless there is one, in front of no subnet, and returns `before` with its id. The id is
    /// to be kept before [`ZoneAcl::close`], as EC2 may not list the ACL when another process opens the
    /// subnets.
    ///
    /// # Errors
    /// EC2 refuses or does not answer.
    pub async fn make(&self, before: &Before) -> Result<Before> {
        if before.isolation_acl.is_some() {
            return Ok(before.clone());
        }
        let acls = self.acls(None).await?;
        let id = if let Some(ours) = self.ours(&acls).0 {
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

    /// Puts the ACL that [`ZoneAcl::make`] has made in front of the subnets, and fixes what was changed by
    /// hand. Returns the id of the ACL when EC2 shows all of it.
    ///
    /// # Errors
    /// EC2 does not show it yet: [`Error::NotReady`]; a subnet is not there.
    pub async fn close(&self, subnets: &BTreeSet<String>, before: &Before) -> Result<String> {
        let acls = self.acls(Some(before)).await?;
        let (Some(ours), others) = self.ours(&acls) else {
            return Err(Error::not_ready(
                LOOK_AGAIN,
                format!("EC2 does not show the network ACL {} yet", self.name),
            ));
        };
        let mut changed = false;
        let id = &ours.network_acl_id;
        // What ours was in front of subnets before stays readable until they are given back.
        let missing: Vec<Tag> = former(before)
            .filter(|tag| ours.tag(&tag.key) != Some(tag.value.as_str()))
            .collect();
        if !missing.is_empty() {
            self.ec2.set_tags(id, &missing).await?;
            changed = true;
        }
        changed |= self.deny_all(ours).await?;
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
            self.confirm(subnets, before, id).await?;
        }
        Ok(id.clone())
    }

    /// Gives each subnet with an ACL of the isolation the former ACL back, and deletes the ACLs of the
    /// isolation when EC2 shows that. Returns what was changed by hand meanwhile.
    ///
    /// # Errors
    /// A former ACL is gone: [`Error::Config`], after all others were given back. `deleting`: the VPC's
    /// default takes its place. EC2 does not show yet that the subnets are open: [`Error::NotReady`].
    pub async fn open(&self, before: Option<&Before>, deleting: bool) -> Result<Vec<ChangedByHand>> {
        let acls = self.acls(before).await?;
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
        let shown = if opening.swaps.is_empty() {
            None
        } else {
            Some(self.acls(before).await?)
        };
        self.confirm_opened(before, shown.as_deref().unwrap_or(&acls))
            .await?;
        for acl in acls.iter().filter(|acl| self.is_ours(acl)) {
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

    /// All ACLs of the VPC. An ACL whose id is known and that is not listed is looked up by the id, and comes
    /// first: what the listing shows of its subnets is older.
    async fn acls(&self, before: Option<&Before>) -> Result<Vec<NetworkAcl>> {
        let mut acls = self.ec2.network_acls(&self.vpc).await?;
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
        } = unconfirmed(before, acls, |acl| self.is_ours(acl));
        if !unlisted.is_empty() {
            let there = self.ec2.subnets(&self.names.owned()).await?;
            let is_there = |id: &String| there.iter().any(|subnet| subnet.subnet_id == *id);
            not_open.extend(unlisted.into_iter().filter(is_there));
        }
        if not_open.is_empty() {
            return Ok(());
        }
        Err(Error::not_ready(
            LOOK_AGAIN,
            format!(
                "EC2 does not show yet that {} of the zone are open",
                not_open.join(", ")
            ),
        ))
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

    /// What ours has no rule for it refuses anyway, so others' rules go first. Returns whether something was
    /// changed.
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
    async fn confirm(&self, subnets: &BTreeSet<String>, before: &Before, id: &str) -> Result<()> {
        let acls = self.acls(Some(before)).await?;
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
