//! The next step of the controller for a shoot, and the requests of people that lead to a step.

use std::time::Duration;

use api::{
    constants::{SHOOT_FORCE_RESTORE, SHOOT_RENEW_OWNERSHIP},
    gardencore::{
        Shoot,
        shoot::{FormerSeed, OwnershipApproval},
    },
};
use ownership::Ownership;

/// The requests that an operator can make by annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Take over the shoot without the help of its owner.
    Takeover,
    /// The seed keeps the shoot in the next epoch.
    Renewal,
}

impl Request {
    /// The annotation.
    #[must_use]
    pub fn annotation(self) -> &'static str {
        match self {
            Self::Takeover => SHOOT_FORCE_RESTORE,
            Self::Renewal => SHOOT_RENEW_OWNERSHIP,
        }
    }
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// No step until a change.
    Nothing,
    /// Requeue after this time.
    Wait(Duration),
    /// Refuse the request and remove the annotation.
    Refuse(Request, String),
    /// The approval of the request is recorded: remove the annotation.
    Consume(Request),
    /// Record the approval.
    Approve(OwnershipApproval),
    /// Withdraw the approval.
    Withdraw(String),
    /// The point of no return: hand over the shoot.
    HandOver {
        /// The new ownership, with the present ownership.
        becomes: Ownership<String>,
        /// The approval that is consumed.
        approval: OwnershipApproval,
    },
    /// Record that these former seeds are stated to be off; the shoot stays in its seed.
    StateOff(Vec<FormerSeed>),
    /// The seed keeps the shoot in a new epoch.
    Renew {
        /// The new ownership.
        becomes: Ownership<String>,
        /// The approval that is consumed. `None` for a move that was cancelled after its source had begun to
        /// seal.
        approval: Option<OwnershipApproval>,
    },
}

/// The approval that is still to be used. An approval of an earlier epoch is used up, and records how this
/// epoch began.
#[must_use]
pub fn consent(shoot: &Shoot) -> Option<&OwnershipApproval> {
    let ownership = shoot.status.as_ref()?.ownership.as_ref()?;
    let approval = ownership.approval.as_ref()?;
    (approval.epoch >= ownership.epoch).then_some(approval)
}
