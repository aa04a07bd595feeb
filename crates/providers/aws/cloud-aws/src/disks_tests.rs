#![allow(clippy::unwrap_used)]
use super::*;

fn image() -> ImageDisks {
    let mapping = |device: &str, ebs: &str| format!("<item><deviceName>{device}</deviceName>{ebs}</item>");
    let ebs = |gib: u32, ends: bool| {
        format!(
            "<ebs><snapshotId>snap-{gib}</snapshotId><volumeSize>{gib}</volumeSize><volumeType>gp3</volumeType>\
             <deleteOnTermination>{ends}</deleteOnTermination></ebs>"
        )
    };
    let mappings = [
        mapping("/dev/xvda", &ebs(8, false)),
        mapping("/dev/xvdb", &ebs(20, false)),
        mapping("/dev/xvdc", &ebs(30, true)),
        mapping("/dev/xvdd", "<virtualName>ephemeral0</virtualName>"),
    ];
    let text = format!(
        "<item><rootDeviceName>/dev/xvda</rootDeviceName><blockDeviceMapping>{}</blockDeviceMapping></item>",
        mappings.concat()
    );
    quick_xml::de::from_str(&text).unwrap()
}

/// The parameters of the disks in a launch.
fn launched(disk: Option<&Disk<'_>>) -> Vec<String> {
    let form = image().mapped(Call::new("RunInstances"), disk).form();
    let disks = form
        .split('&')
        .filter_map(|parameter| parameter.strip_prefix("BlockDeviceMapping."));
    disks.map(|parameter| parameter.replace("%2F", "/")).collect()
}

fn parameters(all: &[(&str, &str)]) -> Vec<String> {
    all.iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

#[test]
fn each_disk_of_an_image_ends_with_the_instance() {
    let expected = [
        ("1.DeviceName", "/dev/xvda"),
        ("1.Ebs.VolumeSize", "8"),
        ("1.Ebs.VolumeType", "gp3"),
        ("1.Ebs.DeleteOnTermination", "true"),
        ("2.DeviceName", "/dev/xvdb"),
        ("2.Ebs.VolumeSize", "20"),
        ("2.Ebs.VolumeType", "gp3"),
        ("2.Ebs.SnapshotId", "snap-20"),
        ("2.Ebs.DeleteOnTermination", "true"),
    ];
    assert_eq!(launched(None), parameters(&expected));
}

#[test]
fn the_disk_of_a_pool_replaces_the_first_disk_of_the_image() {
    let disk = Disk {
        device: "/dev/xvda",
        gib: 50,
        type_: Some("gp3"),
        is_encrypted: true,
    };
    let expected = [
        ("1.DeviceName", "/dev/xvda"),
        ("1.Ebs.VolumeSize", "50"),
        ("1.Ebs.DeleteOnTermination", "true"),
        ("1.Ebs.VolumeType", "gp3"),
        ("1.Ebs.Encrypted", "true"),
        ("2.DeviceName", "/dev/xvdb"),
        ("2.Ebs.VolumeSize", "20"),
        ("2.Ebs.VolumeType", "gp3"),
        ("2.Ebs.SnapshotId", "snap-20"),
        ("2.Ebs.DeleteOnTermination", "true"),
    ];
    assert_eq!(launched(Some(&disk)), parameters(&expected));
}
