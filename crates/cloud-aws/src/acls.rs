//! Network ACLs: what packets pass the border of a subnet. Each subnet has exactly one; which one is an
//! association, whose id is another after each change.

use serde::Deserialize;

use crate::{
    Answer, Call, Ec2, Items, Owned,
    network::owned,
    tags::{Tag, tagged},
};

/// The call that lists ACLs.
const DESCRIBE: &str = "DescribeNetworkAcls";

/// The rules from this number on are EC2's own: they refuse what no other rule decides, and cannot be
/// changed.
const OWN_RULES: u16 = 32_767;
/// All of IPv4, and all of IPv6.
const ALL: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// Rules for packets at the border of subnets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkAcl {
    /// Its id.
    pub network_acl_id: String,
    /// Where it is.
    pub vpc_id: String,
    /// It is that of subnets for which nobody chose one. It goes with its VPC only.
    #[serde(rename = "default")]
    pub is_default: bool,
    /// Its rules.
    #[serde(default, rename = "entrySet")]
    pub entries: Items<Entry>,
    /// For which subnets it counts.
    #[serde(default, rename = "associationSet")]
    pub associations: Items<AclAssociation>,
    /// Its tags.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

tagged!(NetworkAcl, network_acl_id);

/// One rule. The one with the lowest number that fits a packet decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// For packets that leave.
    pub egress: bool,
    /// Its number.
    pub rule_number: u16,
    /// `-1`: all.
    pub protocol: String,
    /// `allow` or `deny`.
    pub rule_action: String,
    /// For these of IPv4.
    pub cidr_block: Option<String>,
    /// For these of IPv6.
    pub ipv6_cidr_block: Option<String>,
}

/// For which subnet an ACL counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AclAssociation {
    /// Its id.
    pub network_acl_association_id: String,
    /// The subnet.
    pub subnet_id: String,
}

impl NetworkAcl {
    /// How it counts for a subnet, if it does.
    #[must_use]
    pub fn association_of(&self, subnet: &str) -> Option<&AclAssociation> {
        let mut associations = self.associations.iter();
        associations.find(|association| association.subnet_id == subnet)
    }

    /// The rules that somebody has made.
    pub fn rules(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.rule_number < OWN_RULES)
    }
}

impl Entry {
    /// The four rules that let nothing pass: IPv4 and IPv6, in and out.
    #[must_use]
    pub fn that_deny_all() -> Vec<Self> {
        let mut entries = Vec::new();
        for (number, range) in (1..).zip(ALL) {
            for egress in [false, true] {
                let range = Some(range.to_owned());
                let (v4, v6) = if number == 1 { (range, None) } else { (None, range) };
                entries.push(Self {
                    egress,
                    rule_number: number,
                    protocol: "-1".into(),
                    rule_action: "deny".into(),
                    cidr_block: v4,
                    ipv6_cidr_block: v6,
                });
            }
        }
        entries
    }
}

impl Ec2 {
    /// All ACLs of a VPC, whoever has made them.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn network_acls(&self, vpc: &str) -> Answer<Vec<NetworkAcl>> {
        self.list(&Call::new(DESCRIBE).filtered("vpc-id", vpc).paged())
            .await
    }

    /// The ACL with this id, also while EC2 does not list the ACL yet.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn network_acl(&self, id: &str) -> Answer<Option<NetworkAcl>> {
        let call = Call::new(DESCRIBE).with("NetworkAclId.1", id);
        match self.list::<NetworkAcl>(&call).await {
            Ok(found) => Ok(found.into_iter().next()),
            Err(failed) if failed.is_missing() => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    /// The ACLs of a cluster.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn owned_network_acls(&self, of: &Owned) -> Answer<Vec<NetworkAcl>> {
        self.list(&owned(DESCRIBE, of).paged()).await
    }

    /// Makes an ACL without rules of its own: nothing passes.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn create_network_acl(&self, vpc: &str, token: &str, tags: &[Tag]) -> Answer<NetworkAcl> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Made {
            network_acl: NetworkAcl,
        }
        let call = Call::new("CreateNetworkAcl")
            .with("VpcId", vpc)
            .with("ClientToken", token)
            .tagged("network-acl", tags);
        Ok(self.ask::<Made>(&call).await?.network_acl)
    }

    /// Takes an ACL away that counts for no subnet.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn delete_network_acl(&self, id: &str) -> Answer<()> {
        self.remove(&Call::new("DeleteNetworkAcl").with("NetworkAclId", id))
            .await
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn create_entry(&self, acl: &str, entry: &Entry) -> Answer<()> {
        let call = Call::new("CreateNetworkAclEntry")
            .with("NetworkAclId", acl)
            .with("RuleNumber", entry.rule_number.to_string())
            .with("Protocol", &entry.protocol)
            .with("RuleAction", &entry.rule_action)
            .with("Egress", entry.egress.to_string());
        let call = match (&entry.cidr_block, &entry.ipv6_cidr_block) {
            (Some(range), _) => call.with("CidrBlock", range),
            (None, Some(range)) => call.with("Ipv6CidrBlock", range),
            (None, None) => call,
        };
        self.tell(&call).await
    }

    /// Takes a rule away.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn delete_entry(&self, acl: &str, entry: &Entry) -> Answer<()> {
        let call = Call::new("DeleteNetworkAclEntry")
            .with("NetworkAclId", acl)
            .with("RuleNumber", entry.rule_number.to_string())
            .with("Egress", entry.egress.to_string());
        self.remove(&call).await
    }

    /// Another ACL counts for the subnet of this association from now on.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn replace_association(&self, association: &str, acl: &str) -> Answer<()> {
        let call = Call::new("ReplaceNetworkAclAssociation")
            .with("AssociationId", association)
            .with("NetworkAclId", acl);
        self.tell(&call).await
    }

    /// Sets tags of a thing that is there.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn set_tags(&self, id: &str, tags: &[Tag]) -> Answer<()> {
        self.set_tags_of(&[id.to_owned()], tags).await
    }

    /// Sets tags of existing objects.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn set_tags_of(&self, ids: &[String], tags: &[Tag]) -> Answer<()> {
        let mut call = Call::new("CreateTags").with_each("ResourceId", ids);
        for (index, tag) in tags.iter().enumerate() {
            let name = format!("Tag.{}", index + 1);
            call = call
                .with(&format!("{name}.Key"), &tag.key)
                .with(&format!("{name}.Value"), &tag.value);
        }
        self.tell(&call).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_denied_both_ways_in_both_families() {
        let entries = Entry::that_deny_all();
        let mut seen: Vec<_> = entries
            .iter()
            .map(|entry| {
                (
                    entry.egress,
                    entry.cidr_block.as_deref(),
                    entry.ipv6_cidr_block.as_deref(),
                )
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(
            seen,
            [
                (false, None, Some("::/0")),
                (false, Some("0.0.0.0/0"), None),
                (true, None, Some("::/0")),
                (true, Some("0.0.0.0/0"), None),
            ]
        );
        assert!(
            entries
                .iter()
                .all(|entry| entry.rule_action == "deny" && entry.protocol == "-1")
        );
    }
}
