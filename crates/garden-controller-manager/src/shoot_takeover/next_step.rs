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

/// What a person can ask for by annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// That the shoot is taken over without the help of the seed that has it.
    Takeover,
    /// That the seed keeps the shoot in the next epoch.
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

/// What is next.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Nothing, until something changes.
    Nothing,
    /// Time passes.
    Wait(Duration),
    /// It was asked for, and may not be. The annotation goes.
    Refuse(Request, String),
    /// It was asked for, and the consent stands. The annotation goes.
    Consume(Request),
    /// Consent is recorded.
    Approve(OwnershipApproval),
    /// Consent counts for nothing any more.
    Withdraw(String),
    /// The point of no return: what the ownership becomes.
    HandOver {
        /// With what it is now.
        becomes: Ownership<String>,
        /// The consent that is used.
        approval: OwnershipApproval,
    },
    /// These former seeds are recorded as stated to be off; the shoot stays where it is.
    StateOff(Vec<FormerSeed>),
    /// The seed keeps the shoot in a new epoch.
    Renew {
        /// What the ownership becomes.
        becomes: Ownership<String>,
        /// The consent that is used. None is needed where a move was called off after its source had begun to
        /// seal.
        approval: Option<OwnershipApproval>,
    },
}

/// Consent that is to be used. One of an earlier epoch was used, and tells how this epoch began.
#[must_use]
pub fn consent(shoot: &Shoot) -> Option<&OwnershipApproval> {
    let ownership = shoot.status.as_ref()?.ownership.as_ref()?;
    let approval = ownership.approval.as_ref()?;
    (approval.epoch >= ownership.epoch).then_some(approval)
}
