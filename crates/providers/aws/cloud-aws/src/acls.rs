//! Network ACLs: rules for the packets that pass the border of a subnet. Each subnet has a single ACL, by an
//! association. The id of the association changes with each change of the ACL.

use serde::Deserialize;

use crate::{
    Answer, Call, Ec2, Items, Owned,
    network::owned,
    tags::{Tag, tagged},
};

/// The call that lists ACLs.
const DESCRIBE: &str = "DescribeNetworkAcls";

/// Rules from this number on belong to EC2 and cannot be changed. These rules deny all packets that match no
/// lower rule.
const OWN_RULES: u16 = 32_767;
/// All of IPv4, and all of IPv6.
const ALL: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// Rules for packets at the border of subnets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkAcl {
    /// The id of the ACL.
    pub network_acl_id: String,
    /// The VPC of the ACL.
    pub vpc_id: String,
    /// Whether this is the default ACL of the VPC, for subnets without a chosen ACL. The ACL ends only with
    /// the VPC.
    #[serde(rename = "default")]
    pub is_default: bool,
    /// The rules of the ACL.
    #[serde(default, rename = "entrySet")]
    pub entries: Items<Entry>,
    /// The subnets behind the ACL.
    #[serde(default, rename = "associationSet")]
    pub associations: Items<AclAssociation>,
    /// The tags of the ACL.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

tagged!(NetworkAcl, network_acl_id);

/// A rule. Of the rules that match a packet the rule with the lowest number decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// For packets that leave.
    pub egress: bool,
    /// The number of the rule.
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

/// The association of an ACL with a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AclAssociation {
    /// The id of the association.
    pub network_acl_association_id: String,
    /// The subnet.
    pub subnet_id: String,
}

impl NetworkAcl {
    /// The association of this ACL with a subnet. `None`: the subnet is not behind this ACL.
    #[must_use]
    pub fn association_of(&self, subnet: &str) -> Option<&AclAssociation> {
        let mut associations = self.associations.iter();
        associations.find(|association| association.subnet_id == subnet)
    }

    /// The rules of users, without the rules of EC2.
    pub fn rules(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.rule_number < OWN_RULES)
    }
}

impl Entry {
    /// The four rules that deny all packets: IPv4 and IPv6, in and out.
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
    /// All ACLs of a VPC, of all creators.
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

    /// Creates an ACL without rules: the ACL denies all packets.
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

    /// Replaces the ACL of this association. The new ACL filters the packets of the subnet from now on.
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
