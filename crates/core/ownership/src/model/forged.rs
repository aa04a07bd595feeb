//! Stolen certificates of gardenlets: a hand-over in the name of the first owner, and phases in the name of
//! the claimant. The processes of a seed whose certificate was stolen are honest.

use super::action::Action;
use super::scenario::{Off, Scenario, Seed};
use super::state::State;
use crate::phase::{Chain, Ownership, Phase, SeedEpoch, Step, Writer};

impl State {
    /// Steps of a stolen certificate of the first owner.
    pub(super) fn forged(&self, scenario: &Scenario) -> impl Iterator<Item = Step<Seed>> + use<> {
        let is_possible = scenario.forged && self.garden.now.epoch == 1;
        let hand_over = Step::HandOver {
            to: Seed::B,
            final_seen: true,
            drained: true,
        };
        let steps = [Step::Leave, Step::Seal, hand_over];
        steps.into_iter().filter(move |_| is_possible)
    }

    /// Whether the owner record contradicts the hand-over. The claimant reads the record before each further
    /// step.
    pub(super) fn is_doubted(&self, scenario: &Scenario, read: &Ownership<Seed>) -> bool {
        let zone = &self.zone[0];
        // An identity beside an earlier epoch is of an owner that was never fenced.
        let names = |source: &SeedEpoch<Seed>| {
            let is_published = zone.epoch.is_some_and(|epoch| epoch <= source.epoch);
            is_published && zone.identity.is_some()
        };
        let is_checked = scenario.forged && scenario.is_on(Off::HandOverConfirmed);
        is_checked && read.drained && read.phase == Phase::Claiming && read.source.as_ref().is_some_and(names)
    }

    /// Phases that a stolen certificate of the claimant records, and the claimant that acts on these phases.
    pub(super) fn forged_phases(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        let epoch = self.garden.now.epoch;
        if !scenario.forged_phases || epoch == 1 {
            return;
        }
        let owner = Writer::Seed(self.garden.now.seed);
        let steps = [Step::Open(Chain::Last), Step::Hold, Step::Leave];
        for step in steps {
            if self.garden.step(&owner, step.clone()).is_ok() {
                actions.push(Action::Forge { step });
            }
        }
        let relied_on = self.relied_on(scenario, epoch, &self.garden);
        let is_followed = matches!(relied_on.phase, Phase::Held | Phase::Leaving);
        if is_followed && !self.site(epoch).acts {
            actions.push(Action::Follow { epoch });
        }
    }

    /// The record on which the gardenlet of the epoch relies.
    pub(super) fn relied_on(
        &self,
        scenario: &Scenario,
        epoch: i64,
        read: &Ownership<Seed>,
    ) -> Ownership<Seed> {
        let is_checked = scenario.forged_phases && scenario.is_on(Off::PhaseNoted);
        read.as_noted(!is_checked || self.site(epoch).noted)
    }

    /// The claimant chooses the data: first the note in the seed, and then the phase. A stolen certificate
    /// may have recorded the phase.
    pub(super) fn choose(
        &self,
        scenario: &Scenario,
        chain: Chain,
        steps: &mut Vec<(Writer<Seed>, Step<Seed>)>,
        actions: &mut Vec<Action>,
    ) {
        let SeedEpoch { seed, epoch } = self.garden.now;
        if scenario.forged_phases && !self.site(epoch).noted {
            actions.push(Action::Note { epoch });
        } else {
            steps.push((Writer::Seed(seed), Step::Open(chain)));
        }
    }

    /// Only the record changes: the claimant has not acted.
    pub(super) fn forge(&mut self, step: Step<Seed>) {
        let SeedEpoch { seed, epoch } = self.garden.now;
        if let Ok(write) = self.garden.step(&Writer::Seed(seed), step) {
            self.site_mut(epoch).read = write.becomes.clone();
            self.garden = write.becomes;
        }
    }

    pub(super) fn follow(&mut self, epoch: i64) {
        let site = self.site_mut(epoch);
        site.acts = true;
        site.fence = None;
    }
}
