//! The bucket with the backups of a shoot that comes from a different seed.

use api::{constants::OWNERSHIP_EPOCH, gardencore::BackupEntry};
use kube::ResourceExt;
use runtime::Result;

use crate::configuration_problem;

/// Name prefix of a source BackupEntry.
pub(crate) const SOURCE: &str = "source-";

/// The bucket to copy from. Fails when no entry names the bucket: without the backups the shoot would start
/// empty. `opened`: the epoch in which the data were opened last. A seed that received the shoot since then
/// has opened no data. If that seed created a source entry, the source entry names the bucket with the data.
/// The shoot's own entry may already name that seed's bucket.
pub(crate) fn source_bucket(
    original: Option<&BackupEntry>,
    source: Option<&BackupEntry>,
    own: &str,
    opened: Option<i64>,
) -> Result<String> {
    let known = |entry: &BackupEntry| Some(entry.spec.bucket_name.clone()).filter(|bucket| bucket != own);
    // A source entry of an earlier move may be left: the shoot's own entry is newer, until it is switched.
    let is_of_a_claimant = |entry: &&BackupEntry| {
        let said = entry.annotations().get(OWNERSHIP_EPOCH);
        let epoch = said.and_then(|text| text.parse::<i64>().ok()).unwrap_or(1);
        opened.is_some_and(|opened| epoch > opened)
    };
    let announced = source.filter(is_of_a_claimant).and_then(known);
    let others = || original.and_then(known).or_else(|| source.and_then(known));
    if let Some(bucket) = announced.or_else(others) {
        return Ok(bucket);
    }
    Err(configuration_problem(match (original, source) {
        (None, _) => "the shoot has no BackupEntry, so that nothing says where its backups are: restore the BackupEntry \
                      with the bucket of the former seed (spec.bucketName: uid of that Seed)"
            .to_owned(),
        (Some(original), None) => format!(
            "backups have not been copied, and the source BackupEntry, which names the former bucket, is gone: create \
             BackupEntry {SOURCE}{} with spec.bucketName set to the uid of the former Seed and the spec.seedName of \
             BackupEntry {}",
            original.name_any(),
            original.name_any()
        ),
        (Some(_), Some(source)) => format!(
            "backups have not been copied and source and target backupentry point to the same bucket: set \
             spec.bucketName of BackupEntry {} to the uid of the former Seed",
            source.name_any()
        ),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::BackupEntrySpec;

    use super::*;

    fn entry(name: &str, bucket: &str) -> BackupEntry {
        BackupEntry::new(
            name,
            BackupEntrySpec {
                bucket_name: bucket.into(),
                ..BackupEntrySpec::default()
            },
        )
    }

    #[test]
    fn the_former_bucket_is_known_until_the_entry_was_switched_and_afterwards_by_the_source_entry() {
        let (before, after) = (entry("a", "former"), entry("a", "own"));
        let source = entry("source-a", "former");
        assert_eq!(source_bucket(Some(&before), None, "own", None).unwrap(), "former");
        assert_eq!(
            source_bucket(Some(&before), Some(&source), "own", None).unwrap(),
            "former"
        );
        assert_eq!(
            source_bucket(Some(&after), Some(&source), "own", None).unwrap(),
            "former"
        );
    }

    #[test]
    fn a_source_entry_of_an_earlier_move_is_not_preferred() {
        let (before, stale) = (entry("a", "former"), entry("source-a", "long-ago"));
        assert_eq!(
            source_bucket(Some(&before), Some(&stale), "own", None).unwrap(),
            "former"
        );
    }

    /// A destination that has opened no data is not a source, even when the entry was already switched before
    /// the seed died.
    #[test]
    fn a_third_seed_copies_from_where_the_data_were_opened_last() {
        let at = |bucket, epoch: &str| {
            let mut source = entry("source-a", bucket);
            source
                .annotations_mut()
                .insert(OWNERSHIP_EPOCH.into(), epoch.into());
            source
        };
        let switched = entry("a", "of-the-claimant");
        let of = |source: &BackupEntry, opened| {
            source_bucket(Some(&switched), Some(source), "own", opened).unwrap()
        };
        assert_eq!(of(&at("former", "3"), Some(2)), "former");
        assert_eq!(of(&at("former", "4"), Some(2)), "former");
        // The data were opened there: the source entry is from an earlier move.
        assert_eq!(of(&at("former", "3"), Some(3)), "of-the-claimant");
        assert_eq!(of(&entry("source-a", "former"), Some(2)), "of-the-claimant");
        assert_eq!(of(&at("former", "3"), None), "of-the-claimant");
    }

    #[test]
    fn nothing_is_guessed_where_no_entry_names_the_former_bucket() {
        let after = entry("a", "own");
        let refused = |original: Option<&BackupEntry>, source: Option<&BackupEntry>| {
            source_bucket(original, source, "own", None)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(Some(&after), None).contains("create BackupEntry source-a"));
        let same = entry("source-a", "own");
        assert!(refused(Some(&after), Some(&same)).contains("point to the same bucket"));
        assert!(refused(None, None).contains("no BackupEntry"));
    }
}
