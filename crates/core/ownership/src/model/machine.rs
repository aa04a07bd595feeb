//! The machine of a process, which a hypervisor may pause: the clocks of the guest stand still during the
//! pause, and the host clock advances.

use std::time::Duration;

use permit::{HostClock, UNNOTICED_PAUSE};

use super::scenario::{Off, Scenario};
use super::state::{AnswerKind, Process, Right, ticks};

/// Seconds by which the host clock has advanced more than the clocks of the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Machine {
    /// The hypervisor pauses the guest now.
    pub(super) is_paused: bool,
    /// Since the last reading of the host clock.
    unread: u8,
    /// From the question that brought the right until the last reading.
    right: u8,
    /// The same, for the question of the answer under way.
    answer: u8,
}

impl Machine {
    /// A question is compared with the last reading before the question.
    pub(super) fn ask(&mut self) {
        self.answer = 0;
    }

    /// The right follows from the later of two questions.
    pub(super) fn hear(&mut self, is_later: bool) {
        if is_later {
            self.right = self.answer;
        }
        self.answer = 0;
    }

    /// A second of the host during a pause of the guest.
    fn stand_still(&mut self, most: u8) {
        self.unread = (self.unread + 1).min(most);
    }
}

impl Process {
    /// The hypervisor pauses the guest, and every clock of the guest stands still.
    pub(super) fn is_paused(&self) -> bool {
        self.machine.is_paused
    }

    pub(super) fn runs(&self) -> bool {
        self.awake && !self.machine.is_paused
    }

    pub(super) fn stand_still(&mut self, scenario: &Scenario) {
        self.machine.stand_still(most(scenario));
    }

    /// A second of the guest has passed, and the host clock is read. The clock counts whole seconds: the
    /// reading has the error that keeps the right longest.
    pub(super) fn read_host_clock(&mut self, scenario: &Scenario) {
        let machine = &mut self.machine;
        let unread = std::mem::take(&mut machine.unread);
        let is_noticed = |advance: &mut u8| {
            *advance = (*advance + unread).min(most(scenario));
            let measured = nanos(ticks(*advance)) - nanos(HostClock::RESOLUTION) + 1;
            scenario.is_on(Off::HostClock) && HostClock::shows_pause(0, measured)
        };
        if is_noticed(&mut machine.right) && matches!(self.right, Right::Left(_)) {
            self.right = Right::None;
        }
        if is_noticed(&mut machine.answer) {
            self.answer = self.answer.filter(|(said, _)| *said == AnswerKind::Lost);
        }
        if !matches!(self.right, Right::Left(_)) {
            machine.right = 0;
        }
        if self.answer.is_none() {
            machine.answer = 0;
        }
    }

    /// The guest was paused for so long that no promise holds until the host clock is read. The pause ended
    /// later after the end of the permit than the fence allows for.
    pub(super) fn has_just_woken(&self) -> bool {
        let machine = self.machine;
        let late = ticks(machine.right + machine.unread).saturating_sub(self.right.left());
        !machine.is_paused && machine.unread > 0 && late > UNNOTICED_PAUSE - HostClock::READ_EVERY
    }

    /// The right has outlasted a pause that no reading shows.
    pub(super) fn has_outlasted_a_pause(&self) -> bool {
        self.machine.unread == 0 && self.machine.right > 0 && self.right.is_valid()
    }
}

/// The length of a pause beyond which a longer pause makes no difference.
fn most(scenario: &Scenario) -> u8 {
    let pause = u8::try_from(UNNOTICED_PAUSE.as_secs()).unwrap();
    scenario.validity() + pause
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap()
}
