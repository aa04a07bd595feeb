//! The answers about the owner of the shoot: `/ownership` and `/ownership/sealing`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The answer of `/ownership`, of a process with an owner check. The process is the second witness of every
/// process that acts for the shoot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SidecarOwnership {
    /// Ownership epoch of the process. Without an epoch the answer is no testimony.
    pub epoch: Option<i64>,
    /// The answer to the question for the owner, a word of `ownership::RelayedAnswer`. Without a word the
    /// answer is no testimony.
    pub answer: Option<String>,
    /// How long the answer stays valid, in milliseconds from the time of the request. Absent means zero.
    #[serde(default)]
    pub valid_for_milliseconds: u64,
    /// The state of the gate; `None` where the process reports no state.
    pub state: Option<EtcdGateState>,
    /// A sentence about the last answer of the witnesses.
    #[serde(default)]
    pub why: String,
    /// The result of the last SIGTERM to etcd.
    pub etcd: Option<String>,
    /// The effect of silence of both witnesses on the process, a word of `ownership::Silence`. An older
    /// process does not report this.
    pub silence: Option<String>,
    /// The shortest time that a destination must wait for this process, in milliseconds. An older process
    /// does not report this.
    pub least_fence_milliseconds: Option<u64>,
    /// The DNS servers that the process asks. An older process does not report servers.
    #[serde(default)]
    pub servers: Vec<String>,
    /// Whether the settings name these servers. An older process does not report this.
    pub servers_named: Option<bool>,
    /// The clock of the host that ends permits after a pause of the guest.
    pub host_clock: Option<String>,
}

impl SidecarOwnership {
    /// Whether clients are kept away from etcd on purpose (R17-40, R17-47).
    #[must_use]
    pub fn fences(&self) -> bool {
        self.state != Some(EtcdGateState::Serving)
    }

    /// Whether that is for ever: the shoot is lost (R17-49).
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.state == Some(EtcdGateState::Sealed)
    }
}

/// The state of the gate in front of etcd: the words of `ownership::SidecarState`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EtcdGateState {
    /// No witness has confirmed the seed since the process began: the gate is shut.
    Waiting,
    /// The seed owns the shoot: the gate is open and snapshots are taken.
    Serving,
    /// The seed was not confirmed for too long: the gate is shut until the next confirmation.
    Suspended,
    /// The shoot is lost: the gate is shut for ever in this epoch.
    Sealed,
    /// A state that this version does not know. The gate counts as shut.
    #[serde(untagged)]
    Other(String),
}

impl From<&str> for EtcdGateState {
    fn from(word: &str) -> Self {
        match word {
            "Waiting" => Self::Waiting,
            "Serving" => Self::Serving,
            "Suspended" => Self::Suspended,
            "Sealed" => Self::Sealed,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for EtcdGateState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting => "Waiting",
            Self::Serving => "Serving",
            Self::Suspended => "Suspended",
            Self::Sealed => "Sealed",
            Self::Other(word) => word,
        })
    }
}

/// The body of `POST /ownership/sealing`: the gardenlet has recorded phase `Sealing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealingReport {
    /// The ownership epoch that ends.
    pub epoch: i64,
}

/// The answer to a [`SealingReport`] that the process has recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealingAnswer {
    /// The ownership epoch that ends.
    pub epoch: i64,
    /// The recorded phase, `Sealing`.
    pub phase: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::round_trip::assert_round_trip;

    #[test]
    fn ownership_keeps_its_json() {
        let serving: SidecarOwnership = assert_round_trip(
            r#"{"answer":"Owned","epoch":3,"etcd":null,"hostClock":"None","leastFenceMilliseconds":23036,"servers":["192.0.2.1:5353"],"serversNamed":true,"silence":"Deactivate","state":"Serving","validForMilliseconds":7000,"why":"the seed owns the shoot"}"#,
        );
        assert!(!serving.fences() && !serving.is_lost());
        let sealed: SidecarOwnership = assert_round_trip(
            r#"{"answer":"Sealed","epoch":3,"etcd":"etcd was told to end","hostClock":"Rtc","leastFenceMilliseconds":26000,"servers":[],"serversNamed":false,"silence":"Tolerate","state":"Sealed","validForMilliseconds":0,"why":"epoch 4 has begun"}"#,
        );
        assert!(sealed.fences() && sealed.is_lost());
    }

    #[test]
    fn ownership_of_an_older_or_newer_process_is_read() {
        let older: SidecarOwnership = serde_json::from_str(r#"{"state":"Waiting"}"#).unwrap();
        assert!(older.fences() && !older.is_lost());
        assert_eq!((older.epoch, older.valid_for_milliseconds), (None, 0));
        assert_eq!((older.silence, older.servers_named), (None, None));
        let newer: SidecarOwnership = serde_json::from_str(r#"{"state":"Novelty"}"#).unwrap();
        assert!(newer.fences() && !newer.is_lost());
        assert_eq!(newer.state.unwrap().to_string(), "Novelty");
        assert!(SidecarOwnership::default().fences());
    }

    #[test]
    fn a_state_is_the_same_word_in_each_direction() {
        for word in ["Waiting", "Serving", "Suspended", "Sealed", "Novelty"] {
            let state = EtcdGateState::from(word);
            assert_eq!(state.to_string(), word);
            let written = serde_json::to_string(&state).unwrap();
            assert_eq!(written, format!("\"{word}\""));
            assert_eq!(serde_json::from_str::<EtcdGateState>(&written).unwrap(), state);
        }
    }

    #[test]
    fn a_report_of_phase_sealing_and_its_answer_keep_their_json() {
        let _: SealingReport = assert_round_trip(r#"{"epoch":3}"#);
        let _: SealingAnswer = assert_round_trip(r#"{"epoch":3,"phase":"Sealing"}"#);
    }
}
