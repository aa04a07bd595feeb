//! The disks of instances. An image may name disks that outlive the instance. A machine has no data to keep,
//! so that each disk of the image ends with the instance.

use serde::Deserialize;

use crate::{Call, Items};

/// The disk that an instance starts from.
#[derive(Clone, Copy, Debug)]
pub struct Disk<'a> {
    /// The device name of the disk in the image.
    pub device: &'a str,
    /// The size in GiB.
    pub gib: u32,
    /// The volume type. `None`: the default of EC2.
    pub type_: Option<&'a str>,
    /// Whether the disk is encrypted, with the default key of the account.
    pub is_encrypted: bool,
}

/// The disks that an image brings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageDisks {
    /// The device that an instance starts from.
    #[serde(default, rename = "rootDeviceName")]
    pub root: String,
    #[serde(default, rename = "blockDeviceMapping")]
    mappings: Items<Mapping>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mapping {
    #[serde(default)]
    device_name: String,
    /// Absent for an instance store volume, which ends with the instance.
    #[serde(default)]
    ebs: Option<Ebs>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ebs {
    #[serde(default)]
    delete_on_termination: bool,
    #[serde(default)]
    volume_size: Option<u32>,
    #[serde(default)]
    volume_type: Option<String>,
    #[serde(default)]
    iops: Option<u32>,
    #[serde(default)]
    throughput: Option<u32>,
    #[serde(default)]
    snapshot_id: Option<String>,
}

impl ImageDisks {
    /// Adds the disks of an instance to the launch call. `disk` replaces the first disk of the image. Each
    /// disk of the image that would outlive the instance is named, with the size, type and content of the
    /// image. EC2 takes from the image all disks that are not named, and always the content of the first
    /// disk.
    #[must_use]
    pub fn mapped(&self, mut call: Call, disk: Option<&Disk<'_>>) -> Call {
        let mut number = 0;
        let mut field = |call: Call, name: &str, value: &str| {
            if name == "DeviceName" {
                number += 1;
            }
            call.with(&format!("BlockDeviceMapping.{number}.{name}"), value)
        };
        if let Some(disk) = disk {
            call = field(call, "DeviceName", disk.device);
            call = field(call, "Ebs.VolumeSize", &disk.gib.to_string());
            call = field(call, "Ebs.DeleteOnTermination", "true");
            if let Some(type_) = disk.type_ {
                call = field(call, "Ebs.VolumeType", type_);
            }
            if disk.is_encrypted {
                call = field(call, "Ebs.Encrypted", "true");
            }
        }
        for mapping in self.mappings.iter() {
            let is_replaced = disk.is_some_and(|disk| disk.device == mapping.device_name);
            let Some(ebs) = mapping
                .ebs
                .as_ref()
                .filter(|ebs| !is_replaced && !ebs.delete_on_termination)
            else {
                continue;
            };
            call = field(call, "DeviceName", &mapping.device_name);
            // EC2 refuses a number for a type that takes none.
            let of_type = |value: Option<u32>, types: &[&str]| {
                let is_taken = ebs
                    .volume_type
                    .as_deref()
                    .is_some_and(|type_| types.contains(&type_));
                value.filter(|_| is_taken).map(|value| value.to_string())
            };
            // The content of the first disk is the image's.
            let snapshot = ebs
                .snapshot_id
                .clone()
                .filter(|_| mapping.device_name != self.root);
            for (name, value) in [
                ("Ebs.VolumeSize", ebs.volume_size.map(|gib| gib.to_string())),
                ("Ebs.VolumeType", ebs.volume_type.clone()),
                ("Ebs.Iops", of_type(ebs.iops, &["gp3", "io1", "io2"])),
                ("Ebs.Throughput", of_type(ebs.throughput, &["gp3"])),
                ("Ebs.SnapshotId", snapshot),
            ] {
                if let Some(value) = value {
                    call = field(call, name, &value);
                }
            }
            call = field(call, "Ebs.DeleteOnTermination", "true");
        }
        call
    }
}

#[cfg(test)]
#[path = "disks_tests.rs"]
mod tests;
