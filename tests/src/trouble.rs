//! Disturbances of a seed, reverted at the end of the test.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use crate::{dns, landscape::Landscape, repository};

/// The outside systems of a seed. Users still reach a seed that is cut off from all of these: only that makes
/// two control planes possible.
pub const OTHERS: [&str; 3] = ["garden", "dns", "s3"];

/// Interval of reads of the owner record: much shorter than the source's check interval of 4 s, because the
/// cut has to race a check.
const RECORD_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A disturbance of a seed.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    /// The seed gets no packet from these systems (see [`OTHERS`]).
    CutOff(&'static [&'static str]),
    /// Packets from the seed to these are dropped, and packets from these arrive. Sent bytes wait in the
    /// kernels of the seed.
    SendsNothing(&'static [&'static str]),
    /// All processes of the seed are paused.
    StandsStill,
    /// The node of the seed has no power: all processes start again afterwards.
    IsOff,
    /// The gardenlet is paused, and so is the kubelet that would restart the gardenlet. All further processes
    /// continue.
    NobodyReconciles,
    /// The API server of the seed does not run. Running pods continue.
    HasNoApiServer,
    /// The DNS server answers every query of the seed by SERVFAIL.
    DnsFails,
    /// The seed is cut off from the garden. At the moment of the owner record's change, the seed is also cut
    /// off from DNS and the bucket. By then the seed has read the change, is about to read the change, or
    /// never reads the change.
    RacesTheFence,
}

impl Trouble {
    /// Whether the seed learns of a new owner during the trouble, and can still save the data.
    #[must_use]
    pub fn lets_it_save(self) -> bool {
        match self {
            Self::CutOff(others) | Self::SendsNothing(others) => !others.contains(&"s3"),
            Self::StandsStill | Self::IsOff | Self::RacesTheFence => false,
            Self::NobodyReconciles | Self::HasNoApiServer | Self::DnsFails => true,
        }
    }

    /// Whether only the bucket can report a new owner to the seed.
    #[must_use]
    pub fn leaves_it_the_bucket_alone(self) -> bool {
        match self {
            Self::CutOff(others) | Self::SendsNothing(others) => {
                others.contains(&"dns") && !others.contains(&"s3")
            }
            Self::DnsFails => true,
            _ => false,
        }
    }

    /// Whether the edge of the seed continues.
    #[must_use]
    pub fn leaves_the_edge(self) -> bool {
        !matches!(self, Self::StandsStill | Self::IsOff)
    }

    /// Whether the trouble ends processes.
    #[must_use]
    pub fn ends_processes(self) -> bool {
        matches!(self, Self::IsOff | Self::HasNoApiServer)
    }

    /// Whether the seed serves until the report of a new owner.
    #[must_use]
    pub fn lets_it_serve(self) -> bool {
        match self {
            Self::CutOff(others) | Self::SendsNothing(others) => {
                !(others.contains(&"s3") && others.contains(&"dns"))
            }
            Self::StandsStill | Self::IsOff => false,
            Self::NobodyReconciles | Self::HasNoApiServer | Self::DnsFails | Self::RacesTheFence => true,
        }
    }
}

/// A disturbed seed. Dropping the value ends the disturbance.
pub struct Disturbed {
    trouble: Trouble,
    landscape: String,
    seed: String,
    node: String,
    /// Routes that [`Self::race`] has cut.
    cut_off: Vec<&'static str>,
    is_over: bool,
}

/// The kubelet's path of the static pod, and a path that the kubelet ignores.
const MANIFEST: [&str; 2] = [
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
    "/etc/kubernetes/kube-apiserver.yaml",
];

impl Disturbed {
    /// Begins the disturbance.
    ///
    /// # Errors
    /// A script or docker failed. A partial disturbance is reverted then.
    pub fn by(trouble: Trouble, landscape: &Landscape, seed: &str) -> Result<Self> {
        let node = format!("{}_NODE", seed.to_uppercase().replace('-', "_"));
        let disturbed = Self {
            trouble,
            landscape: landscape.name.clone(),
            seed: seed.to_owned(),
            node: landscape.variable(&node)?.to_owned(),
            cut_off: Vec::new(),
            is_over: false,
        };
        disturbed.begin()?;
        Ok(disturbed)
    }

    /// For [`Trouble::RacesTheFence`], cuts the seed off from DNS and the bucket when the owner record
    /// changes, and returns the moment of the change. No effect for every further disturbance.
    ///
    /// # Errors
    /// The record does not change in time, or a route cannot be cut.
    pub async fn race(
        &mut self,
        landscape: &Landscape,
        owner_record: &str,
        within: Duration,
    ) -> Result<Option<Instant>> {
        if !matches!(self.trouble, Trouble::RacesTheFence) {
            return Ok(None);
        }
        let (begun, before) = (Instant::now(), dns::texts(landscape.dns, owner_record).await?);
        ensure!(!before.is_empty(), "{owner_record} has no value");
        while dns::texts(landscape.dns, owner_record).await? == before {
            ensure!(begun.elapsed() < within, "{owner_record} is {before:?} still");
            sleep(RECORD_POLL_INTERVAL).await;
        }
        let changed = Instant::now();
        for other in ["dns", "s3"] {
            self.cut_off.push(other);
            self.road("cut", other)?;
        }
        println!(
            "{} was cut off from DNS and its bucket within {:?} of the change of {owner_record}",
            self.seed,
            changed.elapsed()
        );
        Ok(Some(changed))
    }

    /// Ends the disturbance.
    ///
    /// # Errors
    /// The end failed, or the disturbance had no effect: DNS failed, and no query arrived.
    pub fn end(mut self) -> Result<()> {
        self.is_over = true;
        self.undo()
    }

    fn begin(&self) -> Result<()> {
        let [runs, rests] = MANIFEST;
        match self.trouble {
            Trouble::CutOff(others) => others.iter().try_for_each(|other| self.road("cut", other)),
            Trouble::SendsNothing(others) => others.iter().try_for_each(|other| self.road("cut-out", other)),
            Trouble::StandsStill => docker(&["pause", &self.node]),
            Trouble::IsOff => docker(&["kill", &self.node]),
            Trouble::NobodyReconciles => self.signal("STOP"),
            Trouble::HasNoApiServer => self.on_node(&format!("mv {runs} {rests}")),
            Trouble::DnsFails => self.script(&["spoil", &self.landscape, &self.seed]),
            Trouble::RacesTheFence => self.road("cut", "garden"),
        }
    }

    fn undo(&self) -> Result<()> {
        let [runs, rests] = MANIFEST;
        match self.trouble {
            Trouble::CutOff(others) => others.iter().try_for_each(|other| self.road("heal", other)),
            Trouble::SendsNothing(others) => others.iter().try_for_each(|other| self.road("heal-out", other)),
            Trouble::StandsStill => docker(&["unpause", &self.node]),
            Trouble::IsOff => {
                docker(&["start", &self.node])?;
                // Restores the settings that a node loses in a restart.
                self.script(&["up", &self.landscape])
            }
            Trouble::NobodyReconciles => self.signal("CONT"),
            Trouble::HasNoApiServer => self.on_node(&format!("mv {rests} {runs}")),
            Trouble::DnsFails => self.script(&["mend", &self.landscape, &self.seed]),
            Trouble::RacesTheFence => {
                let mut all = self.cut_off.iter().chain([&"garden"]);
                all.try_for_each(|other| self.road("heal", other))
            }
        }
    }

    /// Sends the signal to all processes of the gardenlet and the kubelet.
    fn signal(&self, signal: &str) -> Result<()> {
        self.on_node(&format!(
            "for one in /proc/[0-9]*; do case $(cat $one/comm 2>/dev/null) in gardenlet|kubelet) kill -{signal} ${{one#/proc/}};; esac; done"
        ))
    }

    fn on_node(&self, script: &str) -> Result<()> {
        docker(&["exec", &self.node, "sh", "-c", script])
    }

    fn road(&self, action: &str, other: &str) -> Result<()> {
        self.script(&[action, &self.landscape, &self.seed, other])
    }

    fn script(&self, words: &[&str]) -> Result<()> {
        let script = repository().join("hack/landscape.sh");
        run(Command::new(script).args(words)).with_context(|| self.seed.clone())
    }
}

impl Drop for Disturbed {
    fn drop(&mut self) {
        if !self.is_over
            && let Err(error) = self.undo()
        {
            eprintln!("{error:#}");
        }
    }
}

fn docker(words: &[&str]) -> Result<()> {
    run(Command::new("docker").args(words))
}

fn run(command: &mut Command) -> Result<()> {
    let ended = command.status()?;
    ensure!(ended.success(), "{command:?}: {ended}");
    Ok(())
}

/// A DNS server that only one Seed names, with a copy of the zone without updates: an outdated secondary.
/// After the drop, the Seed names the common server again.
pub struct OwnServer {
    landscape: String,
    seed: String,
    is_over: bool,
}

impl OwnServer {
    /// Copies the present zone.
    ///
    /// # Errors
    /// The server does not start, or the Seed cannot be written.
    pub fn freeze(landscape: &Landscape, seed: &str) -> Result<Self> {
        let own = Self {
            landscape: landscape.name.clone(),
            seed: seed.to_owned(),
            is_over: false,
        };
        own.script(&["freeze", &own.landscape, &own.seed])?;
        Ok(own)
    }

    /// The Seed names the common server again. Processes that have not noticed the change still query the
    /// copy.
    ///
    /// # Errors
    /// The Seed cannot be written.
    pub fn correct_seed(&self) -> Result<()> {
        self.script(&["thaw", &self.landscape, &self.seed])
    }

    /// Ends the copy, after no process queries the copy any more.
    ///
    /// # Errors
    /// The server cannot be ended.
    pub fn end(mut self) -> Result<()> {
        self.is_over = true;
        self.script(&["end-copy", &self.landscape])
    }

    fn script(&self, words: &[&str]) -> Result<()> {
        let script = repository().join("hack/landscape.sh");
        run(Command::new(script).args(words)).with_context(|| self.seed.clone())
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        for ended in [self.correct_seed(), self.script(&["end-copy", &self.landscape])] {
            if let Err(error) = ended {
                eprintln!("{error:#}");
            }
        }
    }
}
